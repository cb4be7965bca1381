/** A start without the database: the process waits, reports this, and opens by itself when the database answers. */
import '../support/usual-limits.js';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { type Service, startService } from '../../src/app.js';
import { parseConfig } from '../../src/config.js';
import { type Line, openLine } from '../support/cuttable-connection.js';
import { ADMIN, testUri } from '../support/fixture.js';
import { until } from '../support/until.js';
import { raiseLimits } from '../support/usual-limits.js';

let service: Service | undefined;
let line: Line;
const logLines: string[] = [];

async function openCutLine(uri: string): Promise<Line> {
  const opened = await openLine(uri);
  await opened.cut();
  return opened;
}

afterEach(async () => {
  await line.mend();
  await service?.stop();
  await line.cut();
});

async function start(uri: string, env: Record<string, string> = {}): Promise<Service> {
  const common = { PORT: '0', OPS_PORT: '0', STOP_DELAY: '0', SECRET: 'test-secret-0123456789-abcdefghijklmnop' };
  const config = parseConfig({ ...common, MONGODB_URI: uri, LOG_FORMAT: 'json', ...env });
  service = await startService(config, { logTo: { write: (text: string) => void logLines.push(text) } });
  return service;
}

const statusOf = async (url: string, init: RequestInit = {}): Promise<number> => (await fetch(url, init)).status;

test('answers 503 with Retry-After while it waits, is healthy but not ready, and opens when the database answers', async () => {
  line = await openCutLine(testUri());
  const { url, opsUrl, isWaiting } = await start(line.uri, { ADMIN_PASSWORD: ADMIN.password });
  expect(isWaiting).toBe(true);
  const login = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(ADMIN) };
  for (const [path, init] of [['/api/v1/auth/token', login], ['/api/v1/objects'], ['/'], ['/socket.io/']] as const) {
    const refused = await fetch(`${url}${path}`, init);
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ success: false, code: '503', tags: ['error_unavailable'] });
  }
  expect(await statusOf(`${opsUrl}/health`)).toBe(200);
  const ready = await fetch(`${opsUrl}/ready`);
  expect(ready.status).toBe(503);
  expect(await ready.json()).toMatchObject({ reasons: [expect.stringContaining('it waits for the database')] });
  expect(await statusOf(`${opsUrl}/metrics`)).toBe(200);
  await line.mend();
  await until(async () => (await statusOf(`${opsUrl}/ready`)) === 200, 'the service to be ready');
  await until(async () => (await statusOf(`${url}/api/v1/auth/token`, login)) === 200, 'a login');
  expect(logLines.some((text) => text.includes('database unavailable'))).toBe(true);
});

test('stops while it waits', async () => {
  line = await openCutLine(testUri());
  const { url, stop } = await start(line.uri);
  await stop();
  await expect(fetch(url)).rejects.toThrow();
});

test('ends when the database answers and refuses the password', async () => {
  const uri = new URL(testUri());
  uri.password = 'wrong';
  line = await openCutLine(uri.href);
  const { failed } = await start(line.uri);
  await line.mend();
  expect(String(await failed)).toContain('refuses the user or the password');
});

test('ends after an error that waiting cannot fix', async () => {
  line = await openLine(testUri());
  const other = new URL(line.uri);
  other.searchParams.delete('directConnection');
  other.searchParams.set('replicaSet', 'another');
  await expect(start(other.href)).rejects.toThrow('belongs to the replica set "another"');
});

describe('with a database that answers', () => {
  beforeAll(raiseLimits);

  test('ends at once if the database refuses the password', async () => {
    line = await openLine(testUri());
    const wrong = new URL(line.uri);
    wrong.password = 'wrong';
    await expect(start(wrong.href)).rejects.toThrow('refuses the user or the password');
  });

  test('runs with the role readWrite on one database, and reports a role that is not enough', async () => {
    const name = `test-${randomBytes(6).toString('hex')}`;
    line = await openLine(testUri(name));
    const client = await new MongoClient(testUri(name)).connect();
    await client.db().dropDatabase();
    const as = (user: string): string => {
      const uri = new URL(line.uri);
      [uri.username, uri.password] = [user, 'a password of the test'];
      uri.searchParams.set('authSource', name);
      return uri.href;
    };
    const make = (user: string, role: string) =>
      client.db().command({ createUser: user, pwd: 'a password of the test', roles: [{ role, db: name }] });
    await make('reader', 'read');
    await make('app', 'readWrite');
    try {
      await expect(start(as('reader'))).rejects.toThrow('lacks permissions (role readWrite is needed)');
      const { opsUrl, isWaiting } = await start(as('app'), { ADMIN_PASSWORD: ADMIN.password });
      expect(isWaiting).toBe(false);
      await until(async () => (await statusOf(`${opsUrl}/ready`)) === 200, 'the service to be ready');
    } finally {
      await service?.stop();
      await client.db().command({ dropAllUsersFromDatabase: 1 });
      await client.db().dropDatabase();
      await client.close();
    }
  });
});
