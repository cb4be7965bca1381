/** The tree of groups: moved, bounded in depth, removed when empty. */
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID, ROOT_GROUP_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Call, type Listener, type ReceivedEvent, useService } from '../support/fixture.js';
import { until } from '../support/until.js';
import { treeOf } from './group-tree.js';

// Every test waits for it.
Object.assign(LIMITS, { auditDelayMs: 50 });

const service = useService();
const make = async (path: string, fields: object, call: Call = service.admin) =>
  entityOf(await call('POST', path, fields));
const group = (name: string, parent: string = ROOT_GROUP_ID, call: Call = service.admin) =>
  make('groups', { name, parent }, call);
const move = (id: string, parent: unknown, call: Call = service.admin) => call('PATCH', `groups/${id}`, { parent });

/**
 *    root ── north ── team ── crew
 *        └── south
 */
interface Groups {
  readonly north: string;
  readonly south: string;
  readonly team: string;
  readonly crew: string;
}
let groups: Groups;
beforeEach(async () => {
  const north = await group('north');
  const south = await group('south');
  const team = await group('team', north._id);
  const crew = await group('crew', team._id);
  groups = { north: north._id, south: south._id, team: team._id, crew: crew._id };
});

describe('a moved group', () => {
  let people: Record<'north' | 'south' | 'team' | 'crew', Person>;
  beforeEach(async () => {
    const person = (of: string, role = VIEWER_ROLE_ID) => createPerson(service, { group: of, role });
    people = {
      north: await person(groups.north),
      south: await person(groups.south),
      team: await person(groups.team),
      crew: await person(groups.crew),
    };
    // Otherwise their logins may be recorded while a test moves their groups: such records are corrected, but later.
    const audit = service.client.db().collection('audit');
    await until(() => audit.findOne({ user: new ObjectId(people.crew.id) }), 'the logins to be recorded');
  });

  test('takes along everything below it: all stores, also added ones, tokens, commands and security events', async () => {
    const storeName = `moved-${new ObjectId()}`;
    await make('stores', { name: storeName });
    const object = await make('objects', { id: storeName, name: 'x', group: groups.crew });
    expect((await service.admin('POST', `objects/${object._id}/commands/stop`, {})).status).toBe(200);
    for (const [store, of] of Object.entries({ labels: groups.team, models: groups.crew, [storeName]: groups.crew })) {
      await make(store, { name: 'x', group: of });
    }
    await service.client
      .db()
      .collection('audit')
      .insertOne({
        action: 'login',
        user: new ObjectId(people.crew.id),
        group: new ObjectId(groups.crew),
        branch: [ROOT_GROUP_ID, groups.north, groups.team, groups.crew].map((id) => new ObjectId(id)),
        access: [],
      });
    const moved = entityOf(await move(groups.team, groups.south));
    expect(moved).toEqual({
      ...(await service.admin('GET', `groups/${groups.team}`)).body,
      success: undefined,
      parent: groups.south,
      branch: [ROOT_GROUP_ID, groups.south, groups.team],
      _at: expect.any(Number),
    });
    expect(Object.keys(moved).filter((name) => name.startsWith('_'))).toEqual(['_id', '_at']);
    const held = await treeOf(service);
    expect(held.untrue).toEqual([]);
    const inCrew = held.entities.filter((entity) => entity.group === groups.crew);
    expect(inCrew.map(({ branch }) => branch)).toEqual(
      inCrew.map(() => [ROOT_GROUP_ID, groups.south, groups.team, groups.crew]),
    );
    expect([...new Set(inCrew.map(({ collection }) => collection.replace(/\.[0-9a-f]{24}$/, '')))].sort()).toEqual(
      ['audit', 'commands', `custom.${storeName}`, 'groups', 'models', 'objects', 'tokens', 'users'].sort(),
    );
  });

  test('is visible to its new ancestors and not to its former ones; its own members see the same', async () => {
    const label = await make('labels', { name: 'x', group: groups.crew });
    const sight = async () => {
      const seen: Record<string, unknown[]> = {};
      for (const [name, { call }] of Object.entries(people)) {
        const listed = (await call('GET', 'labels')).body.map(({ _id }: { _id: string }) => _id);
        const { count } = (await call('GET', 'labels?meta=true')).body;
        const single = await call('GET', `labels/${label._id}`);
        seen[name] = [listed.includes(label._id), listed.length === count, single.status];
      }
      return seen;
    };
    const yes = [true, true, 200];
    const no = [false, true, 404];
    expect(await sight()).toEqual({ north: yes, south: no, team: yes, crew: yes });
    entityOf(await move(groups.team, groups.south));
    expect(await sight()).toEqual({ north: no, south: yes, team: yes, crew: yes });
    expectRefusal(await people.north.call('GET', `groups/${groups.team}`), 404);
    entityOf(await move(groups.crew, ROOT_GROUP_ID));
    expect(await sight()).toEqual({ north: no, south: no, team: no, crew: yes });
  });

  test('reaches its new ancestors with the very next event', async () => {
    const object = await make('objects', { id: `received-${new ObjectId()}`, name: 'x', group: groups.crew });
    // Later subscribers do not receive it.
    await service.settled();
    const listeners: Record<string, Listener> = {};
    for (const [name, { token }] of Object.entries(people)) listeners[name] = await service.listen(token, 'everything');
    const toText = ({ name, payload }: ReceivedEvent) => {
      if (name === 'object-packet') return payload.n;
      return name === 'object-update' ? (payload.after.status ?? Object.keys(payload.after)) : name;
    };
    const received = async () => {
      await service.settled();
      return Object.fromEntries(
        Object.entries(listeners).map(([name, listener]) => [name, listener.take().map(toText)]),
      );
    };
    const packet = (n: number) => service.admin('POST', `objects/${object._id}/packets`, { n });
    await packet(1);
    expect(await received()).toEqual({ north: [1], south: [], team: [1], crew: [1] });
    entityOf(await move(groups.team, groups.south));
    await packet(2);
    await service.admin('PATCH', `objects/${object._id}`, { status: 'seen' });
    const after = [['branch'], 2, 'seen'];
    expect(await received()).toEqual({
      north: ['object-removed'],
      south: ['object-created', 2, 'seen'],
      team: after,
      crew: after,
    });
    for (const listener of Object.values(listeners)) listener.close();
  });

  test('stays in place if a PATCH contains its own parent, in any spelling', async () => {
    const read = entityOf(await service.admin('GET', `groups/${groups.team}`));
    const changed = entityOf(await service.admin('PATCH', `groups/${groups.team}`, { ...read, name: 'renamed' }));
    expect(changed).toEqual({ ...read, name: 'renamed', _at: expect.any(Number) });
    entityOf(await move(groups.team, groups.north.toUpperCase()));
    const root = entityOf(await service.admin('GET', `groups/${ROOT_GROUP_ID}`));
    expect(entityOf(await service.admin('PATCH', `groups/${ROOT_GROUP_ID}`, root)).branch).toEqual([ROOT_GROUP_ID]);
    expect((await treeOf(service)).untrue).toEqual([]);
  });
});

