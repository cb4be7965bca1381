/** A start that cannot be says why, in the words of docs/operations/troubleshooting.md, before it makes anything. */
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

test('on a port that is taken: nothing was made, so no password is lost', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { code, said } = await start({ PORT: String(port) });
  other.close();
  expect({ code, said }).toEqual({ code: 1, said: expect.stringMatching(`^Port ${port} of 127.0.0.1 is taken`) });
  expect(isListed(said)).toBe(true);
  await expect(access(join(base, 'data'))).rejects.toThrow('ENOENT');
});

test('in a data folder that cannot be one', async () => {
  await writeFile(join(base, 'file'), '');
  const { code, said } = await start({ DATA_DIR: join(base, 'file') });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('cannot be written to: EEXIST') });
  expect(isListed(said)).toBe(true);
});

(process.platform === 'linux' ? test : test.skip)('in a data folder where the system permits none', async () => {
  const { code, said } = await start({ DATA_DIR: '/proc/vigil/data' });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('cannot be written to: ENOENT') });
  expect(isListed(said)).toBe(true);
});

test('with a configuration that cannot be: every problem is told', async () => {
  const { code, said } = await start({ PORT: '99999', LOG_LEVEL: 'loud', SECRET: 'short' });
  expect(code).toBe(1);
  expect(said.split('\n').map((line) => line.trim().split(':')[0])).toEqual([
    'The configuration is invalid',
    'PORT',
    'SECRET',
    'LOG_LEVEL',
  ]);
});

test.each(['OPS_PORT', 'MQTT_PORT'])('on a port of another kind that is taken: %s', async (name) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { code, said } = await start({ [name]: String(port) });
  other.close();
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining(`set ${name} to a free one`) });
  expect(isListed(said)).toBe(true);
});

describe('in a data folder of somebody else', () => {
  // What root may do in spite of a folder's mode is taken away from it.
  const asOthers =
    process.getuid?.() === 0 ? ['/usr/bin/setpriv', '--bounding-set=-dac_override,-dac_read_search'] : [];
  let folder: string;
  beforeAll(async () => {
    folder = join(base, 'theirs');
    await mkdir(folder, { mode: 0o500 });
  });

  test.each([
    ['with the embedded database', '', {}],
    ['that would have to be made', 'data', {}],
    ['where only the secret would be', '', { MONGODB_URI: 'mongodb://127.0.0.1:1/vigil' }],
    ['where only the database would be', '', { SECRET }],
  ])('%s', async (_, inside, env) => {
    const { code, said } = await start({ DATA_DIR: join(folder, inside), ...env }, asOthers);
    const expected = `The data folder ${join(folder, inside)} cannot be written to: EACCES`;
    expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining(expected) });
    expect(isListed(said)).toBe(true);
  });
});

test('with an address of a database that cannot be one', async () => {
  const { code, said } = await start({ MONGODB_URI: 'mongodb://127.0.0.1:99999/vigil', SECRET });
  expect({ code, said }).toEqual({ code: 1, said: 'The MongoDB of MONGODB_URI cannot be used: Invalid URL' });
  expect(isListed(said)).toBe(true);
});

test.each([
  ['that is not there', 'nowhere.pem', 'MQTT_TLS_KEY cannot be read: ENOENT'],
  ['that is none', 'file', 'MQTT_TLS_KEY and MQTT_TLS_CERT cannot be used: '],
])('with a key for devices %s', async (_, name, message) => {
  await writeFile(join(base, 'file'), '');
  const [file, uri] = [join(base, name), testUri()];
  const { code, said } = await start({
    ...{ MONGODB_URI: uri, SECRET, ADMIN_PASSWORD: 'a password of the test', LOG_LEVEL: 'silent' },
    ...{ MQTT_PORT: '0', MQTT_TLS_KEY: file, MQTT_TLS_CERT: file },
  });
  const client = await new MongoClient(uri).connect();
  await client.db().dropDatabase();
  await client.close();
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining(message) });
});

test.each(['mongodb://127.0.0.1:1/vigil', 'mongodb+srv://nowhere.invalid/vigil'])(
  'without its database it waits, says so, and stops when it is told to: %s',
  async (uri) => {
    const env = { PATH: '', PORT: '0', MQTT_PORT: '', STOP_DELAY: '0', MONGODB_URI: uri, SECRET, LOG_LEVEL: 'silent' };
    const program = startProgram(SERVICE, env);
    await waitForOutput(program, /(Stop with)/, 30_000);
    const code = await program.end('SIGTERM');
    expect({ code, said: program.output() }).toEqual({
      code: 0,
      said: expect.stringContaining('Vigil waits for its database at http://127.0.0.1:'),
    });
  },
);

test('at an address that this machine does not have', async () => {
  const { code, said } = await start({ HOST: '192.0.2.1' });
  expect({ code, said }).toEqual({
    code: 1,
    said: expect.stringContaining('HOST: this machine has no address 192.0.2.1'),
  });
});

test('with a file of a secret that is not there', async () => {
  const { code, said } = await start({ SECRET_FILE: join(base, 'nowhere') });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('SECRET_FILE cannot be read: ENOENT') });
});

test('in production without a secret', async () => {
  const { code, said } = await start({ NODE_ENV: 'production', MONGODB_URI: 'mongodb://127.0.0.1:1/vigil' });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('SECRET: required in production') });
});

test('with a password that the database refuses', async () => {
  const uri = new URL(process.env.TEST_MONGODB_URI as string);
  uri.password = 'wrong';
  const { code, said } = await start({ MONGODB_URI: uri.href });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('refuses the user or the password') });
  expect(said).not.toContain('wrong@');
});
