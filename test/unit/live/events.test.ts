/** Changes become events, and audiences and filters become rooms. */
import { describe, expect, test } from '@jest/globals';
import { type AccessFields, addressesOf, audienceOf, scopeOf } from '../../../src/core/access.js';
import type { Change } from '../../../src/core/change.js';
import { EVENT_NAMES, type EventFilter, type EventName, NO_FILTER, parseEventFilter } from '../../../src/core/feed.js';
import type { JsonObject } from '../../../src/core/json.js';
import { isOfObject, type LiveEvent, toEvents, toPastEvents } from '../../../src/live/events.js';
import { createAudienceTest, restrictFilter, roomsOf } from '../../../src/live/rooms.js';
import { fc } from '../../support/runs.js';

const id = 'a'.repeat(24);
const accessFields = { owner: 'u1', branch: ['g0', 'g1'], access: ['u2'] };
const audience = ['group:g0', 'group:g1', 'user:u1', 'user:u2'];
const image = (fields: JsonObject): JsonObject => ({ _id: id, id: 'own', ...accessFields, ...fields });

function change(fields: Partial<Change>): Change {
  return {
    store: 'objects',
    kind: 'changed',
    id,
    before: null,
    after: null,
    changed: differing(fields),
    accessFields: fields.after ? (fields.after as unknown as AccessFields) : null,
    accessFieldsBefore: fields.before ? (fields.before as unknown as AccessFields) : null,
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
  ];

  test.each(rows)('converts a change: %s', (_name, before, after, said) => {
    const events = toEvents(change({ before: image(before), after: image(after) }), null);
    if (said === null) {
      expect(events).toEqual([]);
      return;
    }
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ name: 'object-update', objectId: id, position: 'p' });
    expect(payloadOf(events[0])).toEqual({ id, before: said[0], after: said[1] });
  });

  test('goes to clients that see the object before and after the change', () => {
    const before = image({ access: ['u2', 'u3'] });
    const after = image({ access: ['u2'] });
    const [update] = toEvents(change({ before, after }), null);
    expect(payloadOf(update)).toEqual({ id, before: { access: ['u2', 'u3'] }, after: { access: ['u2'] } });
    expect([update?.audience, update?.limits]).toEqual([audience, { except: [], within: [[...audience, 'user:u3']] }]);
  });

  test('updates a mirror of the object with `after`, whose old values are `before`', () => {
    const field = fc.dictionary(fc.constantFrom('a', 'b', 'c', '_at'), fc.jsonValue(), { maxKeys: 4 });
    fc.assert(
      fc.property(field, field, (first, second) => {
        const before = image(first as JsonObject);
        const after = image(second as JsonObject);
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

  test('publishes a packet', () => {
    const events = toEvents(change({ store: 'packets', kind: 'created', id: 'p', after: packet }), audience);
    expect(events).toMatchObject([{ name: 'object-packet', objectId: id, audience, position: 'p' }]);
    expect(payloadOf(events[0])).toEqual(packet);
  });

  test('decodes no packet until its data is wanted', () => {
    let decoded = 0;
    const stored = {
      ...change({ store: 'packets', kind: 'created', id: 'p' }),
      get after() {
        decoded++;
        return packet;
      },
    };
    const [event] = toEvents(stored, audience);
    expect(decoded).toBe(0);
    expect(payloadOf(event)).toEqual(packet);
  });

  const silent: [name: string, change: Partial<Change>, packetReaders: string[] | null][] = [
    ['a packet of an object that is gone', { store: 'packets', kind: 'created', after: packet }, null],
    ['a packet removed', { store: 'packets', kind: 'removed', before: packet }, audience],
    ['a packet changed', { store: 'packets', kind: 'changed', before: packet, after: { ...packet, a: 1 } }, audience],
    ['an object removed whose image is gone', { kind: 'removed' }, null],
    ['an update whose images are gone', { kind: 'changed' }, null],
    ['an update whose former state is gone', { kind: 'changed', after: image({ s: 2 }) }, null],
    ...['models', 'users', 'groups', 'tokens', 'sessions', 'handlers'].map((store): [string, Partial<Change>, null] => [
      `a change in ${store}`,
      { store, before: image({ a: 1 }), after: image({ a: 2 }) },
      null,
    ]),
  ];

  test.each(silent)('creates no event for %s', (_name, fields, packetReaders) => {
    expect(toEvents(change(fields), packetReaders)).toEqual([]);
  });
});

describe('toEvents: an object appears and disappears', () => {
  const users = ['u1', 'u2', 'u3', 'u4'];
  const guards = fc.record({
    owner: fc.constantFrom(...users),
    access: fc.uniqueArray(fc.constantFrom(...users)),
    branch: fc.uniqueArray(fc.constantFrom('g1', 'g2', 'g3'), { minLength: 1 }),
  });
  const callers = users.flatMap((userId) => ['g1', 'g2', 'g3'].map((groupId) => ({ userId, groupId })));
  const seenBy = (at: readonly string[], of: AccessFields | null): boolean =>
    of !== null && audienceOf(of).some((reader) => at.includes(reader));
  const eventsFor = (at: readonly string[], events: readonly LiveEvent[]): string[] => {
    const rooms = new Set(roomsOf(at, NO_FILTER));
    return events.filter((event) => createAudienceTest(event)({ rooms, permitted: null })).map(({ name }) => name);
  };
  const changeOf = (before: AccessFields | null, after: AccessFields | null): Change =>
    change({
      kind: before === null ? 'created' : after === null ? 'removed' : 'changed',
      before: before && image({ ...before } as unknown as JsonObject),
      after: after && image({ ...after, s: 1 } as unknown as JsonObject),
    });

  test('sends each caller at most one event, the correct one', () => {
    fc.assert(
      fc.property(fc.option(guards), fc.option(guards), (before, after) => {
        const events = toEvents(changeOf(before, after), null);
        for (const caller of callers) {
          const at = addressesOf(scopeOf(caller));
          const saw = seenBy(at, before);
          const sees = seenBy(at, after);
          const expected = saw && sees ? ['object-update'] : sees ? ['object-created'] : saw ? ['object-removed'] : [];
          expect([caller, eventsFor(at, events)]).toEqual([caller, expected]);
        }
      }),
    );
  });

  test('sends data of past changes only to the current audience', () => {
    fc.assert(
      fc.property(fc.option(guards), fc.option(guards), fc.option(guards), (before, after, today) => {
        const events = toPastEvents(changeOf(before, after), today && audienceOf(today));
        for (const caller of callers) {
          const at = addressesOf(scopeOf(caller));
          const names = eventsFor(at, events);
          const saw = seenBy(at, before);
          const sees = seenBy(at, after);
          const still = seenBy(at, today);
          expect(names.length).toBeLessThanOrEqual(1);
          expect([caller, names.includes('object-removed')]).toEqual([caller, saw && !sees]);
          expect([caller, names.includes('object-created')]).toEqual([caller, !saw && sees && still]);
          if (names.includes('object-update')) expect(still).toBe(true);
        }
      }),
    );
  });

  test('contains only the _id of an object that is no longer visible', () => {
    const [event] = toEvents(changeOf({ owner: 'u1', access: [], branch: ['g1'] }, null), null);
    expect(payloadOf(event)).toEqual({ id });
  });
});

describe('toEvents: a command', () => {
  const guarded = { owner: 'u9', group: 'g9', branch: ['g9'], access: [], time: 1 };
  const command = (status: string, more: JsonObject = {}): JsonObject => ({
    _id: 'c',
    object: id,
    command: 'open',
    params: { a: 1 },
    status,
    times: { queued: 1 },
    expires: 9,
    ...guarded,
    ...more,
  });
  const commandPayload = (status: string, more: JsonObject = {}) => {
    const { object: _, owner, group, branch, access, time, ...shown } = command(status, more);
    return { id, command: shown };
  };
  const of = (before: JsonObject | null, after: JsonObject | null, kind: Change['kind'] = 'changed') =>
    change({ store: 'commands', kind, id: 'c', before, after });

  test.each<[what: string, change: Change, name: string, payload: object]>([
    ['given', of(null, command('queued'), 'created'), 'object-command-req', commandPayload('queued')],
    [
      'done',
      of(command('delivered'), command('done', { result: { b: null } })),
      'object-command-res',
      commandPayload('done', { result: { b: null } }),
    ],
    [
      'done, with null for an answer',
      of(command('sent'), command('done', { result: null })),
      'object-command-res',
      commandPayload('done', { result: null }),
    ],
    [
      'failed',
      of(command('queued'), command('failed', { result: 'no' })),
      'object-command-err',
      commandPayload('failed', { result: 'no' }),
    ],
    ['expired', of(command('delivered'), command('expired')), 'object-command-err', commandPayload('expired')],
  ])('converts a change: %s', (_, one, name, payload) => {
    const events = toEvents(one, audience);
    expect(events).toMatchObject([{ name, objectId: id, audience, position: 'p' }]);
    expect(payloadOf(events[0])).toEqual(payload);
    // A removed object causes no events.
    expect(toEvents(one, null)).toEqual([]);
  });

  test.each<[what: string, change: Change]>([
    ['sent', of(command('queued'), command('sent'))],
    ['sent again', of(command('sent'), command('sent', { times: { sent: 2 } }))],
    ['waiting again', of(command('sent'), command('queued'))],
    ['delivered', of(command('sent'), command('delivered'))],
    ['shared after it ended', of(command('done'), command('done', { access: ['u1'] }))],
    ['changed, with an unknown former state', of(null, command('done'))],
    ['removed', of(command('done'), null, 'removed')],
  ])('creates no event for %s', (_, one) => expect(toEvents(one, audience)).toEqual([]));

  test('goes to the audience of its object, like a packet', () => {
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
    groups: fc.option(some(groups)),
    events: fc.option(some<EventName>(EVENT_NAMES)),
  });
  const caller = fc.record({ userId: fc.constantFrom(...users), groupId: fc.constantFrom(...groups) });
  const guarded = fc.record({ owner: fc.constantFrom(...users), branch: some(groups), access: some(users) });
  const event = fc.record({ name: fc.constantFrom(...EVENT_NAMES), objectId: fc.constantFrom('o1', 'o2', 'o3') });

  test('matches a socket and an event exactly if permissions and filter match', () => {
    let agreed = 0;
    fc.assert(
      fc.property(
        caller,
        guarded,
        narrowing,
        event,
        (who, entity: AccessFields, wanted: EventFilter, { name, objectId }) => {
          const sees =
            entity.branch.includes(who.groupId) || entity.owner === who.userId || entity.access.includes(who.userId);
          // No `_id` of an object is `*`; who asks for it must not get everything.
          const asked = wanted.objects?.filter((one) => one !== '*') ?? null;
          const isWithin = wanted.groups?.some((group) => entity.branch.includes(group)) ?? true;
          const wants = isWithin && (asked?.includes(objectId) ?? true) && (wanted.events?.includes(name) ?? true);
          const at = addressesOf(scopeOf(who));
          const rooms = new Set(roomsOf(at, { ...wanted, objects: asked }));
          const audience = audienceOf(entity);
          const event = { name, objectId, audience, viewers: audience, limits: null, position: 'p', encoded: {} };
          const isInAudience = createAudienceTest({ ...event, toJson: () => Buffer.of() });
          const receives = isInAudience({ rooms, permitted: wanted.groups && new Set(at) });
          if (receives) agreed++;
          expect(receives).toBe(sees && wants);
        },
      ),
      { numRuns: 2_000 },
    );
    expect(agreed).toBeGreaterThan(50);
  });

  test.each([
    [NO_FILTER, null, NO_FILTER],
    [NO_FILTER, ['o1'], { ...NO_FILTER, objects: ['o1'] }],
    [NO_FILTER, [], { ...NO_FILTER, objects: [] }],
    [{ ...NO_FILTER, objects: ['o1', 'o2'] }, ['o2', 'o3'], { ...NO_FILTER, objects: ['o2'] }],
    [{ ...NO_FILTER, groups: ['g'] }, ['o2'], { ...NO_FILTER, groups: ['g'], objects: ['o2'] }],
    [
      { groups: null, objects: ['o1'], events: ['object-packet' as const] },
      null,
      { groups: null, objects: ['o1'], events: ['object-packet'] },
    ],
    [{ ...NO_FILTER, objects: [] }, ['o2'], { ...NO_FILTER, objects: [] }],
  ])('restricts %j to %j: %j', (wanted, permitted, held) => {
    expect(restrictFilter(wanted, permitted)).toEqual(held);
  });

  test('gives no rooms without permitted objects', () => {
    expect(roomsOf(['group:g', 'user:u'], restrictFilter(NO_FILTER, []))).toEqual([]);
  });
});

describe('parseEventFilter', () => {
  test.each([
    [{}, NO_FILTER],
    [{ objects: null, events: null }, NO_FILTER],
    [{ objects: [] }, { ...NO_FILTER, objects: [] }],
    [{ groups: ['A'.repeat(24)] }, { ...NO_FILTER, groups: ['a'.repeat(24)] }],
    [
      { objects: ['a'], events: ['object-update'] },
      { groups: null, objects: ['a'], events: ['object-update'] },
    ],
    [{ more: 1 }, NO_FILTER],
  ])('parses %j', (request, narrowing) => {
    expect(parseEventFilter(request)).toEqual(narrowing);
  });

  test.each([
    [undefined, 'subscribe'],
    [null, 'subscribe'],
    ['all', 'subscribe'],
    [[], 'subscribe'],
    [{ groups: ['north'] }, 'groups'],
    [{ groups: Array(21).fill('a'.repeat(24)) }, 'groups'],
    [{ groups: ['a'.repeat(24)], objects: [] }, 'groups'],
    [{ objects: 'a' }, 'objects'],
    [{ objects: [1] }, 'objects'],
    [{ objects: [{ $ne: null }] }, 'objects'],
    [{ objects: Array(1_001).fill('a') }, 'objects'],
    [{ events: ['object-packets'] }, 'events'],
    [{ events: 'object-packet' }, 'events'],
    [{ events: ['toString'] }, 'events'],
  ])('refuses %j, and names the field', (request, field) => {
    expect(() => parseEventFilter(request)).toThrow(new RegExp(`^${field}: expected`));
  });
});
