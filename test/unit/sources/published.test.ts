/** The published payloads of every kind of source, and thousands of damaged ones. */
import { describe, expect, test } from '@jest/globals';
import { ApiError } from '../../../src/core/errors.js';
import { parseSourceMap } from '../../../src/core/source.js';
import { SOURCE_KIND_NAMES, type SourceKindName } from '../../../src/core/source-kinds.js';
import type { SourceRequest } from '../../../src/devices/sources/kind.js';
import { explainKind, KINDS } from '../../../src/devices/sources/kinds.js';
import { ANSWERS, PAYLOADS, type Payload } from '../../support/payloads.js';
import { fc } from '../../support/runs.js';

const NOW_MS = 1_795_500_000_000;

const textOf = (body: unknown): string => (typeof body === 'string' ? body : JSON.stringify(body));

const toRequest = (kind: SourceKindName, { query = {}, headers = {}, map, body }: Partial<Payload>): SourceRequest => ({
  query,
  headers,
  body: Buffer.from(textOf(body)),
  map: parseSourceMap(kind, map as never),
  zone: null,
  nowMs: NOW_MS,
});

const named = (payloads: readonly Payload[]) => payloads.map((one) => [`${one.kind}: ${one.name}`, one] as const);

test.each(named(PAYLOADS))('reads %s', (_, payload) => {
  const { items, answer } = KINDS[payload.kind].read(toRequest(payload.kind, payload));
  const found = [...items].map((item) => ('reason' in item ? item : { device: item.devices[0], packet: item.packet }));
  expect(found).toEqual(payload.packets.map((packet) => ({ device: payload.device, packet })));
  expect(answer?.body).toBe(ANSWERS[payload.kind]);
});

describe('a record of SenML', () => {
  const readRecords = (...records: object[]) => {
    const items = [...KINDS.senml.read(toRequest('senml', { body: records })).items];
    return items.map((item) => ('reason' in item ? item.reason : item.packet));
  };

  test.each(['constructor', 'toString', '__proto__', 'no unit'])('is called "value" where its unit is %s', (u) => {
    expect(readRecords({ bn: 'urn:dev:ow:1', u, v: 1 })).toEqual([{ value: 1 }]);
  });

  test('is refused, and none of the others, where its value is no number', () => {
    const records = [
      { bn: 'urn:dev:ow:1:', n: 'a', v: 'warm' },
      { n: 'b', v: '21.5' },
      { n: 'c', v: null, vs: 'x' },
    ];
    expect(readRecords(...records)).toEqual([{ b: 21.5, c: 'x' }, 'record 0: v: expected a number']);
  });

  test.each<object>([{ v: 'warm' }, { v: 1, u: 5 }, { v: 1, t: 'noon' }, { v: 1, n: ['a'] }, { v: 1, x_: 1 }])(
    'leaves its base to the others where it cannot be read: %j',
    (wrong) => {
      const records = [
        { bn: 'urn:dev:ow:1:', bt: 1_795_500_000, bu: 'Cel', n: 'a', ...wrong },
        { n: 'b', v: 2 },
      ];
      const items = [...KINDS.senml.read(toRequest('senml', { body: records })).items];
      expect(items[0]).toMatchObject({ devices: ['urn:dev:ow:1', '1'], packet: { b: 2, time: 1_795_500_000_000 } });
      expect(items).toHaveLength(2);
    },
  );

  test.each<object>([{ bt: 'soon' }, { bt: '2026-11-24T06:00:00Z' }, { bt: [1] }, { bn: 7 }, { bu: false }])(
    'costs all after it where its base is none: %j',
    (wrong) => {
      const records = [
        { bn: 'urn:dev:ow:1:', n: 'a', v: 1 },
        { n: 'b', v: 2, ...wrong },
        { n: 'c', v: 3 },
      ];
      expect(readRecords(...records)).toEqual([{ a: 1 }, expect.stringMatching(/^record 1: b.: expected/)]);
    },
  );

  test.each<unknown>(['noon', '2026-11-24T06:00:00Z', true, [5]])('is refused where its time is %j', (t) => {
    const records = [
      { bn: 'urn:dev:ow:1:', n: 'a', v: 1 },
      { n: 'b', t, v: 2 },
      { n: 'c', v: 3 },
    ];
    expect(readRecords(...records)).toEqual([{ a: 1, c: 3 }, 'record 1: t: expected a number']);
  });

  test.each([{ toString: 1 }, 7, ['Cel'], false])('costs none of the others where its unit is %j', (u) => {
    const records = [
      { bn: 'urn:dev:ow:1:', n: 'a', v: 1 },
      { n: 'b', u, v: 2 },
      { n: 'c', v: 3 },
    ];
    expect(readRecords(...records)).toEqual([{ a: 1, c: 3 }, 'record 1: u: expected text']);
  });
});

