/** Starts that fail: the messages, which docs/operations/troubleshooting.md lists, and that nothing was created. */
import { once } from 'node:events';
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { type FailedStart, isListed, startFailing } from '../support/failed-start.js';
import { testUri } from '../support/fixture.js';
import { SERVICE, startProgram, waitForOutput } from '../support/program.js';

let base: string;
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'vigil-start-'));
});
afterAll(() => rm(base, { recursive: true, force: true }));

const start = (env: Record<string, string>, before?: string[]): Promise<FailedStart> =>
  startFailing({ HOME: base, DATA_DIR: join(base, 'data'), ...env }, before);

const SECRET = 'test-secret-0123456789-abcdefghijklmnop';

test('reports a port that is taken before it creates data', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { code, said } = await start({ PORT: String(port) });
  other.close();
  expect({ code, said }).toEqual({ code: 1, said: expect.stringMatching(`^Port ${port} of 127.0.0.1 is taken`) });
  expect(isListed(said)).toBe(true);
  await expect(access(join(base, 'data'))).rejects.toThrow('ENOENT');
});

test('reports a data folder that is a file', async () => {
  await writeFile(join(base, 'file'), '');
  const { code, said } = await start({ DATA_DIR: join(base, 'file') });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('cannot be written to: EEXIST') });
  expect(isListed(said)).toBe(true);
});

(process.platform === 'linux' ? test : test.skip)('reports a data folder that the system does not permit', async () => {
  const { code, said } = await start({ DATA_DIR: '/proc/vigil/data' });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('cannot be written to: ENOENT') });
  expect(isListed(said)).toBe(true);
});

test('reports every problem of the configuration', async () => {
  const { code, said } = await start({ PORT: '99999', LOG_LEVEL: 'loud', SECRET: 'short' });
  expect(code).toBe(1);
  expect(said.split('\n').map((line) => line.trim().split(':')[0])).toEqual([
    'The configuration is invalid',
    'PORT',
    'SECRET',
    'LOG_LEVEL',
  ]);
});

test.each(['OPS_PORT', 'MQTT_PORT'])('reports that the port of %s is taken', async (name) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { code, said } = await start({ [name]: String(port) });
  other.close();
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining(`set ${name} to a free one`) });
  expect(isListed(said)).toBe(true);
});

describe('a data folder of another user', () => {
  // Without the capabilities with which root ignores the modes of folders.
  const asOthers =
    process.getuid?.() === 0 ? ['/usr/bin/setpriv', '--bounding-set=-dac_override,-dac_read_search'] : [];
  let folder: string;
  beforeAll(async () => {
    folder = join(base, 'theirs');
    await mkdir(folder, { mode: 0o500 });
  });

  test.each([
    ['for the embedded database', '', {}],
    ['that has to be created', 'data', {}],
    ['for the secret only', '', { MONGODB_URI: 'mongodb://127.0.0.1:1/vigil' }],
    ['for the database only', '', { SECRET }],
  ])('is reported: %s', async (_, inside, env) => {
    const { code, said } = await start({ DATA_DIR: join(folder, inside), ...env }, asOthers);
    const expected = `The data folder ${join(folder, inside)} cannot be written to: EACCES`;
    expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining(expected) });
    expect(isListed(said)).toBe(true);
  });
});

test('reports an invalid address of the database', async () => {
  const { code, said } = await start({ MONGODB_URI: 'mongodb://127.0.0.1:99999/vigil', SECRET });
  expect({ code, said }).toEqual({ code: 1, said: 'The MongoDB of MONGODB_URI cannot be used: Invalid URL' });
  expect(isListed(said)).toBe(true);
});

test.each([
  ['does not exist', 'nowhere.pem', 'MQTT_TLS_KEY cannot be read: ENOENT'],
  ['is no key', 'file', 'MQTT_TLS_KEY and MQTT_TLS_CERT cannot be used: '],
])('reports an MQTT_TLS_KEY that %s', async (_, name, message) => {
  await writeFile(join(base, 'file'), '');
  const file = join(base, name);
  const uri = testUri();
  const { code, said } = await start({
    MONGODB_URI: uri,
    SECRET,
    ADMIN_PASSWORD: 'a password of the test',
    LOG_LEVEL: 'silent',
    MQTT_PORT: '0',
    MQTT_TLS_KEY: file,
    MQTT_TLS_CERT: file,
  });
  const client = await new MongoClient(uri).connect();
  await client.db().dropDatabase();
  await client.close();
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining(message) });
});

test.each(['mongodb://127.0.0.1:1/vigil', 'mongodb+srv://nowhere.invalid/vigil'])(
  'waits for its database, prints that, and stops on SIGTERM: %s',
  async (uri) => {
    const env = { PATH: '', PORT: '0', MQTT_PORT: '', STOP_DELAY: '0', MONGODB_URI: uri, SECRET, LOG_LEVEL: 'silent' };
    const program = startProgram(SERVICE, env);
    await waitForOutput(program, /(Stop with)/);
    const code = await program.end('SIGTERM');
    expect({ code, said: program.output() }).toEqual({
      code: 0,
      said: expect.stringContaining('Vigil waits for its database at http://127.0.0.1:'),
    });
  },
);

test('reports a HOST that is no address of the machine', async () => {
  const { code, said } = await start({ HOST: '192.0.2.1' });
  expect({ code, said }).toEqual({
    code: 1,
    said: expect.stringContaining('HOST: this machine has no address 192.0.2.1'),
  });
});

test('reports a SECRET_FILE that does not exist', async () => {
  const { code, said } = await start({ SECRET_FILE: join(base, 'nowhere') });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('SECRET_FILE cannot be read: ENOENT') });
});

test('reports a missing SECRET in production', async () => {
  const { code, said } = await start({ NODE_ENV: 'production', MONGODB_URI: 'mongodb://127.0.0.1:1/vigil' });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('SECRET: required in production') });
});

test('reports a password that the database refuses', async () => {
  const uri = new URL(process.env.TEST_MONGODB_URI as string);
  uri.password = 'wrong';
  const { code, said } = await start({ MONGODB_URI: uri.href });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('refuses the user or the password') });
  expect(said).not.toContain('wrong@');
});
