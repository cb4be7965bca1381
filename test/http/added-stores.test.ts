/** Stores that tenants add: names tell nothing of other tenants, nothing that was acknowledged is lost, and there is an end of them. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID, ROOT_GROUP_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { sweepStores } from '../../src/entities/custom-stores.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Call, useService } from '../support/fixture.js';

const service = useService();
const make = async (store: string, fields: object, call: Call = service.admin) =>
  entityOf(await call('POST', store, fields));
const personIn = (group: string): Promise<Person> => createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group });

let northGroup: string | undefined;
let southGroup: string | undefined;
let north: Person | undefined;
let south: Person | undefined;
let below: Person | undefined;
beforeAll(async () => {
  northGroup = (await make('groups', { name: 'north' }))._id;
  southGroup = (await make('groups', { name: 'south' }))._id;
  const belowNorth = (await make('groups', { name: 'below', parent: northGroup }))._id;
  [north, south, below] = await Promise.all(
    [northGroup, southGroup, belowNorth].map((group) => personIn(group as string)),
  );
});
const asNorth: Call = (...given) => (north as Person).call(...given);
const asSouth: Call = (...given) => (south as Person).call(...given);
const asBelow: Call = (...given) => (below as Person).call(...given);

const collections = async (): Promise<string[]> =>
  (await service.client.db().listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name);

describe('the name of an added store', () => {
  test("may equal that of another tenant's store, without revealing it, and each has its own entities", async () => {
    await make('stores', { name: 'deliveries', schema: { required: ['from'] } }, asNorth);
    const first = await make('deliveries', { from: 'north' }, asNorth);
    await make('stores', { name: 'deliveries' }, asSouth);
    const second = await make('deliveries', { to: 'south' }, asSouth);
    expectRefusal(await asNorth('POST', 'deliveries', { to: 'x' }), 400, 'from');
    const idsFor = async (call: Call) => (await call('GET', 'deliveries')).body.map(({ _id }: { _id: string }) => _id);
    expect([await idsFor(asNorth), await idsFor(asSouth), await idsFor(asBelow)]).toEqual([
      [first._id],
      [second._id],
      [],
    ]);
    expectRefusal(await asSouth('GET', `deliveries/${first._id}`), 404);
  });

  test('is refused if the caller sees it already: in its own group, above or below', async () => {
    await make('stores', { name: 'routes' }, asNorth);
    for (const call of [asNorth, asBelow, service.admin]) {
      expectRefusal(await call('POST', 'stores', { name: 'routes' }), 409, 'name: already taken');
    }
  });

  test('names one store when two are created concurrently', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => asNorth('POST', 'stores', { name: 'twice' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409]);
    expect((await collections()).filter((name) => name.startsWith('custom.twice.'))).toHaveLength(1);
  });

  test('names the store of the nearest group', async () => {
    await make('stores', { name: 'nearest' }, asSouth);
    await make('stores', { name: 'nearest' }, asNorth);
    const { _id } = await make('nearest', { x: 1 }, asNorth);
    expect(entityOf(await asNorth('GET', `nearest/${_id}`)).x).toBe(1);
    expectRefusal(await asSouth('GET', `nearest/${_id}`), 404);
  });
});

describe('a store of the root group', () => {
  test('exists only for its members unless it is shared', async () => {
    const { _id } = await make('stores', { name: 'internal' });
    await make('internal', { x: 1 });
    expectRefusal(await asNorth('POST', 'internal', { x: 1 }), 404);
    entityOf(await service.admin('PATCH', `stores/${_id}`, { shared: true }));
    await make('internal', { x: 1 }, asNorth);
    entityOf(await service.admin('PATCH', `stores/${_id}`, { shared: false }));
    expectRefusal(await asNorth('POST', 'internal', { x: 1 }), 404);
  });

  test('is the only one that can be shared', async () => {
    expectRefusal(await asNorth('POST', 'stores', { name: 'everywhere', shared: true }), 400, 'shared');
    const { _id } = await make('stores', { name: 'everywhere' }, asNorth);
    expectRefusal(await asNorth('PATCH', `stores/${_id}`, { shared: true }), 400, 'shared');
  });
});

test('loses no acknowledged entity when a store is removed during writes', async () => {
  for (let round = 0; round < 10; round++) {
    const { _id } = await make('stores', { name: 'going' }, asNorth);
    const posting = Array.from({ length: 10 }, (_, nth) => asNorth('POST', 'going', { nth }));
    const [removed, ...posted] = await Promise.all([asNorth('DELETE', `stores/${_id}`), ...posting]);
    const kept = posted.filter(({ status }) => status === 200);
    expect(posted.map(({ status }) => status).filter((status) => status !== 200 && status !== 404)).toEqual([]);
    expect([200, 409]).toContain(removed?.status);
    if (removed?.status === 200) expect(kept).toEqual([]);
    const present = removed?.status === 200 ? [] : (await asNorth('GET', 'going')).body;
    expect(present.map((entity: { _id: string }) => entity._id).sort()).toEqual(
      kept.map(({ body }) => body._id).sort(),
    );
    for (const { body } of kept) await asNorth('DELETE', `going/${body._id}`);
    if (removed?.status === 409) entityOf(await asNorth('DELETE', `stores/${_id}`));
    // An entity that was refused may have made it anew: it is empty, and dropped by the next start.
    expect(await service.client.db().collection(`custom.going.${_id}`).countDocuments()).toBe(0);
  }
});

test('applies all concurrent changes of a store', async () => {
  const { _id } = await make('stores', { name: 'changed' }, asNorth);
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, nth) =>
      asNorth('PATCH', `stores/${_id}`, { schema: { properties: { [`p${nth}`]: { type: 'string' } } } }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  const { schema } = entityOf(await asNorth('GET', `stores/${_id}`));
  expect(Object.keys((schema as { properties: object }).properties)).toHaveLength(40);
});

test('removes what a process left when it ended while it created or removed a store, and nothing else', async () => {
  const database = { client: service.client, db: service.client.db() } as Parameters<typeof sweepStores>[0];
  const { _id } = await make('stores', { name: 'staying' }, asNorth);
  const lost = new ObjectId();
  for (const name of [`custom.lost.${lost}`, 'custom.of-somebody']) await database.db.createCollection(name);
  await sweepStores(database, Date.now());
  expect(await collections()).toEqual(expect.arrayContaining([`custom.lost.${lost}`]));
  await sweepStores(database, Date.now() + LIMITS.orphanGraceMs + 2_000);
  const left = await collections();
  expect(left).not.toContain(`custom.lost.${lost}`);
  expect(left).toEqual(expect.arrayContaining([`custom.staying.${_id}`, 'custom.of-somebody']));
});

test('answers another tenant while many users of one tenant send costly entities', async () => {
  const allOf = Array.from({ length: 900 }, () => ({ type: 'number', minimum: 0 }));
  await make('stores', { name: 'costly', schema: { properties: { items: { items: { allOf } } } } }, asNorth);
  await make('stores', { name: 'cheap', schema: { properties: { n: { type: 'number' } } } }, asSouth);
  const users = await Promise.all(Array.from({ length: 8 }, () => personIn(northGroup as string)));
  const items = Array.from({ length: LIMITS.jsonArrayItems }, (_, at) => at);
  const callers = users.flatMap(({ call }) => Array.from({ length: 5 }, () => call));
  const costly = callers.map((call) => call('POST', 'costly', { items }));
  await Promise.race(costly);
  await make('cheap', { n: 1 }, asSouth);
  // On a busy machine, some wait for too long.
  for (const { status } of await Promise.all(costly)) expect([400, 429]).toContain(status);
});

describe('the number of added stores', () => {
  const stores = () => service.client.db().collection('stores');
  const fill = async (count: number, branch: string[]) => {
    const ids = branch.map((id) => new ObjectId(id));
    const common = { group: ids.at(-1), branch: ids, access: [], owner: new ObjectId(), time: 0, filler: true };
    await stores().insertMany(
      Array.from({ length: count }, (_, nth) => ({ name: `f${nth}-${ids.length}`, ...common })),
    );
  };

  test('is limited per tenant, so that none uses the whole limit', async () => {
    const own = await stores().countDocuments({ branch: new ObjectId(southGroup) });
    await fill(LIMITS.customStoresPerTenant - own - 1, [ROOT_GROUP_ID, southGroup as string]);
    await make('stores', { name: 'last-of-south' }, asSouth);
    expectRefusal(
      await asSouth('POST', 'stores', { name: 'one-more' }),
      409,
      'your organisation already has 100 added stores',
    );
    await make('stores', { name: 'of-others' }, asNorth);
  });

  test('is limited in total', async () => {
    await fill(LIMITS.customStores - 1 - (await stores().countDocuments()), [ROOT_GROUP_ID]);
    await make('stores', { name: 'last-of-all' });
    const before = await collections();
    expectRefusal(await service.admin('POST', 'stores', { name: 'one-more' }), 409, '1000 added stores');
    expectRefusal(await asNorth('POST', 'stores', { name: 'one-more' }), 409, '1000 added stores');
    expect(await collections()).toEqual(before);
    await stores().deleteMany({ filler: true });
    await make('stores', { name: 'one-more' });
  });
});