test('has published payloads of every kind but that of any JSON', () => {
  expect([...new Set(PAYLOADS.map(({ kind }) => kind))].sort()).toEqual(
    SOURCE_KIND_NAMES.filter((kind) => kind !== 'json').sort(),
  );
});

describe('a payload', () => {
  const ofJson = PAYLOADS.filter(({ body }) => typeof body !== 'string');

  test.each(named(ofJson))('is recognised where it is sent to a source of another kind: %s', (_, { kind, body }) => {
    for (const other of SOURCE_KIND_NAMES) {
      if (other === kind) expect(explainKind(body, other)).toBeNull();
      else expect(explainKind(body, other)).toContain(`that one is ${kind}`);
    }
  });
});

/** Values of the payload with one of them replaced, at any depth, or removed. */
function damage(value: unknown, path: readonly number[], other: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined || typeof value !== 'object' || value === null) return other;
  const names = Object.keys(value);
  if (names.length === 0) return other;
  const name = names[step % names.length] as string;
  const copy = structuredClone(value) as Record<string, unknown>;
  copy[name] = damage(copy[name], rest, other);
  return copy;
}

const ANY = fc.oneof(
  fc.jsonValue(),
  // What JavaScript cannot convert to text, and names that every object has.
  fc.constantFrom<unknown>({ toString: 1 }, { toString: null, valueOf: 'x' }, 'constructor', 'toString', 'valueOf'),
  fc.constantFrom('', '-1', -1, 1e308, 91, 181, '0001-01-01', 20_261_123, '__proto__', [], {}, null, undefined, [[]]),
);

test.each(SOURCE_KIND_NAMES)('reads anything as %s, or says why it cannot', (kind) => {
  const own = PAYLOADS.filter((payload) => payload.kind === kind && typeof payload.body !== 'string');
  const damaged = fc
    .tuple(fc.constantFrom(...(own.length > 0 ? own : PAYLOADS)), fc.array(fc.nat(40), { maxLength: 6 }), ANY)
    .map(([payload, path, other]) => ({ ...payload, body: damage(payload.body, path, other) ?? '' }));
  const anything = fc.record({
    body: fc.oneof(fc.json(), fc.string()),
    query: fc.dictionary(fc.string(), fc.string()),
  });
  const queries = fc.record({
    body: fc.constant(''),
    query: fc.dictionary(
      fc.constantFrom('id', 'lat', 'lon', 'timestamp', 'speed', 'batt', 'location', 'x'),
      fc.string(),
    ),
  });
  fc.assert(
    fc.property(fc.oneof({ weight: 8, arbitrary: damaged }, anything, queries), (payload: Partial<Payload>) => {
      try {
        const { items } = KINDS[kind].read(toRequest(kind, { ...payload, map: undefined }));
        for (const item of items) expect('reason' in item || typeof item.packet === 'object').toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(ApiError);
        expect((error as ApiError).status).toBe(400);
      }
    }),
    { numRuns: 1_000 },
  );
});
