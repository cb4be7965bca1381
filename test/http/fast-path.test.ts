/** The fast path gives the same answers as the app's routers, compared with requests in a spelling that avoids it. */
import { beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { useService } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';
import { until } from '../support/until.js';

const NOW = Date.now();
const service = useService({ now: () => NOW });
const tokens: Record<string, string | null> = { anonymous: null, 'an invalid token': 'no.such.token' };
const keys: Record<string, string> = { 'no _id': new ObjectId().toHexString(), 'no id': 'nothing', odd: '-_-' };
let made = 0;

beforeAll(async () => {
  const create = async (store: string, body: object) => (await service.admin('POST', store, body)).body;
  keys.own = 'truck';
  keys._id = (await create('objects', { id: 'truck', name: 'Truck', config: { a: 1 } }))._id;
  keys.upper = keys._id?.toUpperCase() ?? '';
  await create(
    'objects/truck/packets',
    [1, 2, 3].map((speed) => ({ time: NOW + speed, speed })),
  );
  const group = (await create('groups', { name: 'elsewhere' }))._id;
  await create('users', { login: 'other', password: 'a long password', group });
  tokens.admin = await service.tokenOf('admin', 'correct horse battery');
  tokens.other = await service.tokenOf('other', 'a long password');
  tokens.narrow = (await create('tokens', { name: 'narrow', scopes: ['GET /objects/truck'] })).token;
});

const request = fc.record({
  method: fc.constantFrom('GET', 'GET', 'POST', 'PATCH', 'PUT', 'HEAD', 'OPTIONS'),
  key: fc.constantFrom(null, 'own', '_id', 'upper', 'no _id', 'no id', 'odd'),
  packets: fc.boolean(),
  query: fc.constantFrom(
    '',
    '?',
    '?only=name',
    '?only=a,',
    '?limit=2',
    '?limit=x',
    '?meta=1',
    '?a=1&a=2',
    '?limit=1&limit=2',
  ),
  who: fc.constantFrom('admin', 'admin', 'other', 'narrow', 'anonymous', 'an invalid token'),
  body: fc.constantFrom(undefined, '{}', '[]', '{', '7', '{"status":"x"}', '{"status":1}', '{"speed":4}', 'new'),
  type: fc.constantFrom('application/json', 'application/json', 'text/plain', 'application/json; charset=latin9'),
});
type Asked = typeof request extends fc.Arbitrary<infer T> ? T : never;

const VOLATILE = /"(_id|_ts|time|_at|id|name)":("[^"]*"|\d+)/g;

async function ask({ method, key, packets, query, who, body, type }: Asked, slash: string) {
  const path = ['objects', ...(key === null ? [] : [keys[key]]), ...(packets && key !== null ? ['packets'] : [])].join(
    '/',
  );
  const requestId = `test-${made++}-request`;
  // The client has no length for a body of HEAD, which makes it the next request.
  const given = method === 'HEAD' ? undefined : body;
  // Another id for the object that is asked for would leave nothing for the second of the two.
  const id = method === 'POST' ? `"id":"new-${made}",` : '';
  const sent = given === 'new' ? `{${id}"name":"x","_id":"${new ObjectId()}"}` : given;
  const headers = { 'X-Request-Id': requestId, ...(sent !== undefined && { 'Content-Type': type }) };
  const answer = await service.as(tokens[who] ?? null)(method, `/api/v1/${path}${slash}${query}`, sent, headers);
  const line = await lineOf(requestId);
  const { date, 'x-request-id': answeredId, 'content-length': length, ...rest } = answer.headers;
  expect(answeredId).toBe(requestId);
  return {
    status: answer.status,
    text: (answer.text ?? '').replace(VOLATILE, '"$1":0'),
    headers: { ...rest, link: rest.link?.replace(/objects(\/\w+)?(\/packets)?\/?/, '') },
    line: { route: line.route, status: line.status, user: line.user },
  };
}

/** The line of the log that a request leaves when it is over. */
async function lineOf(requestId: string) {
  const find = () => service.logLines.find((line) => line.includes(requestId) && line.includes('"msg":"request"'));
  await until(find);
  return JSON.parse(find() ?? '');
}

test('answers and logs requests like the app', async () => {
  const property = fc.asyncProperty(request, async (asked) => {
    expect(await ask(asked, '')).toEqual(await ask(asked, '/'));
  });
  await fc.assert(property, { numRuns: runsOf(300) });
});

test('refuses requests with the same errors as the app', async () => {
  const wrong = await service.as(null)('GET', 'objects/truck');
  expect([wrong.status, wrong.body.tags]).toEqual([401, ['error_unauthorized']]);
  const hidden = await service.as(tokens.other ?? null)('GET', 'objects/truck');
  expect([hidden.status, hidden.body.tags]).toEqual([404, ['error_not_found']]);
  const forbidden = await service.as(tokens.narrow ?? null)('PATCH', 'objects/truck', { status: 'x' });
  expect([forbidden.status, forbidden.body.tags]).toEqual([403, ['error_credentials', 'error_forbidden']]);
});
