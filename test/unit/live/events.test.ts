/** Pure: a change becomes events, and readers and narrowings become rooms. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isOfObject, type LiveEvent, toEvents } from '../../../src/live/events.js';
import { narrow, roomsFor, roomsOf } from '../../../src/live/rooms.js';
import { addressesOf, type Guarded, readersOf, scopeOf } from '../../../src/model/access.js';
import type { Change } from '../../../src/model/change.js';
import { EVENT_NAMES, EVERYTHING, type EventName, type Narrowing, readNarrowing } from '../../../src/model/feed.js';
import type { JsonObject } from '../../../src/model/json.js';

const id = 'a'.repeat(24);
const guard = { owner: 'u1', branch: ['g0', 'g1'], access: ['u2'] };
const readers = ['group:g0', 'group:g1', 'user:u1', 'user:u2'];
const image = (fields: JsonObject): JsonObject => ({ _id: id, id: 'own', ...guard, ...fields });

function change(fields: Partial<Change>): Change {
  return {
    store: 'objects',
    kind: 'changed',
    id,
    before: null,
    after: null,
    changed: differing(fields),
    guard: fields.after ? (fields.after as unknown as Guarded) : null,
    json: null,
    bytes: 0,
    objectId: id,
    position: 'p',
    ...fields,
  };
}

function differing({ before, after }: Partial<Change>): string[] | null {
  if (!before || !after) return null;
  const names = [...new Set([before, after].flatMap(Object.keys))];
  return names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
}

const payloadOf = (event: LiveEvent | undefined): JsonObject | undefined =>
  event && JSON.parse(event.toJson().toString());

describe('toEvents: object-update', () => {
  const rows: [name: string, before: JsonObject, after: JsonObject, said: [JsonObject, JsonObject] | null][] = [
    ['a scalar', { s: 1 }, { s: 2 }, [{ s: 1 }, { s: 2 }]],
    ['nothing', { s: 1 }, { s: 1 }, null],
    ['_at alone', { _at: 1 }, { _at: 2 }, null],
    ['_at for the first time', {}, { _at: 2 }, null],
    ['_at beside another', { _at: 1, s: 1 }, { _at: 2, s: 2 }, [{ s: 1 }, { s: 2 }]],
    ['a new field', {}, { s: 1 }, [{}, { s: 1 }]],
    ['a field that is gone', { s: 1 }, {}, [{ s: 1 }, {}]],
    ['a field that becomes null', { s: 1 }, { s: null }, [{ s: 1 }, { s: null }]],
    ['a field that is null from nothing', {}, { s: null }, [{}, { s: null }]],
    [
      'a leaf: the whole top-level field',
      { c: { a: { b: 1, k: 0 } } },
      { c: { a: { b: 2, k: 0 } } },
      [{ c: { a: { b: 1, k: 0 } } }, { c: { a: { b: 2, k: 0 } } }],
    ],
    ['an array in another order', { l: [1, 2] }, { l: [2, 1] }, [{ l: [1, 2] }, { l: [2, 1] }]],
    ['an equal array', { l: [1, { a: 2 }] }, { l: [1, { a: 2 }] }, null],
    ['a number that becomes its text', { s: 1 }, { s: '1' }, [{ s: 1 }, { s: '1' }]],
    [
      'only what changed of several',
      { a: 1, b: 1, c: 1 },
      { a: 1, b: 2, c: 3 },
      [
        { b: 1, c: 1 },
        { b: 2, c: 3 },
      ],
    ],
    ['names of JavaScript', { toString: 1 }, { toString: 2 }, [{ toString: 1 }, { toString: 2 }]],
    [
      'who it is shared with',
      { access: ['u2'] },
      { access: ['u2', 'u3'] },
      [{ access: ['u2'] }, { access: ['u2', 'u3'] }],
    ],
  ];

  test.each(rows)('%s', (_name, before, after, said) => {
    const events = toEvents(change({ before: image(before), after: image(after) }), null);
    if (said === null) {
      expect(events).toEqual([]);
      return;
    }
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ name: 'object-update', objectId: id, position: 'p' });
    expect(payloadOf(events[0])).toEqual({ id, before: said[0], after: said[1] });
  });

  test('goes to those who may see the object after the change', () => {
    const [before, after] = [image({ access: ['u2', 'u3'] }), image({ access: ['u2'] })];
    expect(toEvents(change({ before, after }), null)[0]?.readers).toEqual(readers);
  });

  test('applying `after` to a mirror gives the object, and `before` is what the mirror had', () => {
    const field = fc.dictionary(fc.constantFrom('a', 'b', 'c', '_at'), fc.jsonValue(), { maxKeys: 4 });
    fc.assert(
      fc.property(field, field, (first, second) => {
        const [before, after] = [image(first as JsonObject), image(second as JsonObject)];
        const [event] = toEvents(change({ before, after }), null);
        const said = (payloadOf(event) ?? { before: {}, after: {} }) as { before: JsonObject; after: JsonObject };
        const mirror: JsonObject = { ...before };
        for (const name of Object.keys(said.before)) {
          expect(JSON.stringify(mirror[name])).toBe(JSON.stringify(said.before[name]));
          delete mirror[name];
        }
        Object.assign(mirror, said.after);
        const visible = ({ _at, ...rest }: JsonObject) => JSON.parse(JSON.stringify(rest));
        expect(visible(mirror)).toEqual(visible(after));
      }),
    );
  });
});

describe('toEvents: everything else', () => {
  const packet = { _id: 'p', _oid: id, id: 'own', speed: 1 };

  test('a packet', () => {
    const events = toEvents(change({ store: 'packets', kind: 'created', id: 'p', after: packet }), readers);
    expect(events).toMatchObject([{ name: 'object-packet', objectId: id, readers, position: 'p' }]);
    expect(payloadOf(events[0])).toEqual(packet);
  });

  const silent: [name: string, change: Partial<Change>, packetReaders: string[] | null][] = [
    ['a packet of an object that is gone', { store: 'packets', kind: 'created', after: packet }, null],
    ['a packet removed', { store: 'packets', kind: 'removed', before: packet }, readers],
    ['a packet changed', { store: 'packets', kind: 'changed', before: packet, after: { ...packet, a: 1 } }, readers],
    ['an object created', { kind: 'created', after: image({}) }, null],
    ['an object removed', { kind: 'removed', before: image({}) }, null],
    ['an update whose images are gone', { kind: 'changed' }, null],
    ...['models', 'users', 'groups', 'tokens', 'sessions', 'handlers'].map((store): [string, Partial<Change>, null] => [
      `a change in ${store}`,
      { store, before: image({ a: 1 }), after: image({ a: 2 }) },
      null,
    ]),
  ];

  test.each(silent)('%s is no event', (_name, fields, packetReaders) => {
    expect(toEvents(change(fields), packetReaders)).toEqual([]);
  });
});

describe('toEvents: a command', () => {
  const guarded = { owner: 'u9', group: 'g9', branch: ['g9'], access: [], time: 1 };
  const command = (status: string, more: JsonObject = {}): JsonObject => ({
    ...{ _id: 'c', object: id, command: 'open', params: { a: 1 }, status, times: { queued: 1 }, expires: 9 },
    ...guarded,
    ...more,
  });
  const told = (status: string, more: JsonObject = {}) => {
    const { object: _, owner, group, branch, access, time, ...shown } = command(status, more);
    return { id, command: shown };
  };
  const of = (before: JsonObject | null, after: JsonObject | null, kind: Change['kind'] = 'changed') =>
    change({ store: 'commands', kind, id: 'c', before, after });

  test.each<[what: string, change: Change, name: string, payload: object]>([
    ['given', of(null, command('queued'), 'created'), 'object-command-req', told('queued')],
    [
      'done',
      of(command('delivered'), command('done', { result: { b: null } })),
      'object-command-res',
      told('done', { result: { b: null } }),
    ],
    [
      'done, with null for an answer',
      of(command('sent'), command('done', { result: null })),
      'object-command-res',
      told('done', { result: null }),
    ],
    [
      'failed',
      of(command('queued'), command('failed', { result: 'no' })),
      'object-command-err',
      told('failed', { result: 'no' }),
    ],
    ['expired', of(command('delivered'), command('expired')), 'object-command-err', told('expired')],
  ])('%s', (_, one, name, payload) => {
    const events = toEvents(one, readers);
    expect(events).toMatchObject([{ name, objectId: id, readers, position: 'p' }]);
    expect(payloadOf(events[0])).toEqual(payload);
    // Of an object that is gone nobody hears.
    expect(toEvents(one, null)).toEqual([]);
  });

  test.each<[what: string, change: Change]>([
    ['sent', of(command('queued'), command('sent'))],
    ['sent again', of(command('sent'), command('sent', { times: { sent: 2 } }))],
    ['waiting again', of(command('sent'), command('queued'))],
    ['delivered', of(command('sent'), command('delivered'))],
    ['shared after it ended', of(command('done'), command('done', { access: ['u1'] }))],
    ['changed, nobody knows from what', of(null, command('done'))],
    ['removed', of(command('done'), null, 'removed')],
  ])('%s is no event', (_, one) => expect(toEvents(one, readers)).toEqual([]));

  test('is told to those who see its object, as a packet is', () => {
    expect(isOfObject({ store: 'commands', kind: 'created' })).toBe(true);
    expect(isOfObject({ store: 'packets', kind: 'created' })).toBe(true);
    for (const store of ['objects', 'users', 'labels']) expect(isOfObject({ store, kind: 'changed' })).toBe(false);
  });
});

describe('rooms', () => {
  const users = ['u1', 'u2', 'u3'];
  const groups = ['g1', 'g2', 'g3'];
  const objects = ['o1', 'o2', '*'];
  const some = <T>(from: readonly T[]) => fc.subarray([...from]);
  const narrowing = fc.record({
    objects: fc.option(some(objects)),
    events: fc.option(some<EventName>(EVENT_NAMES)),
  });
  const caller = fc.record({ userId: fc.constantFrom(...users), groupId: fc.constantFrom(...groups) });
  const guarded = fc.record({ owner: fc.constantFrom(...users), branch: some(groups), access: some(users) });
  const event = fc.record({ name: fc.constantFrom(...EVENT_NAMES), objectId: fc.constantFrom('o1', 'o2', 'o3') });

  test('a socket is in a room that an event goes to exactly when its readers and its narrowing agree', () => {
    let agreed = 0;
    fc.assert(
      fc.property(caller, guarded, narrowing, event, (who, entity: Guarded, wanted: Narrowing, { name, objectId }) => {
        const sees =
          entity.branch.includes(who.groupId) || entity.owner === who.userId || entity.access.includes(who.userId);
        // No `_id` of an object is `*`; who asks for it must not get everything.
        const asked = wanted.objects?.filter((one) => one !== '*') ?? null;
        const wants = (asked?.includes(objectId) ?? true) && (wanted.events?.includes(name) ?? true);
        const inRooms = new Set(roomsOf(addressesOf(scopeOf(who)), { ...wanted, objects: asked }));
        const hears = roomsFor({ name, objectId, readers: readersOf(entity) }).some((room) => inRooms.has(room));
        if (hears) agreed++;
        expect(hears).toBe(sees && wants);
      }),
      { numRuns: 2_000 },
    );
    expect(agreed).toBeGreaterThan(50);
  });

  test.each([
    [EVERYTHING, null, EVERYTHING],
    [EVERYTHING, ['o1'], { objects: ['o1'], events: null }],
    [EVERYTHING, [], { objects: [], events: null }],
    [{ objects: ['o1', 'o2'], events: null }, ['o2', 'o3'], { objects: ['o2'], events: null }],
    [{ objects: ['o1'], events: ['object-packet' as const] }, null, { objects: ['o1'], events: ['object-packet'] }],
    [{ objects: [], events: null }, ['o2'], { objects: [], events: null }],
  ])('%j held to %j is %j', (wanted, permitted, held) => {
    expect(narrow(wanted, permitted)).toEqual(held);
  });

  test('who may hear no object is in no room', () => {
    expect(roomsOf(['group:g', 'user:u'], narrow(EVERYTHING, []))).toEqual([]);
  });
});

describe('readNarrowing', () => {
  test.each([
    [{}, EVERYTHING],
    [{ objects: null, events: null }, EVERYTHING],
    [{ objects: [] }, { objects: [], events: null }],
    [
      { objects: ['a'], events: ['object-update'] },
      { objects: ['a'], events: ['object-update'] },
    ],
    [{ more: 1 }, EVERYTHING],
  ])('%j', (request, narrowing) => {
    expect(readNarrowing(request)).toEqual(narrowing);
  });

  test.each([
    [undefined, 'subscribe'],
    [null, 'subscribe'],
    ['all', 'subscribe'],
    [[], 'subscribe'],
    [{ objects: 'a' }, 'objects'],
    [{ objects: [1] }, 'objects'],
    [{ objects: [{ $ne: null }] }, 'objects'],
    [{ objects: Array(1_001).fill('a') }, 'objects'],
    [{ events: ['object-packets'] }, 'events'],
    [{ events: 'object-packet' }, 'events'],
    [{ events: ['toString'] }, 'events'],
  ])('%j is refused, and the field is named', (request, field) => {
    expect(() => readNarrowing(request)).toThrow(new RegExp(`^${field}: expected`));
  });
});