describe('an invalid move', () => {
  // The log of security events grows by refusals.
  const entities = async () => (await treeOf(service)).entities.filter(({ collection }) => collection !== 'audit');
  let northAdmin: Person;
  let before: Awaited<ReturnType<typeof entities>>;
  beforeEach(async () => {
    northAdmin = await createPerson(service, { group: groups.north, role: ADMINISTRATOR_ROLE_ID });
    before = await entities();
  });
  const refuses = async (id: string, parent: unknown, status: number, call: Call = service.admin) => {
    expectRefusal(await move(id, parent, call), status, status === 400 ? 'parent' : undefined);
    expect(await entities()).toEqual(before);
  };

  test('is refused to the group itself, or below it', async () => {
    await refuses(groups.team, groups.team, 400);
    await refuses(groups.team, groups.crew, 400);
    await refuses(groups.north, groups.crew, 400);
    await refuses(ROOT_GROUP_ID, groups.north, 400);
  });

  test.each([null, 'nowhere', 'f'.repeat(24), 1, '', [], {}, [ROOT_GROUP_ID], { $ne: null }])(
    'is refused to %j, which is not a group',
    async (parent) => refuses(groups.team, parent, 400),
  );

  test('is refused out of or into foreign groups, and for the own group', async () => {
    const { call } = northAdmin;
    await refuses(groups.team, groups.south, 400, call);
    await refuses(groups.team, ROOT_GROUP_ID, 400, call);
    await refuses(groups.north, groups.team, 400, call);
    await refuses(groups.south, groups.north, 404, call);
    await refuses(ROOT_GROUP_ID, groups.north, 404, call);
    entityOf(await move(groups.crew, groups.north, call));
  });

  test('is refused for a group that is only shared with the caller, and to one', async () => {
    entityOf(await service.admin('POST', `groups/${groups.south}/access`, { user: northAdmin.id }));
    before = await entities();
    expect((await northAdmin.call('GET', `groups/${groups.south}`)).status).toBe(200);
    await refuses(groups.south, groups.north, 404, northAdmin.call);
    await refuses(groups.team, groups.south, 400, northAdmin.call);
  });

  test('is refused without the permission to change groups', async () => {
    const viewer = await createPerson(service, { group: groups.north });
    before = await entities();
    await refuses(groups.crew, groups.north, 403, viewer.call);
  });
});

