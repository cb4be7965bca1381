/** The connection to the database breaks and returns: 503 with `Retry-After` meanwhile, and normal service afterwards. */
import '../support/usual-limits.js';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { EventSource } from 'eventsource';
import { startService } from '../../src/app.js';
import { parseConfig } from '../../src/config.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { openSession, TEST_SECRET } from '../support/callers.js';
import { type Line, openLine } from '../support/cuttable-connection.js';
import { ADMIN, startTestService, type TestService, testUri } from '../support/fixture.js';
import { until } from '../support/until.js';

let service: TestService;
let line: Line;

beforeAll(async () => {
  line = await openLine(testUri());
  service = await startTestService({}, line.uri);
});

afterAll(async () => {
  await line.mend();
  await service?.stop();
  await line.cut();
});

test('answers 503 with Retry-After on every path that needs the database, and recovers by itself', async () => {
  const object = entityOf(await service.admin('POST', 'objects', { id: 'car', name: 'Car' }));
  const cookie = await openSession(service, ADMIN);
  await line.cut();
  const asked = await Promise.all([
    // A browser logs in again over its former session.
    service.as(null)('POST', 'auth', ADMIN, { Cookie: cookie }),
    service.admin('GET', 'objects'),
    service.admin('GET', 'objects/car'),
    service.admin('POST', 'objects', { id: 'van', name: 'Van' }),
    service.admin('PATCH', 'objects/car', { status: 'x' }),
    service.admin('POST', 'objects/car/packets', { speed: 1 }),
    service.admin('POST', '/objects/car/commands/go', {}),
    service.as(null)('POST', 'auth/token', { login: 'admin', password: 'whatever it is' }),
  ]);
  for (const answer of asked) {
    expectRefusal(answer, 503);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(answer.text).not.toMatch(/mongo|ECONN|127\.0\.0\.1/i);
  }
  // Neither a missing token nor a page needs the database.
  expectRefusal(await service.as(null)('GET', 'objects'), 401);
  expect((await service.as(null)('GET', '/')).status).toBe(200);
  await line.mend();
  await until(async () => (await service.admin('GET', 'objects')).status === 200, 'the service to answer 200 again');
  expect((await service.admin('GET', 'objects')).body).toEqual([object]);
  entityOf(await service.admin('POST', 'objects', { id: 'van', name: 'Van' }));
});

interface Described {
  readonly parameters?: readonly { readonly $ref: string }[];
  readonly requestBody?: { readonly content: Record<string, { readonly example?: unknown }> };
}

/** Those that need no database: what the service says of itself, and a secret that cannot be one. */
const WITHOUT_DATABASE = /^GET \/(?:api\/v1(?:\/(?:open|async)api\.json)?|docs)?$|^POST \/api\/v1\/shared$/;

test('answers 503 with Retry-After for every operation of the OpenAPI document', async () => {
  const { body: document } = await service.admin('GET', 'openapi.json');
  const queryOf = ({ parameters = [] }: Described): string => {
    const all = parameters.map(({ $ref }) => document.components.parameters[$ref.split('/').at(-1) ?? '']);
    const asked = all.filter(({ in: place, required, name }) => place === 'query' && (required || name === 'from'));
    return asked
      .map(({ name, example }) => `${name}=${name === 'from' ? 0 : encodeURIComponent(String(example))}`)
      .join('&');
  };
  const operations = Object.entries<Record<string, Described>>(document.paths).flatMap(
    ([path, { parameters: _, ...methods }]) =>
      Object.entries(methods).map(([method, operation]) => ({
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path,
        operation,
      })),
  );
  const asked = operations.filter(({ name }) => !WITHOUT_DATABASE.test(name));
  expect(asked.length).toBeGreaterThan(150);
  await line.cut();
  const answers = await Promise.all(
    asked.map(async ({ name, method, path, operation }) => {
      const filled = path.replace('{store}', 'labels').replace(/\{\w+\}/g, '0'.repeat(24));
      const body = operation.requestBody?.content['application/json']?.example;
      const { status, headers } = await service.admin(method, `${filled}?${queryOf(operation)}`, body);
      return [name, status, Number(headers['retry-after']) > 0];
    }),
  );
  await line.mend();
  expect(answers).toEqual(asked.map(({ name }) => [name, 503, true]));
  await until(async () => (await service.admin('GET', 'objects')).status === 200, 'the service to answer 200 again');
});

/** Everything that a connection answers before it ends. */
async function answerOf(url: string, headers: Record<string, string>): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let answer = '';
  socket.setEncoding('utf8').on('data', (text) => {
    answer += text;
    // The service would keep it open.
    socket.end();
  });
  const lines = Object.entries({ Host: 'x', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET /api/v1/events HTTP/1.1\r\n${lines.join('')}\r\n`);
  await once(socket, 'close');
  return answer;
}

test('sends events to an EventSource that connected during an outage, after the outage', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  await line.cut();
  const authorized: typeof fetch = (input, init) =>
    fetch(input, { ...init, headers: { ...(init?.headers as object), Authorization: `Bearer ${token}` } });
  const source = new EventSource(`${service.url}/api/v1/events`, { fetch: authorized as never });
  const states: number[] = [];
  source.onerror = () => void states.push(source.readyState);
  const received: unknown[] = [];
  source.addEventListener('object-packet', ({ data }) => void received.push(JSON.parse(data).speed));
  await until(() => states.length > 0, 'the EventSource to report an error');
  await line.mend();
  await until(() => source.readyState === EventSource.OPEN, 'the EventSource to be open');
  await service.admin('POST', 'objects', { id: 'received', name: 'Received' });
  const hasReceived = async () => {
    await service.admin('POST', 'objects/received/packets', { speed: 1 });
    return received.length > 0;
  };
  await until(hasReceived, 'the EventSource to receive a packet');
  source.close();
  expect(states).not.toContain(EventSource.CLOSED);
});

test('closes the connection of an EventSource without an answer while the service waits for its database', async () => {
  const config = parseConfig({
    PORT: '0',
    MONGODB_URI: 'mongodb://127.0.0.1:1/vigil',
    SECRET: TEST_SECRET,
    MQTT_PORT: '',
    LOG_FORMAT: 'json',
  });
  const waiting = await startService(config, { logTo: { write: () => undefined } });
  try {
    expect(await answerOf(waiting.url, { Accept: 'text/event-stream' })).toBe('');
    expect(await answerOf(waiting.url, { Accept: 'application/json' })).toMatch(/^HTTP\/1\.1 503 .*\r\n/);
  } finally {
    await waiting.stop();
  }
});
