/** When alarms are raised and cleared: by packets, by time alone, by hours, by late packets. */
import { describe, expect, test } from '@jest/globals';
import { isQuiet, type PacketInput } from '../../../src/alarms/evaluate.js';
import type { JsonObject } from '../../../src/core/json.js';
import { LIMITS } from '../../../src/core/limits.js';
import { Steps } from '../../../src/core/rule/metering.js';
import { compile, FENCE, run, type Sent, spansOf } from './support.js';

const HOT = { param: 't', op: '>', value: 8 };
/** No packet has it. */
const X = { param: 'x', op: '>', value: 1 };
const at = (...values: readonly (readonly [number, number | null])[]): Sent[] =>
  values.map(([minute, t]) => [minute, { t }]);
const HOME = { lat: 50, lon: 10 };
const AWAY = { lat: 51, lon: 10 };

type Row = [about: string, rule: JsonObject, sent: readonly Sent[], spans: (number | null)[][]];

describe('conditions', () => {
  test.each<Row>([
    ['at once', { when: HOT }, at([1, 7], [2, 9], [3, 10], [4, 8]), [[2, 4]]],
    [
      'again and again',
      { when: HOT },
      at([1, 9], [2, 1], [3, 9], [4, 1]),
      [
        [1, 2],
        [3, 4],
      ],
    ],
    ['and stay raised', { when: HOT }, at([1, 9]), [[1, null]]],
    [
      'not because of what is missing or null',
      { when: HOT },
      [
        [1, { t: 9 }],
        [2, { x: 1 }],
        [3, { t: null }],
        [4, { t: 1 }],
      ],
      [[1, 4]],
    ],
    [
      'by an expression, until a packet lacks what it asks for, which a report of presence does not',
      { when: { expr: 'has(p.t) && p.t > 8' } },
      [
        [1, { t: 9 }],
        [2, {}],
        [3, { x: 1 }],
      ],
      [[1, 3]],
    ],
    [
      'not because of text',
      { when: HOT },
      [
        [1, { t: 'hot' }],
        [2, { t: 9 }],
        [3, { t: 'hot' }],
      ],
      [[2, null]],
    ],
    [
      'of equality',
      { when: { param: 't', op: '==', value: 'open' } },
      [
        [1, { t: 'open' }],
        [2, { t: 3 }],
      ],
      [[1, 2]],
    ],
    [
      'of inequality',
      { when: { param: 't', op: '!=', value: 'ok' } },
      [
        [1, { t: 'ok' }],
        [2, { t: 3 }],
        [3, { t: 'ok' }],
      ],
      [[2, 3]],
    ],
    [
      'of a list',
      { when: { param: 't', op: 'in', value: [1, 'a'] } },
      [
        [1, { t: 2 }],
        [2, { t: 'a' }],
        [3, { t: '1' }],
      ],
      [[2, 3]],
    ],
    [
      'of a range',
      { when: { not: { param: 't', op: 'between', value: [2, 8] } } },
      at([1, 2], [2, 9], [3, 8]),
      [[2, 3]],
    ],
    ['of a change', { when: { param: 't', op: 'changed' } }, at([1, 5], [2, 5], [3, 6], [4, null], [5, 6]), [[3, 5]]],
    [
      'of a nested parameter',
      { when: { param: 'a.b', op: '>', value: 1 } },
      [
        [1, { a: { b: 2 } }],
        [2, { a: 3 }],
        [3, { a: { b: 1 } }],
      ],
      [[1, 3]],
    ],
    [
      'of parameters in different packets',
      { when: { all: [HOT, { param: 'door', op: '==', value: 'open' }] } },
      [
        [1, { t: 9 }],
        [2, { door: 'open' }],
        [3, { x: 1 }],
        [4, { t: 7 }],
      ],
      [[2, 4]],
    ],
    ['of any parameter that is known', { when: { any: [HOT, X] } }, at([1, 9], [2, 7]), [[1, 2]]],
    ['of any, not ended by what is missing', { when: { any: [HOT, X] } }, at([1, 9], [2, null]), [[1, null]]],
    ['of any, that is over before for ends', { when: { any: [HOT, X] }, for: '10 min' }, at([1, 9], [5, 7]), []],
    [
      'of any, that is over before for ends, though it is not clear',
      { when: { any: [HOT, X] }, for: '10 min', clear: { param: 't', op: '<', value: 2 } },
      at([1, 9], [5, 7]),
      [],
    ],
    [
      'of any, until none holds that did',
      { when: { any: [HOT, { all: [{ param: 't', op: '>', value: 0 }, X] }] } },
      at([1, 9], [2, 7]),
      [[1, 2]],
    ],
    [
      'of any, that begins to clear again',
      { when: HOT, clear: { any: [{ param: 't', op: '<', value: 2 }, X] }, clearFor: '10 min' },
      at([1, 9], [2, 1], [3, 7], [20, 1]),
      [[1, 30]],
    ],
    ['not of all, while one is not known', { when: { all: [HOT, X] } }, at([1, 9], [2, 7]), []],
    ['not of the opposite of any, while one is not known', { when: { not: { any: [HOT, X] } } }, at([1, 7]), []],
    [
      'of the opposite of all, until the one that is known is true',
      { when: { not: { all: [HOT, X] } } },
      at([1, 7], [2, 9]),
      [[1, 2]],
    ],
    ['of zero with a sign', { when: { param: 't', op: '==', value: 0 } }, at([1, -0], [2, 1]), [[1, 2]]],
    ['not of a sign of zero', { when: { param: 't', op: 'changed' } }, at([1, 0], [2, -0]), []],
    [
      'of all, once one is false',
      { when: { not: { all: [HOT, { param: 'x', op: '>', value: 1 }] } } },
      at([1, 9], [2, 7]),
      [[2, null]],
    ],
    [
      'of presence',
      { when: { online: false } },
      [
        [1, { online: true }],
        [2, { online: false }],
        [3, { online: true }],
      ],
      [[2, 3]],
    ],
    ['of an expression', { when: { expr: 'last.t - p.t > 5' } }, at([1, 20], [2, 19], [3, 10], [4, 9]), [[3, 4]]],
  ])('raises alarms %s', (_about, rule, sent, spans) => expect(spansOf(run(rule, sent).alarms)).toEqual(spans));

  test('raises alarms by a threshold of the object', () => {
    const rule = { when: { param: 't', op: '>', value: { config: 'max' } } };
    expect(spansOf(run(rule, at([1, 5], [2, 7]), { object: { config: { max: 6 } } }).alarms)).toEqual([[2, null]]);
    expect(run(rule, at([1, 5], [2, 7])).alarms).toEqual([]);
  });
});

