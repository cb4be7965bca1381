/** Groups move to other parents while users read and create entities on two instances: each user sees only what the rights permit. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ROOT_GROUP_ID } from '../../src/core/builtin.js';
import { treeOf } from '../http/group-tree.js';
import { entityOf } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Call, startTestService, type TestService, testUri } from '../support/fixture.js';
import { runsOf } from '../support/runs.js';

const MOVES = runsOf(20);
const MOST_CREATED = 600;
let one: TestService;
let other: TestService;
const uri = testUri();
beforeAll(async () => {
  one = await startTestService({ env: { LOG_LEVEL: 'warn' } }, uri);
  other = await startTestService({ env: { LOG_LEVEL: 'warn' } }, uri);
});
afterAll(async () => {
  await other?.service.stop();
  await other?.client.close();
  await one?.stop();
});

const make = async (path: string, fields: object, call: Call = one.admin) => entityOf(await call('POST', path, fields));
const group = async (name: string, parent: string = ROOT_GROUP_ID): Promise<string> =>
  (await make('groups', { name, parent }))._id;

/** Starts another instance, which corrects the chains that a move has left behind. */
async function correctChains(): Promise<void> {
  const third = await startTestService({ env: { LOG_LEVEL: 'warn' } }, uri);
  await third.service.stop();
  await third.client.close();
}

interface Reader {
  readonly person: Person;
  /** Marks of entities that the reader may see at some time. */
  readonly marks: readonly string[];
}

test('shows each reader all or nothing of a group that moves back and forth, and nothing of other groups', async () => {
  const left = await group('left');
  const right = await group('right');
  const aside = await group('aside');
  const team = await group('team', left);
  const crew = await group('crew', team);
  const PLACES = { left, right, aside, team, crew };
  for (const [mark, of] of Object.entries(PLACES)) {
    for (let at = 0; at < 5; at++) await make('labels', { mark, fixed: true, group: of });
  }
  const reader = async (of: string, ...marks: string[]): Promise<Reader> => ({
    person: await createPerson(one, { group: of }),
    marks,
  });
  const readers = [
    await reader(left, 'left', 'team', 'crew'),
    await reader(right, 'right', 'team', 'crew'),
    await reader(aside, 'aside'),
    await reader(team, 'team', 'crew'),
  ];

  let moving = true;
  const faults: unknown[] = [];
  let lists = 0;
  let partial = 0;
  const read = async ({ person, marks }: Reader, { url, as }: TestService) => {
    const call = as(person.token);
    while (moving) {
      const { status, body } = await call('GET', 'labels');
      lists++;
      const seen = (body as { mark: string; fixed?: boolean }[]).filter(({ mark }) => !marks.includes(mark));
      const fixed = (body as { mark: string; fixed?: boolean }[]).filter((label) => label.fixed).length;
      // Its own five, and the ten of team and crew, together or not at all.
      const own = marks.length === 2 ? [10] : marks.length === 1 ? [5] : [5, 15];
      if (status !== 200 || seen.length > 0 || !own.includes(fixed)) faults.push({ url, marks, status, seen, fixed });
      if (fixed === 5 && marks.length === 3) partial++;
    }
  };
  const created: string[] = [];
  const create = async ({ admin }: TestService, mark: string, of: string) => {
    while (moving && created.length < MOST_CREATED) {
      const child = await make('groups', { name: mark, parent: of }, admin);
      const label = await make('labels', { mark, group: child._id }, admin);
      const beside = await make('labels', { mark, group: of }, admin);
      created.push(child._id, label._id, beside._id);
    }
  };
  const work = [
    ...readers.flatMap((of) => [read(of, one), read(of, other)]),
    create(one, 'team', team),
    create(other, 'crew', crew),
  ];
  for (let at = 0; at < MOVES; at++) {
    const { admin } = at % 3 === 0 ? other : one;
    entityOf(await admin('PATCH', `groups/${team}`, { parent: at % 2 === 0 ? right : left }));
  }
  moving = false;
  await Promise.all(work);
  expect(faults).toEqual([]);
  // They read and created during the moves, and saw both places.
  expect(lists).toBeGreaterThan(MOVES);
  expect(created.length).toBeGreaterThan(MOVES);
  expect([partial > 0, partial < lists]).toEqual([true, true]);

  await correctChains();
  const { entities, untrue } = await treeOf(one);
  expect(untrue).toEqual([]);
  expect(created.filter((id) => !entities.some(({ _id, branch }) => _id === id && branch.includes(left)))).toEqual([]);
  const [ofLeft, ofRight] = await Promise.all(
    readers.map(async ({ person }) => (await person.call('GET', 'labels?meta=true')).body.count as number),
  );
  const all = entities.filter(({ collection, branch }) => collection === 'labels' && branch.includes(team)).length;
  expect([ofLeft, ofRight]).toEqual([5 + all, 5]);
});

test('corrects groups and entities that were created with the former chain of a moved group', async () => {
  const before = await group('before');
  const after = await group('after');
  const team = await group('team', before);
  const child = await group('child', team);
  const grandchild = await group('grandchild', child);
  const label = (await make('labels', { name: 'x', group: grandchild }))._id;
  entityOf(await other.admin('PATCH', `groups/${team}`, { parent: after }));
  const stale = (await treeOf(one)).entities.filter(({ _id }) => [child, grandchild, label].includes(_id));
  // As after creators that read the former chain before the move and wrote after it.
  for (const { collection, _id, branch } of stale) {
    const old = branch.map((id) => new ObjectId(id === after ? before : id));
    await one.client
      .db()
      .collection(collection)
      .updateOne({ _id: new ObjectId(_id) }, { $set: { branch: old } });
  }
  expect((await treeOf(one)).untrue).toHaveLength(3);
  await correctChains();
  expect((await treeOf(one)).untrue).toEqual([]);
});

test('refuses one of two moves that would put two groups below each other', async () => {
  for (let round = 0; round < runsOf(20); round++) {
    const first = await group('first');
    const second = await group('second');
    const below = await group('below', first);
    const answers = await Promise.all([
      one.admin('PATCH', `groups/${first}`, { parent: second }),
      other.admin('PATCH', `groups/${second}`, { parent: round % 2 === 0 ? first : below }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
    expect((await treeOf(one)).untrue).toEqual([]);
  }
});

test('completes concurrent moves of several groups', async () => {
  const places = await Promise.all(Array.from({ length: 4 }, (_, at) => group(`place-${at}`)));
  const teams = await Promise.all(Array.from({ length: 6 }, (_, at) => group(`team-${at}`, places[at % 4])));
  for (const of of teams) await make('labels', { name: 'x', group: of });
  const answers = await Promise.all(
    teams.flatMap((team, at) => [
      one.admin('PATCH', `groups/${team}`, { parent: places[(at + 1) % 4] }),
      other.admin('PATCH', `groups/${team}`, { parent: places[(at + 2) % 4] }),
    ]),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect((await treeOf(one)).untrue).toEqual([]);
});
