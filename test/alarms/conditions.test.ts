/** What rules promise, condition by condition: a table of packets and the alarms that must follow, with a real service. */
import { describe, expect, test } from '@jest/globals';
import { entityOf } from '../support/answers.js';
import { useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const START = Date.now() - 3_000_000;
let count = 0;

interface Case {
  readonly rule: object;
  readonly packets: readonly object[];
  /** From which packet to which each alarm is raised, by their numbers; null: still. */
  readonly spans: readonly (readonly (number | null)[])[];
  readonly config?: object;
}

const square = (west: number, east: number) => ({
  type: 'Polygon',
  coordinates: [
    [
      [west, 50],
      [east, 50],
      [east, 51],
      [west, 51],
      [west, 50],
    ],
  ],
});

const fences = new Map<string, string>();

/** Two squares side by side, and a narrow one further east. */
async function fenceIds(): Promise<Record<'west' | 'east' | 'narrow', string>> {
  const geometries = { west: square(10, 11), east: square(11, 12), narrow: square(20, 20.001) };
  for (const [name, geometry] of Object.entries(geometries)) {
    if (!fences.has(name)) fences.set(name, entityOf(await service.admin('POST', 'geofences', { name, geometry }))._id);
  }
  return Object.fromEntries(fences) as Record<'west' | 'east' | 'narrow', string>;
}

const at = (lon: number, more: object = {}) => ({ lat: 50.5, lon, ...more });
const p = (op: string, value?: unknown, param = 't') => ({ param, op, value });
const ts = (...values: readonly unknown[]) => values.map((t) => ({ t }));

const CASES: Readonly<Record<string, Case>> = {
  greater: { rule: { when: p('>', 8) }, packets: ts(8, 9, 8), spans: [[1, 2]] },
  'greater or equal': { rule: { when: p('>=', 8) }, packets: ts(7.9, 8, 7), spans: [[1, 2]] },
  less: { rule: { when: p('<', -1) }, packets: ts(-1, -1.1, 0), spans: [[1, 2]] },
  'less or equal': { rule: { when: p('<=', 0) }, packets: ts(1, 0, 0.1), spans: [[1, 2]] },
  'equal to a number': {
    rule: { when: p('==', 5) },
    packets: ts(4, 5, '5', 5),
    spans: [
      [1, 2],
      [3, null],
    ],
  },
  'equal to false': { rule: { when: p('==', false) }, packets: ts(true, false, 0), spans: [[1, 2]] },
  'equal to an empty text': { rule: { when: p('==', '') }, packets: ts('a', '', null, 'b'), spans: [[1, 3]] },
  different: { rule: { when: p('!=', 'ok') }, packets: ts('ok', 'ko', null, 'ok'), spans: [[1, 3]] },
  'in a list': {
    rule: { when: p('in', ['a', 2, true]) },
    packets: ts('b', 2, '2', true, 'b'),
    spans: [
      [1, 2],
      [3, 4],
    ],
  },
  between: {
    rule: { when: p('between', [2, 4]) },
    packets: ts(1, 2, 4, 4.1, 3),
    spans: [
      [1, 3],
      [4, null],
    ],
  },
  changed: {
    rule: { when: p('changed') },
    packets: ts(1, 1, 2, 2, 'x', null, 'x'),
    spans: [
      [2, 3],
      [4, 6],
    ],
  },
  'changed lists': { rule: { when: p('changed') }, packets: ts([1], [1], [2], [2]), spans: [[2, 3]] },
  nested: {
    rule: { when: p('>', 90, 'engine.temp') },
    packets: [{ engine: { temp: 91 } }, { engine: { oil: 1 } }, { engine: null }, { 'engine.temp': 1 }],
    spans: [[0, 3]],
  },
  'a threshold of the object': {
    rule: { when: p('>', { config: 'limits.t' }) },
    config: { limits: { t: 5 } },
    packets: ts(6, 5),
    spans: [[0, 1]],
  },
  'a threshold that is missing': { rule: { when: p('>', { config: 'none' }) }, packets: ts(1, 9), spans: [] },
  'a threshold that is text': {
    rule: { when: p('>', { config: 'max' }) },
    config: { max: '5' },
    packets: ts(1, 9),
    spans: [],
  },
  'a text of the object': {
    rule: { when: p('!=', { config: 'mode' }) },
    config: { mode: 'eco' },
    packets: ts('eco', 'sport', 'eco'),
    spans: [[1, 2]],
  },
  'a list of the object': {
    rule: { when: p('in', { config: 'modes' }) },
    config: { modes: ['a', 'b'] },
    packets: ts('c', 'b', 'c'),
    spans: [[1, 2]],
  },
  'a range of the object': {
    rule: { when: { not: p('between', [{ config: 'low' }, 8]) } },
    config: { low: 2 },
    packets: ts(2, 1, 8, 9),
    spans: [
      [1, 2],
      [3, null],
    ],
  },
  'any, of which one is never sent': {
    rule: { when: { any: [p('>', 8), p('>', 1, 'x')] } },
    packets: ts(9, 1),
    spans: [[0, 1]],
  },
  'parts in different packets': {
    rule: { when: { all: [p('>', 8), p('==', 'open', 'door')] } },
    packets: [{ t: 9 }, { door: 'open' }, { door: 'shut' }, { door: 'open' }, { t: 1 }],
    spans: [
      [1, 2],
      [3, 4],
    ],
  },
  'a nested condition': {
    rule: { when: { all: [{ not: { any: [p('<', 2), p('>', 8)] } }, { expr: 'p.u > 1' }] } },
    packets: [{ t: 5, u: 2 }, { t: 9 }, { t: 5 }, { u: 0 }],
    spans: [
      [0, 1],
      [2, 3],
    ],
  },
  hysteresis: { rule: { when: p('>', 8), clear: p('<', 6) }, packets: ts(9, 7, 9, 5, 7), spans: [[0, 3]] },
  'another parameter that clears': {
    rule: { when: p('>', 8), clear: p('==', true, 'ok') },
    packets: [{ t: 9 }, { t: 1 }, { ok: false }, { ok: true }],
    spans: [[0, 3]],
  },
  'an expression of values before': {
    rule: { when: { expr: 'last.t - p.t > 5' } },
    packets: ts(20, 10, 9),
    spans: [[1, 2]],
  },
  'an expression of the object': {
    rule: { when: { expr: "object.config.kind == 'cold' && p.t > 1" } },
    config: { kind: 'cold' },
    packets: ts(1, 2, 1),
    spans: [[1, 2]],
  },
};

const FENCE_CASES: Readonly<Record<string, (ids: Record<'west' | 'east' | 'narrow', string>) => Case>> = {
  'inside one of two': ({ west, east }) => ({
    rule: { when: { geofence: [west, east], is: 'inside' } },
    packets: [at(9), at(10.5), at(11), at(11.5), at(13)],
    spans: [[1, 4]],
  }),
  'outside of two side by side': ({ west, east }) => ({
    rule: { when: { geofence: [west, east], is: 'outside' } },
    packets: [at(10.5), at(11.5), at(13), { t: 1 }, at(11)],
    spans: [[2, 4]],
  }),
  'entering one of two': ({ west, east }) => ({
    rule: { when: { geofence: [west, east], on: 'enter' } },
    packets: [at(9), at(10.5), at(11.5), at(13)],
    spans: [[1, 3]],
  }),
  'leaving two, not from one to the other': ({ west, east }) => ({
    rule: { when: { geofence: [west, east], on: 'exit' } },
    packets: [at(10.5), at(11.5), at(13), at(11.5)],
    spans: [[2, 3]],
  }),
  'entering a narrow one on the way': ({ narrow }) => ({
    rule: { when: { geofence: narrow, on: 'enter' } },
    packets: [at(19), at(21), at(22)],
    spans: [[1, 2]],
  }),
  'leaving a narrow one on the way': ({ narrow }) => ({
    rule: { when: { geofence: narrow, on: 'exit' } },
    packets: [at(19), at(21), at(22), at(20.0005)],
    spans: [[1, 3]],
  }),
  'not by a fix that is less exact than it is large': ({ narrow }) => ({
    rule: { when: { geofence: narrow, is: 'inside' } },
    packets: [at(20.0005, { accuracy: 500 }), at(20.0005, { accuracy: 5 }), at(25, { accuracy: 500 }), at(25)],
    spans: [[1, 3]],
  }),
};

async function check({ rule, packets, spans, config }: Case): Promise<void> {
  const id = `case-${count++}`;
  const object = entityOf(await service.admin('POST', 'objects', { id, name: id, ...(config && { config }) }))._id;
  const select = { objects: [id] };
  entityOf(await service.admin('POST', 'rules', { name: id, select, ...rule }));
  const times = packets.map((_, index) => START + index * 1_000);
  for (const [index, packet] of packets.entries()) {
    entityOf(await service.admin('POST', `objects/${id}/packets`, { ...packet, time: times[index] }));
  }
  // What ends the table: everything before it is evaluated then.
  entityOf(await service.admin('POST', 'rules', { name: 'end', select, when: { param: 'end', op: '==', value: 1 } }));
  await service.settled();
  entityOf(await service.admin('POST', `objects/${id}/packets`, { end: 1, time: START + 1_000_000 }));
  const list = async () => (await service.admin('GET', `alarms?where.object=${object}&sortBy=raised`)).body;
  await until(async () => (await list()).some(({ name }: { name: string }) => name === 'end'), 'the end');
  const toNumber = (time: number | null) => (time === null ? null : times.indexOf(time));
  const found = (await list()).filter(({ name }: { name: string }) => name !== 'end');
  const shown = found.map(({ raised, cleared }: { raised: number; cleared: number | null }) => [raised, cleared]);
  expect(shown.map((span: (number | null)[]) => span.map(toNumber))).toEqual(spans);
  const past = { object: id, from: START - 1, to: START + 500_000, rule: { name: id, ...rule } };
  const { body } = await service.admin('POST', 'rules/test', past);
  // The dry run is the same.
  const dry = body.alarms.map(({ raised, cleared }: { raised: number; cleared: number | null }) => [raised, cleared]);
  expect(dry).toEqual(shown);
}

describe('a rule', () => {
  test.each(Object.keys(CASES))('follows a condition: %s', (name) => check(CASES[name] as Case));
  test.each(Object.keys(FENCE_CASES))('follows a geofence: %s', async (name) => {
    await check((FENCE_CASES[name] as (typeof FENCE_CASES)[string])(await fenceIds()));
  });
});