describe('steps of expressions', () => {
  const long = { expr: 'size(p.text) > 3' };
  const sent = (share: number): Sent[] => [[1, { text: 'a'.repeat(LIMITS.expressionSteps * share) }]];

  test('are shared by the conditions of a rule, for each packet', () => {
    expect(spansOf(run({ when: { all: [long, long] } }, sent(0.4)).alarms)).toEqual([[1, null]]);
    expect(spansOf(run({ when: { all: [long, long] } }, [...sent(0.4), ...sent(0.45)]).alarms)).toEqual([[1, null]]);
    expect(run({ when: { all: [long, long] } }, sent(0.6)).alarms).toEqual([]);
    expect(spansOf(run({ when: { any: [long, long] } }, sent(0.6)).alarms)).toEqual([[1, null]]);
  });

  test('may be shared by several rules, which tells whether they were enough', () => {
    const rule = compile({ when: long });
    const steps = new Steps();
    const [[, fields]] = sent(0.6) as [Sent];
    const input: PacketInput = {
      packet: fields,
      isData: true,
      isNewest: true,
      fix: null,
      previousFix: null,
      last: {},
      object: {},
    };
    expect([isQuiet(rule, input, steps), steps.areSpent]).toEqual([false, false]);
    isQuiet(rule, input, steps);
    expect(steps.areSpent).toBe(true);
  });
});

