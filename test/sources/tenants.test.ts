/** Two tenants with sources: what one of them sends, asks for, or sends too much of, never reaches the other. */
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { SOURCE_KIND_NAMES } from '../../src/core/source-kinds.js';
import { expectRefusal } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { type Call, startTestService, useService } from '../support/fixture.js';
import { PAYLOADS } from '../support/payloads.js';
import { basic, type Source, useSources } from '../support/sources.js';
import { until } from '../support/until.js';

const service = useService({ env: { LOG_LEVEL: 'warn' } });
const { createSource, createObject, newName, packetsOf, post, send } = useSources(service);

interface Tenant {
  readonly call: Call;
  readonly group: string;
}

async function createTenant(name: string): Promise<Tenant> {
  const { body: group } = await service.admin('POST', 'groups', { name });
  const { call } = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: group._id });
  return { call, group: group._id };
}

let ours: Tenant;
let theirs: Tenant;
let mine: Source;
let other: Source;
let object: { _id: string; id: string };

beforeAll(async () => {
  ours = await createTenant('ours');
  theirs = await createTenant('theirs');
});

beforeEach(async () => {
  mine = await createSource({ register: true }, ours.call);
  other = await createSource({ register: true }, theirs.call);
  object = await createObject({ group: theirs.group });
});

const refusedOf = async ({ call }: Tenant, { _id }: Source) => (await call('GET', `sources/${_id}/refused`)).body;

test('opens no other source with the key of one', async () => {
  const body = { id: object.id, a: 1 };
  const answers = [
    await post(`${other.id}/${mine.key}`, body),
    await post(`${other.id}?key=${mine.key}`, body),
    await post(other.id, body, basic('any', mine.key)),
    await post(other.id, body, { Authorization: `Bearer ${mine.key}` }),
  ];
  for (const answer of answers) expectRefusal(answer, 401);
  expect(await packetsOf(object)).toEqual([]);
});

test.each(SOURCE_KIND_NAMES.filter((kind) => kind !== 'json'))(
  'writes into no object of another tenant, whatever names it: %s',
  async (kind) => {
    const source = await createSource({ kind, register: true }, ours.call);
    const payload = PAYLOADS.find((one) => one.kind === kind && one.packets.length > 0 && one.body !== '');
    const text = JSON.stringify(payload?.body).replaceAll(String(payload?.device), object.id);
    // One queue of flespi has all devices: it is told that it is done with unknown ones.
    const expected = kind === 'flespi' ? 200 : 404;
    for (const name of [object.id, object._id]) {
      const { status, body } = await send(source, text, `?device=${name}`);
      expect([status, body.success, body.count ?? 0]).toEqual([expected, kind === 'flespi', 0]);
    }
    expect(await packetsOf(object)).toEqual([]);
    const { body: found } = await service.admin('GET', `objects/${object.id}`);
    expect(found).toMatchObject({ _id: object._id, group: theirs.group });
  },
);

test('hands out no command of an object of another tenant', async () => {
  const source = await createSource({ kind: 'owntracks', map: { commands: true } }, ours.call);
  const { headers } = await theirs.call('POST', `objects/${object._id}/commands/reportLocation`);
  const location = {
    _type: 'location',
    lat: 52.5,
    lon: 13.4,
    tst: 1_795_500_000,
    topic: `owntracks/jane/${object.id}`,
  };
  expect((await send(source, location)).status).toBe(404);
  const commandId = (headers.location as string).split('/').at(-1);
  expect((await theirs.call('GET', `commands/${commandId}`)).body.status).toBe('queued');
});

test('tells what was refused, and which devices are unknown, only to the tenant of the source', async () => {
  await send(mine, [5, { id: object.id, secret: 'of ours' }]);
  await until(async () => (await refusedOf(ours, mine)).length === 2, 'the refused payloads');
  expect(await refusedOf(theirs, other)).toEqual([]);
  expect((await theirs.call('GET', `sources/${mine._id}/refused`)).status).toBe(404);
  expect((await theirs.call('GET', `objects/${object._id}/refused`)).body).toEqual([]);
  const eventsOf = async ({ call }: Tenant) =>
    (await call('GET', `audit?where.entity=${mine._id}`)).body as { action: string }[];
  const isTold = async () =>
    ['unknown device', 'message refused'].every(async (action) =>
      (await eventsOf(ours)).some((one) => one.action === action),
    );
  await until(isTold, 'the security events');
  await until(async () => (await eventsOf(ours)).length >= 2, 'both events');
  expect(await eventsOf(theirs)).toEqual([]);
});

test.each(['GET', 'PATCH', 'DELETE'] as const)('lets another tenant not %s a source', async (method) => {
  const body = method === 'PATCH' ? { name: 'taken' } : undefined;
  expect((await theirs.call(method, `sources/${mine._id}`, body)).status).toBe(404);
  expect((await theirs.call('POST', `sources/${mine._id}/key`)).status).toBe(404);
  expect((await theirs.call('GET', 'sources')).text).not.toContain(mine._id);
});

describe('a source that sends too much', () => {
  test('uses up the new objects of no other one', async () => {
    const attempts = service.client.db().collection('attempts');
    const expire = new Date(Date.now() + LIMITS.sourceRegistrationsMs);
    await attempts.insertOne({ key: `registered:${mine._id}`, points: LIMITS.sourceRegistrations, expire });
    expect((await send(mine, { id: newName(), a: 1 })).status).toBe(429);
    expect((await send(other, { id: newName(), a: 1 })).status).toBe(200);
  });

  test('uses up no new object for a device that another group has', async () => {
    for (let sent = 0; sent < 3; sent++) expect((await send(mine, { id: object.id, a: 1 })).status).toBe(404);
    const counted = { key: `registered:${mine._id}` };
    expect(await service.client.db().collection('attempts').findOne(counted)).toBeNull();
    expect((await send(mine, { id: newName(), a: 1 })).status).toBe(200);
    expect(await service.client.db().collection('attempts').findOne(counted)).toMatchObject({ points: 1 });
  });

  test('uses up the requests of no other one', async () => {
    const limited = await startTestService({ env: { LOG_LEVEL: 'warn', RATE_LIMIT: '10' } });
    try {
      const made = useSources(limited);
      const flooding = await made.createSource({ register: true });
      const quiet = await made.createSource({ register: true });
      const sent = await Promise.all(Array.from({ length: 300 }, () => made.send(flooding, { id: 'flood', a: 1 })));
      expect(new Set(sent.map(({ status }) => status))).toEqual(new Set([200, 429]));
      expect((await made.send(quiet, { id: 'quiet', a: 1 })).status).toBe(200);
    } finally {
      await limited.stop();
    }
  });

  test('fills the list of refused payloads of no other one', async () => {
    await send(other, 5);
    await until(async () => (await refusedOf(theirs, other)).length === 1, 'the refused payload');
    await send(mine, Array(LIMITS.refusedPerSource + 10).fill(5));
    await until(async () => (await refusedOf(ours, mine)).length === LIMITS.refusedPerSource, 'a full list');
    expect(await refusedOf(theirs, other)).toHaveLength(1);
  });
});
