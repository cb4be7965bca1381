/** Dry runs over the packets of a device whose clock is slow: what the service has reported is put where it came. */
import { expect, test } from '@jest/globals';
import { createDryRun } from '../../../src/alarms/dry-run.js';
import { createReportReader, readsPresence } from '../../../src/alarms/past-presence.js';
import type { JsonObject } from '../../../src/core/json.js';
import { compile, MINUTE_MS, spansOf } from './support.js';

const DAY_MINUTES = 1_440;
const HOT = { param: 't', op: '>', value: 8 };
const BROKEN = { online: false };

type Stored = readonly [minute: number, fields: JsonObject, receivedMinute?: number];

/** Data of a clock that is a day behind, unless another minute is named; a report by the minute at which it came, less a day. */
const toPacket = ([minute, fields, receivedMinute = minute]: Stored, index: number): JsonObject => {
  const received = (receivedMinute + DAY_MINUTES) * MINUTE_MS;
  const time = 't' in fields ? minute * MINUTE_MS : received;
  return { _id: `p${index}`, time, _ts: received * 1_000, online: true, ...fields };
};

function run(when: JsonObject, stored: readonly Stored[], endMinute: number) {
  const packets = stored.map(toPacket).sort((one, other) => (one.time as number) - (other.time as number));
  const reader = createReportReader();
  for (const packet of packets) reader.add(packet);
  const dryRun = createDryRun(compile({ when }), { object: {}, fromMs: 0, reports: reader.end() });
  for (const packet of packets) dryRun.add(packet);
  const nowMs = (endMinute + DAY_MINUTES) * MINUTE_MS;
  return spansOf(dryRun.end(nowMs, nowMs).alarms);
}

type Row = [about: string, when: JsonObject, stored: readonly Stored[], spans: (number | null)[][]];

test.each<Row>([
  [
    'reports between data',
    BROKEN,
    [
      [1, { t: 1 }],
      [5, BROKEN],
      [7, { online: true }],
      [9, { t: 1 }],
    ],
    [[5, 7]],
  ],
  [
    'reports together with data',
    { all: [HOT, BROKEN] },
    [
      [1, { t: 9 }],
      [5, BROKEN],
      [9, { t: 1, online: false }],
    ],
    [[5, 9]],
  ],
  [
    'reports after data that was held back',
    BROKEN,
    [
      [1, { t: 1 }],
      [3, BROKEN],
      [5, { t: 1, online: false }, 20],
      [19, { online: true }],
    ],
    [[3, 19]],
  ],
  ['reports before any data', BROKEN, [[5, BROKEN]], [[DAY_MINUTES + 5, null]]],
  [
    'silence until now',
    { silent: '10 min' },
    [
      [1, { t: 1 }],
      [35, { t: 1 }],
    ],
    [[11, 35]],
  ],
  [
    'silence, whatever is reported',
    { silent: '10 min' },
    [
      [1, { t: 1 }],
      [5, BROKEN],
    ],
    [[11, null]],
  ],
])('counts %s by the clock of the device', (_about, when, stored, spans) => {
  expect(run(when, stored, 40)).toEqual(spans);
});

test.each<[expr: string, expected: boolean]>([
  ['p.online', true],
  ['p["online"] == false', true],
  ['has(p.online) && p.t > 8.0', true],
  ['"online" in p', true],
  ['p.exists(name, name == "online")', true],
  ['size(p) > 3', true],
  ['p[object.name] == false', true],
  ['last.online == false', true],
  ['size(last) > 3', true],
  ['p.t > 8.0', false],
  ['p["t"] > last.t && object.online == true', false],
])('knows whether a rule asks for presence: %s', (expr, expected) => {
  expect(readsPresence(compile({ when: { expr } }))).toBe(expected);
});
