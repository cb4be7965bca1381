/** The arithmetic of the measurements. */
import { describe, expect, test } from '@jest/globals';
import { createFrameCounter, readSentTimes } from '../../../scripts/bench/live-load.js';
import type { Round } from '../../../scripts/bench/measure.js';
import { format, median, percentile } from '../../../scripts/bench/stats.js';
import { type Measurement, toTable } from '../../../scripts/bench/table.js';
import { WORKLOADS } from '../../../scripts/bench/workloads.js';
import { fc } from '../../support/runs.js';

describe('arithmetic', () => {
  test.each<[number[], number]>([
    [[3], 3],
    [[9, 1, 5], 5],
    [[4, 1, 3, 2], 2.5],
    [[Number.NaN, 2], 2],
    [[], Number.NaN],
  ])('finds the median of %j: %d', (values, middle) => expect(median(values)).toBe(middle));

  test.each<[number[], number, number]>([
    [[5, 1, 4, 2, 3], 0.5, 3],
    [[5, 1, 4, 2, 3], 0.99, 5],
    [[7], 0.5, 7],
    [[], 0.5, Number.NaN],
  ])('finds a percentile of %j, %d', (values, share, found) => expect(percentile(values, share)).toBe(found));

  test.each<[number, string]>([
    [12_345.6, '12,346'],
    [12.34, '12.3'],
    [1.234, '1.23'],
    [0, '0.00'],
    [Number.NaN, '–'],
  ])('formats %d as %s', (value, text) => expect(format(value)).toBe(text));
});

test('prints a line for each server with medians and the median ratio to the floor', () => {
  const round = (perSecond: number, more: Partial<Round> = {}): Round => ({
    perSecond,
    p50: 1,
    p99: 2,
    errors: 0,
    serverCpuMs: 0.1,
    mongodCpuMs: 0.2,
    peakMb: null,
    readsP99: null,
    ...more,
  });
  const measurements: Measurement[] = [
    { workload: 'W1', server: 'ours', rounds: [round(100), round(400), round(300)] },
    { workload: 'W1', server: 'floor', rounds: [round(200), round(100), round(200)] },
    { workload: 'W3', server: 'ours', rounds: [round(50, { peakMb: 150, errors: 2 })] },
  ];
  const workloads = WORKLOADS.filter(({ id }) => id === 'W1' || id === 'W3');
  expect(toTable(workloads, measurements).split('\n').slice(2)).toEqual([
    '| W1 | GET one object | ours | 300 | 1.50 | 1.00 | 2.00 | 0.10 | 0.20 |  |',
    '|  | | floor | 200 | 1.00 | 1.00 | 2.00 | 0.10 | 0.20 |  |',
    '| W3 | page of 10,000 packets | ours | 50.0 | – | 1.00 | 2.00 | 0.10 | 0.20 | 2.00 errors, peak 150 MiB |',
  ]);
});

describe('frames', () => {
  const frame = (text: string): Buffer => {
    const body = Buffer.from(text);
    const { length } = body;
    if (length < 126) return Buffer.concat([Buffer.from([0x81, length]), body]);
    if (length < 65_536) return Buffer.concat([Buffer.from([0x81, 126, length >> 8, length & 255]), body]);
    const long = Buffer.from([0x81, 127, 0, 0, 0, 0, 0, 0, 0, 0]);
    long.writeUInt32BE(length, 6);
    return Buffer.concat([long, body]);
  };
  const cut = (bytes: Buffer, places: readonly number[]): Buffer[] => {
    const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
    return [0, ...ends].map((from, at) => bytes.subarray(from, ends[at] ?? bytes.length));
  };

  test('counts only events, wherever the bytes are split', () => {
    const texts = fc.array(
      fc.oneof(fc.nat(100), fc.nat(1_000), fc.constant(70_000)).map((length) => 'x'.repeat(length)),
    );
    const property = fc.property(texts, fc.array(fc.nat()), (given, places) => {
      let events = 0;
      const count = createFrameCounter(() => events++);
      for (const part of cut(Buffer.concat(given.map(frame)), places)) count(part);
      expect(events).toBe(given.filter(({ length }) => length > 20).length);
    });
    fc.assert(property);
  });

  test('reads each send time once, wherever the bytes are split', () => {
    const times = fc.array(fc.integer({ min: 1, max: 1e9 }).map((us) => us / 1_000));
    const property = fc.property(times, fc.array(fc.nat()), (given, places) => {
      const bytes = Buffer.concat(given.map((time) => frame(`42["object-packet",{"a":1,"sentMs":${time}}]`)));
      let rest: Buffer = Buffer.alloc(0);
      const found: number[] = [];
      for (const part of cut(bytes, places)) {
        const read = readSentTimes(Buffer.concat([rest, part]));
        rest = read.rest;
        found.push(...read.times);
      }
      expect(found).toEqual(given);
    });
    fc.assert(property);
  });
});
