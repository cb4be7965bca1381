/** The pure parts of `vigil device`: rows, ids, resuming, the vehicle, the summary. */
import { expect, test } from '@jest/globals';
import { summarize } from '../../../src/cli/device-command.js';
import { type Packet, parseRecording, storedCount, toPacket, withIds } from '../../../src/cli/recording.js';
import { vehicleAt } from '../../../src/cli/vehicle.js';
import { PlainError } from '../../../src/program.js';

const CSV = '\uFEFFtime,lat,on,name,serial\n1410324847000,48.5,true,car,0071\n\n2014-09-10T04:54:08,,FALSE,,\n';
const ROW = { time: 1410324847000, value: 1 };

test('converts a row to a packet with typed parameters, without empty cells', () => {
  expect(parseRecording(CSV)).toEqual([
    { time: 1410324847000, lat: 48.5, on: true, name: 'car', serial: '0071' },
    { time: 1410324848000, on: false },
  ]);
});

test.each([
  ['1410324847000', 1410324847000],
  ['1410324847', 1410324847000],
  ['1410324847.5', 1410324847500],
  ['2014-09-10', 1410307200000],
  ['2014-09-10 04:54', 1410324840000],
  ['2014-09-10T04:54:07.5Z', 1410324847500],
  ['2014-09-10T06:54:07+02:00', 1410324847000],
  ['2014-09-10 06:54:07+02', 1410324847000],
])('parses the time %s', (text, time) => expect(toPacket(['time'], [text], 2)).toEqual({ time }));

test.each([
  ['1e3', 1000],
  ['1.2E+05', 120_000],
  ['12E4', '12E4'],
  ['-0.5', -0.5],
  ['+49', '+49'],
  ['0x10', '0x10'],
  ['1e999', '1e999'],
  ['8949000000000000000', '8949000000000000000'],
  ['TRUE', true],
  ['yes', 'yes'],
])('parses the cell %s', (cell, value) => expect(toPacket(['time', 'a'], ['1', cell], 2).a).toBe(value));

test.each([
  ['when,a\n1,2\n', 'The first column must be "time", not "when"'],
  ['', 'The first column must be "time"'],
  ['time,_id\n1,2\n', 'The column "_id"'],
  ['time,a,a\n1,2,3\n', 'The column "a"'],
  ['time,a\n1,2\nx,3\n', 'Row 3: "x" is not a time'],
  ['time,a\n,2\n', 'Row 2: "" is not a time'],
  ['time,a\n20140910,2\n', 'Row 2: "20140910" is not a time: these digits look like a date: write "2014-09-10"'],
  ['time,a\n1,2,3\n', 'line 2'],
  ['time,a\n1,"2\n', 'line 2'],
  ['time,a\n1,2"x"\n', 'line 2'],
  ['{"time":1,"a":2}\n', 'line 1'],
])('refuses an invalid recording: %j', (csv, message) => {
  expect(() => parseRecording(csv)).toThrow(message);
  // Others are shown with their stack trace.
  expect(() => parseRecording(csv)).toThrow(PlainError);
});

test('assigns the same ids in every replay, and different ids to rows, equal rows and objects', () => {
  const ids = (object: string, count: number) => withIds(object, Array(count).fill(ROW)).map((row) => row._id);
  expect(ids('a', 3).slice(0, 2)).toEqual(ids('a', 2));
  expect(new Set([...ids('a', 2), ...ids('b', 2)]).size).toBe(4);
  expect(ids('a', 1)[0]).toMatch(/^[0-9a-f]{24}$/);
});

test.each([0, 1, 499, 500, 22694, 22695])('finds %d stored rows with few requests', async (stored) => {
  let questions = 0;
  const isStored = async (index: number) => {
    questions++;
    return index < stored;
  };
  expect(await storedCount(22695, isStored)).toBe(stored);
  expect(questions).toBeLessThanOrEqual(15);
});

test('simulates continuous, plausible rounds and fuel consumption', () => {
  const trip = Array.from({ length: 2400 }, (_, second) => vehicleAt(second));
  const speeds = trip.map(({ speed }) => Number(speed));
  expect(Math.max(...speeds)).toBeGreaterThan(50);
  expect(Math.max(...speeds)).toBeLessThan(120);
  expect(trip.filter(({ speed }) => Number(speed) < 1).length).toBeGreaterThan(60);
  trip.slice(1).forEach((packet, index) => {
    const before = trip[index] as Packet;
    expect(Math.abs(Number(packet.lat) - Number(before.lat))).toBeLessThan(0.0004);
    expect(Math.abs(Number(packet.lon) - Number(before.lon))).toBeLessThan(0.0006);
    expect(Number(packet.fuel)).toBeLessThanOrEqual(Number(before.fuel));
    expect(Number(packet.angle)).toBeLessThan(360);
  });
  expect(vehicleAt(1100)).toMatchObject({ ignition: false, speed: 0 });
});

test('summarizes packets, requests and percentiles', () => {
  const times = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect(summarize(1000, 2000, times)).toBe(
    '1000 packets in 2.0 s: 500.0 packets/s; 100 requests, acknowledged in p50 50.0 ms, p99 99.0 ms',
  );
  expect(summarize(0, 0, [])).toContain('0 packets');
});