describe('the maximum depth of groups', () => {
  let chain: string[];
  beforeAll(async () => {
    chain = [ROOT_GROUP_ID];
    while (chain.length < LIMITS.branchDepth) chain.push((await group('deep', chain.at(-1)))._id);
  });

  test('applies on creation', async () => {
    expectRefusal(await service.admin('POST', 'groups', { name: 'x', parent: chain.at(-1) }), 400, 'parent');
  });

  test('applies to a move, including the groups below', async () => {
    for (const [id, parent, status] of [
      [groups.crew, chain.at(-1), 400],
      [groups.team, chain.at(-2), 400],
      [groups.north, chain.at(-3), 400],
      [groups.north, chain.at(-4), 200],
    ] as const) {
      expect([parent, (await move(id, parent)).status]).toEqual([parent, status]);
    }
    const { branch } = entityOf(await service.admin('GET', `groups/${groups.crew}`));
    expect(branch).toEqual([...chain.slice(0, -3), groups.north, groups.team, groups.crew]);
    expect((await treeOf(service)).untrue).toEqual([]);
  });
});

describe('the removal of a group', () => {
  test('requires an empty group; the refusal names its content and changes nothing', async () => {
    const name = `kept-${new ObjectId()}`;
    await make('stores', { name });
    const inside = [
      `labels/${(await make('labels', { name: 'x', group: groups.team }))._id}`,
      `labels/${(await make('labels', { name: 'x', group: groups.crew }))._id}`,
      `${name}/${(await make(name, { group: groups.crew }))._id}`,
      `groups/${groups.crew}`,
    ];
    const answer = await service.admin('DELETE', `groups/${groups.team}`);
    expectRefusal(answer, 409, 'not empty');
    const said = answer.body.helper.message.split(': ')[1].split(', ').sort();
    expect(said).toEqual(['1 in groups', `1 in ${name}`, '2 in labels'].sort());
    for (const path of inside) {
      expectRefusal(await service.admin('DELETE', `groups/${groups.team}`), 409);
      entityOf(await service.admin('DELETE', path));
    }
    const read = entityOf(await service.admin('GET', `groups/${groups.team}`));
    expect(entityOf(await service.admin('DELETE', `groups/${groups.team}`))).toEqual(read);
    expectRefusal(await service.admin('GET', `groups/${groups.team}`), 404);
  });

  test('ignores commands and security events, which stay for the ancestors', async () => {
    const object = await make('objects', { id: `gone-${new ObjectId()}`, name: 'x', group: groups.crew });
    const sent = await service.admin('POST', `objects/${object._id}/commands/stop`, {});
    entityOf(await service.admin('DELETE', `objects/${object._id}`));
    entityOf(await service.admin('DELETE', `groups/${groups.crew}`));
    expect((await service.admin('GET', sent.headers.location as string)).status).toBe(200);
  });

  test('requires that the caller sees the group', async () => {
    const southAdmin = await createPerson(service, { group: groups.south, role: ADMINISTRATOR_ROLE_ID });
    expectRefusal(await southAdmin.call('DELETE', `groups/${groups.crew}`), 404);
    expectRefusal(await southAdmin.call('DELETE', `groups/${groups.team}`), 404);
  });
});
