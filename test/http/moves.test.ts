/** Objects and users move to other groups: who sees them and what belongs to them afterwards, and no more before. Who may move them: move-rights.test.ts */
import { describe, expect, test } from '@jest/globals';
import { ROOT_GROUP_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { createPerson, ended, type Person } from '../support/callers.js';
import { type Call, type Listener, useService } from '../support/fixture.js';
import { until } from '../support/until.js';
import { useMovingPeople } from './moving-people.js';

const service = useService();
const { groups, people, make, makeObject, move, admin, withRole } = useMovingPeople(service);

const statusOf = async (person: Person, path: string): Promise<number> => (await person.call('GET', path)).status;

describe('an object', () => {
  test('is seen by those of its new group at once, with its commands and alarms, and no more by those of the former one', async () => {
    const id = await makeObject(groups.north);
    const rule = await make('rules', {
      name: 'Fast',
      when: { param: 'speed', op: '>', value: 100 },
      select: { objects: [id] },
    });
    await service.admin('POST', `objects/${id}/packets`, { speed: 130, lat: 48, lon: 11 });
    const command = (await people.northAdmin.call('POST', `objects/${id}/commands/stop`, {})).headers.location;
    const commandPath = String(command).replace(/^.*\/api\/v1\//, '');
    let alarm = '';
    await until(async () => {
      [alarm = ''] = (await service.admin('GET', `alarms?where.rule=${rule._id}`)).body.map(
        ({ _id }: { _id: string }) => _id,
      );
      return alarm !== '';
    }, 'an alarm');
    const paths = [`objects/${id}`, `objects/${id}/packets`, commandPath, `alarms/${alarm}`];
    const seenBy = (person: Person) => Promise.all(paths.map((path) => statusOf(person, path)));
    expect([await seenBy(people.northAdmin), await seenBy(people.southAdmin)]).toEqual([
      [200, 200, 200, 200],
      [404, 404, 404, 404],
    ]);
    const before = (await service.admin('GET', `objects/${id}`)).body;
    const { status, body } = await move(id, groups.south);
    expect(status).toBe(200);
    expect(body).toEqual({
      ...before,
      group: groups.south,
      branch: [ROOT_GROUP_ID, groups.south],
      _at: expect.any(Number),
      success: true,
    });
    expect(Object.keys(body).at(-1)).toBe('success');
    expect([await seenBy(people.northAdmin), await seenBy(people.southAdmin)]).toEqual([
      [404, 404, 404, 404],
      [200, 200, 200, 200],
    ]);
    // Its lists, too.
    const listed = async ({ call }: Person, store: string) =>
      (await call('GET', `${store}?where.object=${id}&only=_id`)).body.length;
    expect([await listed(people.northAdmin, 'commands'), await listed(people.southAdmin, 'commands')]).toEqual([0, 1]);
    // A command of now belongs to the new group from the beginning.
    const next = String((await service.admin('POST', `objects/${id}/commands/start`, {})).headers.location);
    expect((await service.admin('GET', next.replace(/^.*\/api\/v1\//, ''))).body.branch).toEqual(body.branch);
    // Packets say the group that they came in.
    const packet = (await service.admin('POST', `objects/${id}/packets`, { speed: 1 })).body;
    const [first] = (await service.admin('GET', `objects/${id}/packets`)).body;
    expect([first._gid, packet._gid]).toEqual([groups.north, groups.south]);
  });

  test('has no events any more for those who saw it, and is new to those who see it now', async () => {
    const id = await makeObject(groups.team);
    const listen = ({ token }: Person): Promise<Listener> => service.listen(token, 'everything');
    const [above, team, south, root] = await Promise.all([
      listen(people.northAdmin),
      listen(people.teamAdmin),
      listen(people.southAdmin),
      service.tokenOf('admin', 'correct horse battery').then((token) => service.listen(token, 'everything')),
    ]);
    const namesOf = (listener: Listener) =>
      listener
        .take()
        .filter(({ payload }) => [payload.id, payload._oid].includes(id))
        .map(({ name }) => name);
    const all = () => [above, team, south, root].map(namesOf);
    await move(id, groups.south);
    await service.settled();
    const update = root.received().find(({ payload }) => payload.id === id);
    expect(update?.payload).toEqual({
      id,
      before: { group: groups.team, branch: [ROOT_GROUP_ID, groups.north, groups.team] },
      after: { group: groups.south, branch: [ROOT_GROUP_ID, groups.south] },
    });
    expect(all()).toEqual([['object-removed'], ['object-removed'], ['object-created'], ['object-update']]);
    await service.admin('POST', `objects/${id}/packets`, { speed: 2 });
    await service.admin('PATCH', `objects/${id}`, { status: 'x' });
    await service.settled();
    const later = ['object-packet', 'object-update'];
    expect(all()).toEqual([[], [], later, later]);
    // Up and down within a branch, who sees both places hears of a change.
    await move(id, groups.north);
    await service.settled();
    expect(all()).toEqual([['object-created'], [], ['object-removed'], ['object-update']]);
    await move(id, groups.team);
    await service.settled();
    expect(all()).toEqual([['object-update'], ['object-created'], [], ['object-update']]);
    for (const one of [above, team, south, root]) one.close();
  });

  test('keeps its id, model, labels, history, device and share, and its owner sees it', async () => {
    const model = (await make('models', { name: 'Vans of north', group: groups.north }))._id;
    await make('labels', { name: 'cold', color: 'teal', group: groups.north });
    const fields = { model, labels: ['cold'], config: { auth: { username: 'dev', password: 'device-1' } } };
    const id = await makeObject(groups.north, fields, people.northAdmin.call);
    const ownId = (await service.admin('GET', `objects/${id}`)).body.id;
    await service.admin('POST', `objects/${id}/packets`, { speed: 7 });
    const friend = await createPerson(service, { group: groups.team });
    await service.admin('POST', `objects/${id}/access`, { user: friend.id });
    const colleague = await createPerson(service, { group: groups.north });
    expect((await move(id, groups.south)).status).toBe(200);
    const moved = (await people.southAdmin.call('GET', `objects/${encodeURIComponent(ownId)}`)).body;
    expect(moved).toMatchObject({ _id: id, id: ownId, model, labels: ['cold'], access: [friend.id] });
    expect(moved.config.auth.username).toBe('dev');
    expect((await people.southAdmin.call('GET', `objects/${id}/packets`)).body).toMatchObject([{ speed: 7 }]);
    // Who may read it by its owner, its share and its group; nobody else of the former group.
    expect([
      await statusOf(people.northAdmin, `objects/${id}`),
      await statusOf(friend, `objects/${id}`),
      await statusOf(colleague, `objects/${id}`),
    ]).toEqual([200, 200, 404]);
    // The new group reads the model because of the object, and does not change it; the label of the former group is not theirs.
    expect(await statusOf(people.southAdmin, `models/${model}`)).toBe(200);
    expect((await people.southAdmin.call('PATCH', `models/${model}`, { name: 'x' })).status).toBe(403);
    expect((await people.southAdmin.call('GET', 'labels?where.name=cold')).body).toEqual([]);
  });

  test('is lost to tokens, links and rules of those who no longer see it', async () => {
    const creator = await admin(groups.north);
    const id = await makeObject(groups.north);
    const scopes = [`GET /objects/${id}`, `GET /objects/${id}/*`];
    const scoped = service.as((await make('tokens', { name: 'of one', scopes }, creator.call)).token);
    const { secret } = await make(`objects/${id}/links`, { name: 'For a customer' }, creator.call);
    const open = async () => (await service.as(null)('POST', 'shared', { secret })).status;
    expect([(await scoped('GET', `objects/${id}`)).status, await open()]).toEqual([200, 200]);
    await move(id, groups.south);
    expect([(await scoped('GET', `objects/${id}`)).status, await open()]).toEqual([404, 404]);
    // It comes back with the object.
    await move(id, groups.team);
    expect([(await scoped('GET', `objects/${id}`)).status, await open()]).toEqual([200, 200]);
  });

  test('takes along the commands that are sent while it moves', async () => {
    const id = await makeObject(groups.north);
    const send = (command: string) => service.admin('POST', `objects/${id}/commands/${command}`, {});
    for (const to of [groups.south, groups.team, groups.north, groups.south]) {
      await Promise.all([send('a'), send('b'), move(id, to), send('c'), send('d')]);
    }
    const branch = (await service.admin('GET', `objects/${id}`)).body.branch;
    const commands = (await service.admin('GET', `commands?where.object=${id}`)).body;
    expect(commands.map((command: { branch: string[] }) => command.branch)).toEqual(Array(16).fill(branch));
  });

  test('stays as it is when it is moved to where it is', async () => {
    const id = await makeObject(groups.north);
    const before = (await service.admin('GET', `objects/${id}`)).body;
    expect((await move(id, groups.north.toUpperCase())).body).toEqual(before);
  });

  test('is moved by no other request', async () => {
    const id = await makeObject(groups.north);
    const { body } = await service.admin('PATCH', `objects/${id}`, { group: groups.south, branch: [], status: 'x' });
    expect([body.group, body.status]).toEqual([groups.north, 'x']);
  });
});

describe('a user', () => {
  const moveUser = (id: string, group: string, call: Call = service.admin) =>
    call('POST', `users/${id}/move`, { group });

  test('sees what the new group sees, and nothing of the former one, on open sockets too', async () => {
    const [ofNorth, ofSouth] = await Promise.all([makeObject(groups.north), makeObject(groups.south)]);
    const person = await createPerson(service, { group: groups.north });
    const own = (await make('tokens', { name: 'mine' }, people.northAdmin.call))._id;
    const token = (await person.call('POST', 'account/tokens', { name: 'of a script' })).body._id;
    const listener = await service.listen(person.token);
    const { status, body } = await moveUser(person.id, groups.south);
    expect([status, body.group, body.branch]).toEqual([200, groups.south, [ROOT_GROUP_ID, groups.south]]);
    expect([await statusOf(person, `objects/${ofNorth}`), await statusOf(person, `objects/${ofSouth}`)]).toEqual([
      404, 200,
    ]);
    for (const id of [ofNorth, ofSouth]) await service.admin('POST', `objects/${id}/packets`, { speed: 1 });
    await service.settled();
    // What it has read before is no longer what it may read.
    expect(listener.take().map(({ name, payload }) => [name, payload._oid ?? payload.reason])).toEqual([
      ['gap', 'user moved'],
      ['object-packet', ofSouth],
    ]);
    listener.close();
    // The tokens of the user are those of the new administrators.
    expect([
      await statusOf(people.northAdmin, `tokens/${token}`),
      await statusOf(people.southAdmin, `tokens/${token}`),
      await statusOf(people.northAdmin, `tokens/${own}`),
      await statusOf(people.northAdmin, `users/${person.id}`),
    ]).toEqual([404, 200, 200, 404]);
    expect((await people.southAdmin.call('DELETE', `tokens/${token}`)).status).toBe(200);
  });

  test('is moved by those alone who may change and create such a user', async () => {
    const boss = await admin(groups.north);
    const clerk = await withRole(['GET /*', 'POST /users/*', 'PATCH /users/*'], groups.north);
    const plain = await createPerson(service, {
      group: groups.north,
      role: (await make('roles', { name: 'p', credentials: ['GET /*'] }))._id,
    });
    expect((await moveUser(boss.id, groups.team, clerk)).status).toBe(403);
    expect((await moveUser(plain.id, groups.team, clerk)).status).toBe(200);
    expect((await moveUser(plain.id, groups.south, people.northAdmin.call)).status).toBe(400);
    expect((await moveUser(plain.id, groups.south, people.southAdmin.call)).status).toBe(404);
    const own = await moveUser(people.northAdmin.id, groups.team, people.northAdmin.call);
    expect([own.status, own.body.helper?.message]).toEqual([
      409,
      'this is your own account: another administrator has to do this',
    ]);
    expect(await statusOf(people.northAdmin, `groups/${groups.north}`)).toBe(200);
  });
});

describe('many objects', () => {
  const marked = async (mark: string, places: readonly string[]): Promise<string[]> =>
    (await Promise.all(places.map((group) => makeObject(group, { status: mark })))).sort();
  const groupsOf = async (ids: readonly string[]): Promise<string[]> =>
    Promise.all(ids.map(async (id) => (await service.admin('GET', `objects/${id}`)).body.group));

  test('are moved as filters select them; a dry run moves none and says which would be refused', async () => {
    const ids = await marked('many', [groups.north, groups.team, groups.team, groups.south]);
    const foreign = ids[(await groupsOf(ids)).indexOf(groups.south)] as string;
    await service.admin('POST', `objects/${foreign}/access`, { user: people.northAdmin.id });
    const before = await groupsOf(ids);
    const path = `groups/${groups.team}/objects?where.status=many`;
    const dry = await people.northAdmin.call('POST', `${path}&dryRun=true`);
    const refused = { _id: foreign, code: '403', helper: { message: 'it belongs to a group that is not yours' } };
    expect([dry.status, dry.body]).toEqual([
      200,
      {
        success: true,
        count: 4,
        done: 0,
        more: false,
        last: ids.at(-1),
        failed: [expect.objectContaining(refused)],
      },
    ]);
    expect(await groupsOf(ids)).toEqual(before);
    const done = await people.northAdmin.call('POST', path);
    expect(done.body).toMatchObject({ count: 4, done: 3, more: false, failed: [refused] });
    expect((await groupsOf(ids)).sort()).toEqual([groups.team, groups.team, groups.team, groups.south].sort());
  });

  test('are refused without a filter, with a group of others, and without the rights for each', async () => {
    const ids = await marked('guarded', [groups.north, groups.north]);
    const query = 'objects?where.status=guarded';
    const ask = async (path: string, call: Call) => {
      const { status, body } = await call('POST', path);
      return [status, body.helper?.message ?? body.failed?.map(({ code }: { code: string }) => code)];
    };
    expect(await ask(`groups/${groups.team}/objects`, service.admin)).toEqual([
      400,
      'where, search, from or to: at least one filter is required',
    ]);
    const none = ['400', '400'];
    expect(await ask(`groups/${groups.south}/${query}`, people.northAdmin.call)).toEqual([200, none]);
    expect(await ask(`groups/${groups.south}/${query}&dryRun=1`, people.northAdmin.call)).toEqual([200, none]);
    const credentials = ['GET /*', 'POST /groups/*/objects', 'POST /objects', 'PATCH /objects/*'];
    const missing = await withRole(credentials, groups.north);
    expect(await ask(`groups/${groups.team}/${query}`, missing)).toEqual([200, ['403', '403']]);
    const one = await withRole([...credentials, `POST /objects/${ids[0]}/move`], groups.north);
    expect(await ask(`groups/${groups.team}/${query}&dryRun=true`, one)).toEqual([200, ['403']]);
    expect(await ask(`groups/${groups.team}/${query}`, one)).toEqual([200, ['403']]);
    expect(await groupsOf(ids)).toEqual([groups.team, groups.north]);
    expect(LIMITS.bulkEntities).toBe(1_000);
  });

  test('can have an own id that is the name of a part of the path', async () => {
    const id = (await make('objects', { id: 'move', name: 'Move' }))._id;
    expect((await service.admin('GET', 'objects/move')).body._id).toBe(id);
    expect((await service.admin('POST', 'objects/move/move', { group: groups.north })).body.group).toBe(groups.north);
  });
});

test('records each move, with the group before and after', async () => {
  const ids = await Promise.all([
    makeObject(groups.north, { status: 'told' }),
    makeObject(groups.team, { status: 'told' }),
  ]);
  const person = await createPerson(service, { group: groups.north });
  await service.admin('POST', `users/${person.id}/move`, { group: groups.team });
  await service.admin('POST', `groups/${groups.south}/objects?where.status=told&dryRun=true`);
  await service.admin('POST', `groups/${groups.south}/objects?where.status=told`);
  await move(ids[0] as string, groups.team);
  await move(ids[0] as string, groups.team);
  const told = async () =>
    (await service.admin('GET', 'audit?where.action=group changed')).body
      .filter(({ entity }: { entity: string }) => [...ids, person.id].includes(entity))
      .map(({ entity, method, path, fields, before, after }: Record<string, unknown>) => ({
        entity,
        method,
        path,
        fields,
        before,
        after,
      }));
  const entry = (entity: unknown, path: string, from: string, to: string) => ({
    entity,
    method: 'POST',
    path,
    fields: ['group'],
    before: { group: from },
    after: { group: to },
  });
  const bulk = `/groups/${groups.south}/objects`;
  const expected = [
    entry(person.id, `/users/${person.id}/move`, groups.north, groups.team),
    entry(ids[0], bulk, groups.north, groups.south),
    entry(ids[1], bulk, groups.team, groups.south),
    entry(ids[0], `/objects/${ids[0]}/move`, groups.south, groups.team),
  ];
  await until(async () => (await told()).length === expected.length, 'the moves are recorded');
  expect(await told()).toEqual(expect.arrayContaining(expected));
  expect(
    (await service.admin('GET', 'audit?where.action=rights changed')).body.filter(
      ({ entity, method }: { entity: string; method: string }) => entity === person.id && method === 'POST',
    ),
  ).toHaveLength(1);
});

test('ends no session of a user who is moved', async () => {
  const person = await createPerson(service, { group: groups.north });
  const listener = await service.listen(person.token);
  await service.admin('POST', `users/${person.id}/move`, { group: groups.south });
  await service.settled();
  expect([listener.socket.connected, await statusOf(person, 'account')]).toEqual([true, 200]);
  const closed = ended(listener);
  await service.admin('PATCH', `users/${person.id}`, { active: false });
  await closed;
});
