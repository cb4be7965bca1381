/** The data of the measurement of packed history. */
import { describe, expect, test } from '@jest/globals';
import { createDataSets, parseRecording, toStoredPackets } from '../../../scripts/bench/packed-data.js';
import { pack } from '../../../src/packed/pack.js';
import { BucketReader, unpack } from '../../../src/packed/unpack.js';

describe('recordings', () => {
  test('reads numbers, and leaves empty ones out', () => {
    expect(parseRecording('car.csv', 'time,speed,angle\n1000,1.5,\r\n2000,,-0.25\n')).toEqual([
      { time: 1_000, speed: 1.5 },
      { time: 2_000, angle: -0.25 },
    ]);
  });

  test.each([
    ['text', 'time,speed\n1000,fast', 2],
    ['a time that is no whole number', 'time,speed\n1000,1\n2000.5,1', 3],
    ['no time', 'speed\n1', 2],
  ])('names the line of %s', (_title, text, line) => {
    expect(() => parseRecording('car.csv', text)).toThrow(`car.csv, line ${line}: expected numbers and a time in ms`);
  });
});

describe('made data', () => {
  const [car, machine, scattered] = createDataSets(2_000);

  test('is the same each time, and in the order of time', () => {
    expect(createDataSets(2_000)).toEqual([car, machine, scattered]);
    for (const { samples } of [car, machine, scattered].filter((one) => one !== undefined)) {
      expect(samples.every(({ time }, nth) => nth === 0 || time > (samples[nth - 1]?.time ?? 0))).toBe(true);
    }
  });

  // The bars of docs/adr/0010-packed-history.md, for a thousand packets in a bucket.
  test.each([
    ['a car', car, 13],
    ['a machine', machine, 13],
    ['a car that chooses `_id`s', car, 20],
    ['a machine that chooses `_id`s', machine, 20],
  ])('packs each packet of %s into few bytes', (title, dataSet, most) => {
    const isIdChosen = title.includes('chooses');
    const rows = toStoredPackets(dataSet ?? { name: '', samples: [] }, isIdChosen).rows.slice(0, 1_000);
    const bucket = pack(rows);
    expect(Buffer.concat(unpack(bucket)).equals(Buffer.concat(rows))).toBe(true);
    const bytes = [bucket.head, ...bucket.columns.values()].reduce((sum, { length }) => sum + length, 0);
    expect(new BucketReader(bucket).head.rows).toBe(1_000);
    expect(bytes / 1_000).toBeLessThan(most);
  });
});