describe('time', () => {
  test.each<Row>([
    ['for, too short', { when: HOT, for: '10 min' }, at([1, 9], [10, 9], [10.9, 7]), []],
    ['for, with packets', { when: HOT, for: '10 min' }, at([1, 9], [6, 9], [11, 9], [13, 7]), [[11, 13]]],
    ['for, between packets', { when: HOT, for: '10 min' }, at([1, 9], [6, 9], [12, 9]), [[11, null]]],
    ['for, with no further packet', { when: HOT, for: '10 min' }, at([1, 9]), [[11, null]]],
    ['for, that ran out before the packet that ends it', { when: HOT, for: '10 min' }, at([1, 9], [30, 7]), [[11, 30]]],
    ['for, ended at that instant', { when: HOT, for: '10 min' }, at([1, 9], [11, 7]), []],
    ['for, not ended by what is missing', { when: HOT, for: '10 min' }, at([1, 9], [5, null], [11, 9]), [[11, null]]],
    ['for, begun again', { when: HOT, for: '10 min' }, at([1, 9], [6, 7], [7, 9], [16, 9], [17, 9]), [[17, null]]],
    [
      'hysteresis',
      { when: HOT, clear: { param: 't', op: '<', value: 6 } },
      at([1, 9], [2, 7], [3, 9], [4, 5]),
      [[1, 4]],
    ],
    [
      'clear, that holds while it still calls',
      { when: HOT, clear: { param: 't', op: '>', value: 0 } },
      at([1, 9], [2, 9], [3, 1]),
      [[1, 3]],
    ],
    ['clearFor', { when: HOT, clearFor: '5 min' }, at([1, 9], [2, 7], [4, 9], [5, 7], [6, 7]), [[1, 10]]],
    [
      'silence',
      { when: { silent: '10 min' } },
      [
        [1, { t: 1 }],
        [5, { t: 1 }],
        [30, { t: 1 }],
      ],
      [
        [15, 30],
        [40, null],
      ],
    ],
    [
      'silence, though it reports presence',
      { when: { silent: '10 min' } },
      [
        [1, { t: 1 }],
        [8, {}],
      ],
      [[11, null]],
    ],
    ['silence from the beginning', { when: { silent: '10 min' } }, [], [[10, null]]],
    ['silence for longer', { when: { silent: '10 min' }, for: '5 min' }, [[1, { t: 1 }]], [[16, null]]],
  ])('follows %s', (_about, rule, sent, spans) => expect(spansOf(run(rule, sent).alarms)).toEqual(spans));

  test.each<Row>([
    ['nothing outside', { when: HOT }, at([10, 9], [20, 7]), []],
    ['when it opens', { when: HOT }, at([10, 9]), [[60, null]]],
    ['within', { when: HOT }, at([70, 9], [80, 7]), [[70, 80]]],
    ['until it clears, though it has closed', { when: HOT }, at([119, 9], [130, 9], [140, 7]), [[119, 140]]],
    ['not when for ends after it has closed', { when: HOT, for: '5 min' }, at([119, 9], [140, 7]), []],
    ['with for from when it opens', { when: HOT, for: '5 min' }, at([10, 9]), [[65, null]]],
  ])('raises with a schedule %s', (_about, rule, sent, spans) => {
    const schedule = { from: '01:00', to: '02:00' };
    expect(spansOf(run({ ...rule, schedule }, sent).alarms)).toEqual(spans);
  });
});

