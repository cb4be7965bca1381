/** Random writes of two tenants: each socket receives exactly the events that a model of the rights predicts. */
import { expect, test } from '@jest/globals';
import { type Call, type Listener, type ReceivedEvent, useService } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';

const RUNS = runsOf(12);
const service = useService();
const PASSWORD = 'a long password';

interface Person {
  readonly name: string;
  readonly _id: string;
  readonly group: string;
  readonly branch: readonly string[];
  readonly call: Call;
  readonly listener: Listener;
}

interface Thing {
  readonly _id: string;
  readonly owner: string;
  readonly branch: string[];
  access: string[];
  status: string;
}

/**
 *    root ── north ── harbour
 *        └── south
 */
async function makePeople(): Promise<Person[]> {
  const admin = (path: string, body: object) => service.admin('POST', path, body).then(({ body: made }) => made);
  const role = await admin('roles', { name: 'all', credentials: ['* /*'] });
  const north = await admin('groups', { name: 'north' });
  const harbour = await admin('groups', { name: 'harbour', parent: north._id });
  const south = await admin('groups', { name: 'south' });
  const places: [string, string][] = [
    ['north-1', north._id],
    ['north-2', north._id],
    ['harbour-1', harbour._id],
    ['harbour-2', harbour._id],
    ['south-1', south._id],
    ['south-2', south._id],
  ];
  return Promise.all(
    places.map(async ([name, group]) => {
      const user = await admin('users', { login: name, password: PASSWORD, role: role._id, group });
      const token = await service.tokenOf(name, PASSWORD);
      return {
        name,
        _id: user._id,
        group,
        branch: user.branch,
        call: service.as(token),
        listener: await service.listen(token, 'everything'),
      };
    }),
  );
}

/** The rule of visibility (docs/reference/permissions.md), written a second time. */
const sees = ({ _id, group }: Person, thing: Thing): boolean =>
  thing.branch.includes(group) || thing.owner === _id || thing.access.includes(_id);

type Step =
  | { kind: 'create'; by: number }
  | { kind: 'packet' | 'packets' | 'status' | 'same' | 'remove'; by: number; thing: number }
  | { kind: 'share' | 'unshare'; by: number; thing: number; with: number };

const index = fc.nat({ max: 5 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('create' as const), by: index }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'packet' as const,
        'packets' as const,
        'status' as const,
        'same' as const,
        'remove' as const,
      ),
      by: index,
      thing: fc.nat({ max: 50 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('share' as const, 'unshare' as const),
      by: index,
      thing: fc.nat({ max: 50 }),
      with: index,
    }),
  },
);

type Event = Pick<ReceivedEvent, 'name' | 'payload'>;

