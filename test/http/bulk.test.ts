/** PATCH and DELETE of a list: what GET would list is changed, each entity by itself, and nothing else. */
import { expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();

async function createObjects(count: number, status: string): Promise<string[]> {
  const made = Array.from({ length: count }, () =>
    service.admin('POST', 'objects', { id: `o-${new ObjectId()}`, name: 'Truck', status }),
  );
  return (await Promise.all(made)).map(({ body }) => body._id).sort();
}

async function createUser(credentials: string[]) {
  const login = `user-${new ObjectId()}`;
  const role = (await service.admin('POST', 'roles', { name: login, credentials })).body._id;
  await service.admin('POST', 'users', { login, password: 'long enough', role });
  return service.as(await service.tokenOf(login, 'long enough'));
}

const statusesOf = async (ids: string[]): Promise<string[]> =>
  Promise.all(ids.map(async (id) => (await service.admin('GET', `objects/${id}`)).body.status));

test('changes the selected entities, with an event for each', async () => {
  const ids = await createObjects(12, 'red');
  const others = await createObjects(2, 'blue');
  const listener = await service.listen(await service.tokenOf('admin', 'correct horse battery'));
  const dry = await service.admin('PATCH', 'objects?where.status=red&dryRun=true', { status: 'green' });
  expect(dry.body).toEqual({ success: true, count: 12, more: false, last: ids.at(-1), done: 0, failed: [] });
  const { body } = await service.admin('PATCH', 'objects?where.status=red', { status: 'green', config: { a: 1 } });
  expect(body).toEqual({ success: true, count: 12, more: false, last: ids.at(-1), done: 12, failed: [] });
  expect(new Set(await statusesOf(ids))).toEqual(new Set(['green']));
  expect(new Set(await statusesOf(others))).toEqual(new Set(['blue']));
  await service.settled();
  const updates = listener.take().filter(({ name }) => name === 'object-update');
  expect(updates.map(({ payload }) => payload.id).sort()).toEqual(ids);
});

test('continues after the last entity if there are more', async () => {
  const ids = await createObjects(5, 'many');
  const first = (await service.admin('PATCH', 'objects?where.status=many&limit=3', { name: 'x' })).body;
  expect(first).toMatchObject({ count: 3, done: 3, more: true, last: ids[2] });
  const rest = (await service.admin('PATCH', `objects?where.status=many&after=${first.last}`, { name: 'x' })).body;
  expect(rest).toMatchObject({ count: 2, done: 2, more: false, last: ids[4] });
});

test('removes the selected objects with their packets', async () => {
  const ids = await createObjects(6, 'old');
  const [other] = await createObjects(1, 'young');
  await service.admin('POST', `objects/${ids[0]}/packets`, { speed: 1 });
  const { body } = await service.admin('DELETE', 'objects?where.status=old');
  expect(body).toMatchObject({ count: 6, done: 6, more: false, failed: [] });
  expect((await service.admin('GET', `objects/${ids[3]}`)).status).toBe(404);
  expect((await service.admin('GET', `objects/${other}`)).status).toBe(200);
  const left = { _oid: new ObjectId(ids[0]) };
  await until(async () => (await service.client.db().collection('packets').countDocuments(left)) === 0);
});

test('selects objects by their state, and continues after the last one', async () => {
  const ids = await createObjects(5, 'stateful');
  const offline = ids.filter((_, at) => at % 2 === 0);
  for (const id of ids) await service.admin('POST', `objects/${id}/packets`, { online: !offline.includes(id) });
  const query = 'objects?where.status=stateful&where.state.online=false';
  const first = (await service.admin('PATCH', `${query}&limit=2`, { name: 'Away' })).body;
  expect(first).toMatchObject({ count: 2, done: 2, more: true, last: offline[1], failed: [] });
  const rest = (await service.admin('PATCH', `${query}&after=${first.last}`, { name: 'Away' })).body;
  expect(rest).toMatchObject({ count: 1, done: 1, more: false, last: offline[2] });
  const changed = (await service.admin('GET', 'objects?where.name=Away&only=_id')).body;
  expect(changed.map(({ _id }: { _id: string }) => _id).sort()).toEqual(offline);
  expect((await service.admin('DELETE', `${query}&dryRun=true`)).body).toMatchObject({ count: 3, done: 0 });
  expect((await service.admin('DELETE', query)).body).toMatchObject({ count: 3, done: 3, more: false });
  const left = (await service.admin('GET', 'objects?where.status=stateful&only=_id')).body;
  expect(left.map(({ _id }: { _id: string }) => _id).sort()).toEqual(ids.filter((id) => !offline.includes(id)));
});

test('removes no object whose state is unknown to a filter by time', async () => {
  const [id, silent] = (await createObjects(2, 'timed')) as [string, string];
  await service.admin('POST', `objects/${id}/packets`, { time: Date.UTC(2020, 0, 1) });
  const { body } = await service.admin('DELETE', `objects?where.status=timed&where.state.time=${Date.UTC(2020, 0, 1)}`);
  expect(body).toMatchObject({ count: 1, done: 1, last: id });
  expect((await service.admin('GET', `objects/${silent}`)).status).toBe(200);
});

test('reports entities that were not changed, with the reason', async () => {
  const ids = await createObjects(3, 'unique');
  const id = `taken-${new ObjectId()}`;
  const { status, body } = await service.admin('PATCH', 'objects?where.status=unique', { id });
  expect([status, body.count, body.done]).toEqual([200, 3, 1]);
  expect(body.failed.map(({ code }: { code: string }) => code)).toEqual(['409', '409']);
  expect(ids).toEqual(expect.arrayContaining(body.failed.map(({ _id }: { _id: string }) => _id)));
});

test('requires the permission for the store and for each entity', async () => {
  const [id, other] = (await createObjects(2, 'guarded')) as [string, string];
  const query = 'objects?where.status=guarded';
  const alone = await createUser(['GET /*', 'PATCH /objects']);
  expect((await alone('PATCH', query, { name: 'x' })).body).toMatchObject({
    count: 2,
    done: 0,
    failed: [{ code: '403' }, {}],
  });
  const single = await createUser(['GET /*', `PATCH /objects/${id}`]);
  expect((await single('PATCH', query, { name: 'x' })).status).toBe(403);
  const both = await createUser(['GET /*', 'PATCH /objects', `PATCH /objects/${id}`]);
  expect((await both('PATCH', query, { name: 'x' })).body).toMatchObject({
    done: 1,
    failed: [{ _id: other, code: '403' }],
  });
});

test.each([
  ['objects', 'where, search, from or to: at least one filter is required'],
  ['objects?limit=5', 'where, search, from or to: at least one filter is required'],
  ['objects?search=%20', 'where, search, from or to: at least one filter is required'],
  ['objects?from=', 'where, search, from or to: at least one filter is required'],
  ['objects?from=20261125', 'from: these digits look like a date: write 2026-11-25'],
  ['objects?to=1795500000', expect.stringMatching(/^to: these look like seconds/)],
  ['objects?from=1&wher.status=x', '"wher.status": not a parameter of bulk requests'],
  ['objects?from=1&where.$status=x', '"where.$status": not a field name'],
  ['objects?from=1&meta=true', '"meta": not a parameter of bulk requests'],
  ['objects?from=1&dry_run=true', '"dry_run": not a parameter of bulk requests'],
  ['objects?from=1&dryRun=yes', 'dryRun: expected true or false'],
])('refuses DELETE %s', async (path, message) => {
  const [id] = await createObjects(1, 'here');
  const { status, body } = await service.admin('DELETE', path);
  expect([status, body.helper.message]).toEqual([400, message]);
  expect((await service.admin('GET', `objects/${id}`)).status).toBe(200);
});

test.each([
  'dryRun=true',
  'dryrun=1',
  'dry_run=true',
  'from=2026-11-20',
  'to=2026-11-20T10:00',
  'begin=0&end=1',
  'where.status=red',
  'where_status=red',
  'search=x',
  'where.status=',
  'dryRun=',
  'dryrun=false',
  'from=&from=2026-11-20',
  'dryRun=false&dryRun=true',
])('refuses to change or remove one entity where a selection is meant: ?%s', async (query) => {
  const [id] = await createObjects(1, 'here');
  const { body: before } = await service.admin('GET', `objects/${id}`);
  for (const method of ['DELETE', 'PATCH']) {
    const { status, body } = await service.admin(
      method,
      `objects/${id}?${query}`,
      method === 'PATCH' ? { name: 'y' } : undefined,
    );
    expect([method, status, body.helper.message]).toEqual([
      method,
      400,
      expect.stringContaining('nothing was changed'),
    ]);
  }
  expect((await service.admin('GET', `objects/${id}`)).body).toEqual(before);
  // Others are ignored.
  expect((await service.admin('DELETE', `objects/${id}?_=1&fromm=2&limit=5`)).status).toBe(200);
});

// A form sends its empty fields, too, and a client that always says `dryRun` says that it means it.
test.each(['from=&to=&search=', 'begin=&end=', 'search=%20', 'dryRun=false', 'dryRun=0&from='])(
  'changes and removes one entity where nothing is selected: ?%s',
  async (query) => {
    const [id] = await createObjects(1, 'here');
    expect((await service.admin('PATCH', `objects/${id}?${query}`, { name: 'y' })).body).toMatchObject({ name: 'y' });
    expect((await service.admin('DELETE', `objects/${id}?${query}`)).status).toBe(200);
    expect((await service.admin('GET', `objects/${id}`)).status).toBe(404);
  },
);

test('refuses an empty change, and stores that determine permissions', async () => {
  expect((await service.admin('PATCH', 'objects?search=x', {})).status).toBe(400);
  expect((await service.admin('PATCH', 'objects?search=x', { owner: '0'.repeat(24) })).status).toBe(400);
  for (const store of ['users', 'roles', 'groups', 'tokens', 'stores']) {
    expect((await service.admin('DELETE', `${store}?search=x`)).status).toBe(405);
  }
});

test('works for added stores, with a limited number at a time', async () => {
  await service.admin('POST', 'stores', { name: 'drivers' });
  let made = 0;
  const createSome = async (): Promise<void> => {
    while (made++ <= LIMITS.bulkEntities) await service.admin('POST', 'drivers', { name: 'D' });
  };
  await Promise.all(Array.from({ length: 20 }, createSome));
  const { body } = await service.admin('DELETE', 'drivers?where.name=D&limit=10000');
  expect(body).toMatchObject({ count: LIMITS.bulkEntities, done: LIMITS.bulkEntities, more: true });
  expect((await service.admin('DELETE', 'drivers?where.name=D')).body).toMatchObject({
    count: 1,
    done: 1,
    more: false,
  });
});