describe('geofences', () => {
  const fixes = (...places: readonly JsonObject[]): Sent[] => places.map((place, index) => [index + 1, place]);
  test.each<Row>([
    ['inside', { when: { geofence: FENCE, is: 'inside' } }, fixes(HOME, HOME, AWAY), [[1, 3]]],
    ['outside', { when: { geofence: [FENCE], is: 'outside' } }, fixes(HOME, AWAY, { t: 1 }, HOME), [[2, 4]]],
    ['entering', { when: { geofence: FENCE, on: 'enter' } }, fixes(HOME, AWAY, HOME, HOME, AWAY), [[3, 5]]],
    ['leaving', { when: { geofence: FENCE, on: 'exit' } }, fixes(AWAY, HOME, AWAY, AWAY, HOME), [[3, 5]]],
    [
      'crossing',
      { when: { geofence: FENCE, on: 'enter' } },
      fixes({ lat: 50, lon: 9 }, { lat: 50, lon: 11 }, { lat: 51, lon: 11 }),
      [[2, 3]],
    ],
    [
      'leaving by crossing',
      { when: { geofence: FENCE, on: 'exit' } },
      fixes({ lat: 50, lon: 9 }, { lat: 50, lon: 11 }, HOME),
      [[2, 3]],
    ],
    [
      'no crossing to and from an inexact fix',
      { when: { geofence: FENCE, on: 'enter' } },
      fixes({ lat: 50, lon: 9 }, { lat: 50, lon: 11, accuracy: 500 }, { lat: 50, lon: 9 }),
      [],
    ],
    [
      'not flapping',
      { when: { geofence: FENCE, is: 'outside' } },
      fixes(HOME, { ...AWAY, accuracy: 500 }, { ...AWAY, accuracy: 5 }),
      [[3, null]],
    ],
  ])('follows %s', (_about, rule, sent, spans) => expect(spansOf(run(rule, sent).alarms)).toEqual(spans));
});

describe('order', () => {
  test.each<Row>([
    ['packets not that are older than others', { when: HOT }, at([1, 7], [5, 7], [3, 9], [6, 7]), []],
    [
      'hears an object by them',
      { when: { silent: '10 min' } },
      at([1, 1], [30, 1]),
      [
        [11, 30],
        [40, null],
      ],
    ],
    [
      'reads data that is older than a report of presence',
      { when: HOT },
      [
        [5, {}],
        [4, { t: 9 }],
      ],
      [[4, null]],
    ],
    [
      'believes the newest report of presence',
      { when: { online: false } },
      [
        [5, { online: false }],
        [4, { t: 9, online: true }],
      ],
      [[5, null]],
    ],
    [
      'data before what time alone has raised, which ends no alarm before it began',
      { when: HOT, for: '2 min', clearFor: '1 min' },
      [
        [1, { t: 9 }],
        [5, {}],
        [2, { t: 1 }],
      ],
      [[3, 4]],
    ],
    [
      'data before what time alone has raised, which ends it where it began',
      { when: HOT, for: '2 min' },
      [
        [1, { t: 9 }],
        [5, {}],
        [2, { t: 1 }],
      ],
      [[3, 3]],
    ],
  ])('follows %s', (_about, rule, sent, spans) => expect(spansOf(run(rule, sent).alarms)).toEqual(spans));
});

test('says why: each part, what it read and since when', () => {
  const rule = { when: { all: [HOT, { param: 'door', op: '==', value: 'open' }] } };
  const { alarms } = run(rule, [
    [1, { t: 9 }],
    [2, { t: 12 }],
    [3, { door: 'open' }],
  ]);
  expect(alarms[0]).toMatchObject({
    packet: 'p2',
    values: { t: 12, door: 'open' },
    why: [
      { place: 'when.all[0]', condition: 't > 8', holds: true, value: 12, since: 60_000 },
      { place: 'when.all[1]', condition: 'door == "open"', holds: true, value: 'open', since: 180_000 },
    ],
  });
});

test('says how near it came', () => {
  const { alarms, evaluated, nearly } = run({ when: HOT, for: '10 min' }, at([1, 9], [5, 7.5], [6, 9], [13, 3]));
  expect(alarms).toEqual([]);
  expect(evaluated).toBe(4);
  expect(nearly).toEqual([
    { place: 'when', condition: 't > 8', heldMs: 420_000, since: 360_000, forMs: 600_000, closest: 9, at: 60_000 },
  ]);
});