/** A model of the service: each step calls the service and predicts the events. */
function createWorld(people: readonly Person[], run: string) {
  const things: Thing[] = [];
  const predicted = new Map<Person, Event[]>(people.map((person) => [person, []]));
  const predict = (thing: Thing, event: Event): void => {
    for (const person of people) if (sees(person, thing)) predicted.get(person)?.push(event);
  };
  const update = (thing: Thing, before: object, after: object): void =>
    predict(thing, { name: 'object-update', payload: { id: thing._id, before, after } });
  const appear = (thing: Thing, person: Person): void => {
    const { success, state, _at, ...object } = thing as unknown as Record<string, unknown>;
    const payload = { id: thing._id, object: expect.objectContaining(object) };
    predicted.get(person)?.push({ name: 'object-created', payload });
  };
  const disappear = (thing: Thing, person: Person): void =>
    void predicted.get(person)?.push({ name: 'object-removed', payload: { id: thing._id } });
  const packetsOf = async (thing: Thing, by: Person, count: number): Promise<number> => {
    const messages = Array.from({ length: count }, (_, n) => ({ n }));
    const { status } = await by.call('POST', `objects/${thing._id}/packets`, count === 1 ? messages[0] : messages);
    for (const { n } of status === 200 ? messages : []) {
      const payload = expect.objectContaining({ _oid: thing._id, n });
      predict(thing, { name: 'object-packet', payload });
    }
    return status;
  };
  const actions = {
    packet: (thing: Thing, by: Person) => packetsOf(thing, by, 1),
    packets: (thing: Thing, by: Person) => packetsOf(thing, by, 3),
    async status(thing: Thing, by: Person) {
      const next = `${thing.status}x`;
      const { status } = await by.call('PATCH', `objects/${thing._id}`, { status: next });
      if (status === 200) update(thing, { status: thing.status }, { status: next });
      if (status === 200) thing.status = next;
      return status;
    },
    same: async (thing: Thing, by: Person) =>
      (await by.call('PATCH', `objects/${thing._id}`, { status: thing.status, access: [by._id] })).status,
    async remove(thing: Thing, by: Person) {
      const { status } = await by.call('DELETE', `objects/${thing._id}`);
      if (status !== 200) return status;
      things.splice(things.indexOf(thing), 1);
      for (const person of people) if (sees(person, thing)) disappear(thing, person);
      return status;
    },
  };
  const share = async (thing: Thing, by: Person, friend: Person, shared: boolean): Promise<number> => {
    const path = `objects/${thing._id}/access`;
    const held = thing.access.includes(friend._id);
    const { status } = shared
      ? await by.call('POST', path, { user: friend._id })
      : await by.call('DELETE', `${path}/${friend._id}`);
    if (status !== 200 || held === shared) return status;
    const before = { access: thing.access };
    thing.access = shared ? [...thing.access, friend._id] : thing.access.filter((_id) => _id !== friend._id);
    const payload = { id: thing._id, before, after: { access: thing.access } };
    for (const person of people) {
      const wasSeen = sees(person, { ...thing, ...before });
      const isSeen = sees(person, thing);
      if (wasSeen && isSeen) predicted.get(person)?.push({ name: 'object-update', payload });
      else if (isSeen) appear(thing, person);
      else if (wasSeen) disappear(thing, person);
    }
    return status;
  };
  return {
    predicted,
    async take(one: Step): Promise<void> {
      const by = people[one.by] as Person;
      if (one.kind === 'create') {
        const wanted = { id: `${run}-${things.length}-${performance.now()}`, name: 'O' };
        const thing: Thing = { ...(await by.call('POST', 'objects', wanted)).body };
        things.push(thing);
        for (const person of people) if (sees(person, thing)) appear(thing, person);
        return;
      }
      const thing = things[one.thing % Math.max(1, things.length)];
      if (thing === undefined) return;
      const allowed = sees(by, thing);
      const status =
        'with' in one
          ? await share(thing, by, people[one.with] as Person, one.kind === 'share')
          : await actions[one.kind](thing, by);
      // Ending a share that does not exist is a 404; everything else succeeds exactly when the user sees the object.
      const absent = 'with' in one && one.kind === 'unshare' && status === 404;
      if (absent) return;
      // A user cannot share with a user of an invisible group.
      const isStranger = one.kind === 'share' && !people[one.with]?.branch.includes(by.group);
      expect([one.kind, status]).toEqual([one.kind, allowed ? (isStranger ? 400 : 200) : 404]);
    },
  };
}

test('sends each socket exactly the predicted events', async () => {
  const people = await makePeople();
  let run = 0;
  let events = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 60, size: 'max' }), async (steps) => {
      const world = createWorld(people, `run-${run++}`);
      for (const by of [0, 2, 4]) await world.take({ kind: 'create', by });
      for (const one of steps) await world.take(one);
      await service.settled();
      for (const person of people) {
        const received = person.listener.take().map(({ name, payload }) => ({ name, payload }));
        const wanted = world.predicted.get(person) as Event[];
        events += wanted.length;
        expect([person.name, received]).toEqual([person.name, wanted]);
      }
    }),
    { numRuns: RUNS, endOnFailure: true },
  );
  // The model predicted events.
  expect(events).toBeGreaterThan(25 * RUNS);
});
