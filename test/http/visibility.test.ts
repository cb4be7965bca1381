/** Random trees, users, shares and entities: lists, counts, pages and single reads all say what the rule says. */
import { beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID, ROOT_GROUP_ID } from '../../src/core/builtin.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Call, useService } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';

const RUNS = runsOf(30);
const GROUPS = 6;
const service = useService({ env: { LOG_LEVEL: 'warn' } });

/** The tree of one run is drawn by the parents: each is one of those before it, or the root. */
interface World {
  readonly parents: readonly number[];
  /** In which group each of the people is. */
  readonly people: readonly number[];
  readonly things: readonly {
    readonly store: 'objects' | 'labels' | 'handlers';
    readonly group: number;
    readonly owner: number;
    readonly access: readonly number[];
    readonly active: boolean;
  }[];
  readonly page: number;
}
const PEOPLE = 3;
const world: fc.Arbitrary<World> = fc.record({
  parents: fc.tuple(...Array.from({ length: GROUPS }, (_, at) => fc.nat({ max: at }))),
  people: fc.array(fc.nat({ max: GROUPS }), { minLength: PEOPLE, maxLength: PEOPLE }),
  things: fc.array(
    fc.record({
      store: fc.constantFrom('objects' as const, 'labels' as const, 'handlers' as const),
      group: fc.nat({ max: GROUPS }),
      // The last id has no user.
      owner: fc.nat({ max: PEOPLE }),
      access: fc.uniqueArray(fc.nat({ max: PEOPLE }), { maxLength: 3 }),
      active: fc.boolean(),
    }),
    { maxLength: 25 },
  ),
  page: fc.integer({ min: 1, max: 7 }),
});

/** Somebody of each of two branches: one thing that one sees and the other does not. */
const TWO_BRANCHES: World = {
  parents: [0, 0, 0, 0, 0, 0],
  people: [1, 2, 0],
  things: [{ store: 'objects', group: 1, owner: PEOPLE, access: [], active: true }],
  page: 1,
};

let persons: Person[];
beforeAll(async () => {
  persons = await Promise.all(
    Array.from({ length: PEOPLE }, () => createPerson(service, { role: ADMINISTRATOR_ROLE_ID })),
  );
});

/** Puts a world into the database: each thing's `_id`, and the branch that it is in. */
async function place({ parents, people, things }: World, mark: string) {
  const db = service.client.db();
  const branches = [[new ObjectId(ROOT_GROUP_ID)]];
  for (const parent of parents) branches.push([...(branches[parent] as ObjectId[]), new ObjectId()]);
  const owned = branches.slice(1).map((branch) => ({ _id: branch.at(-1) as ObjectId, name: 'x', branch }));
  await db.collection('groups').insertMany(owned.map((one) => ({ ...one, group: one._id, parent: one.branch.at(-2) })));
  for (const [at, person] of persons.entries()) {
    const branch = branches[people[at] as number] as ObjectId[];
    await db
      .collection('users')
      .updateOne({ _id: new ObjectId(person.id) }, { $set: { branch, group: branch.at(-1) as ObjectId } });
  }
  const ids = [...persons.map(({ id }) => new ObjectId(id)), new ObjectId()];
  const placed = things.map(({ store, group, owner, access, active }) => {
    const branch = branches[group] as ObjectId[];
    const common = { owner: ids[owner], access: access.map((at) => ids[at]), branch, group: branch.at(-1) };
    const _id = new ObjectId();
    return { store, document: { _id, id: String(_id), name: 'x', mark, active, ...common } };
  });
  for (const { store, document } of placed) await db.collection<{ _id: ObjectId }>(store).insertOne(document);
  await service.settled();
  return placed.map(({ store, document }, at) => ({
    ...things[at],
    store,
    branch: document.branch,
    _id: String(document._id),
  }));
}

type Placed = Awaited<ReturnType<typeof place>>[number];

/** Who sees what (docs/reference/permissions.md), in words of its own. */
const sees = (at: number, { people }: World, thing: Placed, branches: Map<number, string>): boolean =>
  thing.branch.map(String).includes(branches.get(people[at] as number) as string) ||
  thing.owner === at ||
  (thing.access ?? []).includes(at);

/** A label is also read by those who see an object below its group. */
const reads = (
  at: number,
  drawn: World,
  thing: Placed,
  all: readonly Placed[],
  branches: Map<number, string>,
): boolean =>
  sees(at, drawn, thing, branches) ||
  (thing.store === 'labels' &&
    all.some(
      (one) =>
        one.store === 'objects' &&
        sees(at, drawn, one, branches) &&
        one.branch.map(String).includes(String(thing.branch.at(-1))),
    ));

const idsOf = (list: { _id: string }[]): string[] => list.map(({ _id }) => _id);

/** All pages, by their links. */
async function readPages(call: Call, path: string, limit: number): Promise<string[][]> {
  const pages: string[][] = [];
  for (let next: string | undefined = `/api/v1/${path}&limit=${limit}`; next !== undefined; ) {
    const { body, headers } = await call('GET', next);
    pages.push(idsOf(body));
    next = /^<([^>]+)>; rel="next"$/.exec(headers.link ?? '')?.[1];
  }
  return pages;
}

test(`follows the rule in lists, counts, pages and single reads (${RUNS} worlds)`, async () => {
  let shown = 0;
  let hidden = 0;
  await fc.assert(
    fc.asyncProperty(world, async (drawn) => {
      const mark = String(new ObjectId());
      const placed = await place(drawn, mark);
      const groupOf = await Promise.all(
        persons.map(async ({ id }) =>
          String(
            (
              await service.client
                .db()
                .collection('users')
                .findOne({ _id: new ObjectId(id) })
            )?.group,
          ),
        ),
      );
      const branches = new Map(drawn.people.map((group, at) => [group, groupOf[at] as string]));
      for (const [at, { call }] of persons.entries()) {
        for (const store of ['objects', 'labels', 'handlers'] as const) {
          const all = placed.filter((thing) => thing.store === store);
          const mine = all.filter((thing) => reads(at, drawn, thing, placed, branches));
          const path = `${store}?where.mark=${mark}`;
          const ids = idsOf(mine);
          expect(idsOf((await call('GET', path)).body)).toEqual(ids);
          const { count, first, last } = (await call('GET', `${path}&meta=true`)).body;
          expect([count, first?._id, last?._id]).toEqual([ids.length, ids[0], ids.at(-1)]);
          const pages = await readPages(call, path, drawn.page);
          expect(pages.flat()).toEqual(ids);
          expect(pages.slice(0, -1).every((page) => page.length === drawn.page)).toBe(true);
          const active = mine.filter((thing) => thing.active);
          expect((await call('GET', `${path}&where.active=true&meta=true`)).body.count).toBe(active.length);
          for (const thing of all) {
            const status = mine.includes(thing) ? 200 : 404;
            expect((await call('GET', `${store}/${thing._id}`)).status).toBe(status);
            if (status === 200) shown++;
            else hidden++;
          }
        }
      }
      // Its owners would read labels of the root group because of it.
      await service.client.db().collection('objects').deleteMany({ mark });
    }),
    { numRuns: RUNS, examples: [[TWO_BRANCHES]] },
  );
  // It was about something.
  expect([shown > 0, hidden > 0]).toEqual([true, true]);
});
