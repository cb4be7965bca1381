/** The track of an object: its line, distance, stops and trips, over the positions of real packets. */
import { expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';

const service = useService();
const START = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;

async function createObject(packets: readonly object[]): Promise<string> {
  const id = `truck-${new ObjectId()}`;
  await service.admin('POST', 'objects', { id, name: 'Truck' });
  await service.admin('POST', `objects/${id}/packets`, packets);
  return id;
}

/** A position each minute: on the way for ten, standing for ten, back for ten. */
const there = Array.from({ length: 31 }, (_, minute) => ({
  time: START + minute * MINUTE,
  speed: minute,
  lat: 1,
  lon: (minute < 10 ? minute : minute <= 20 ? 10 : 30 - minute) / 100,
}));

test('returns a simplified line with its distance', async () => {
  const id = await createObject(there);
  const { status, body, headers } = await service.admin('GET', `objects/${id}/track?points=3`);
  expect([status, headers['content-type']]).toEqual([200, 'application/geo+json; charset=utf-8']);
  expect(body).toMatchObject({
    type: 'Feature',
    properties: { id, from: START, to: START + 30 * MINUTE, packets: 31, movingTime: 20 * MINUTE, maxSpeed: 30 },
  });
  expect(body.geometry).toEqual({
    type: 'LineString',
    coordinates: [
      [0, 1],
      [0.1, 1],
      [0, 1],
    ],
  });
  expect(body.properties.times).toHaveLength(3);
  expect(Math.abs(body.properties.distance - 2 * 11_118)).toBeLessThan(3);
  expect(body.properties.stops).toBeUndefined();
});

test('contains stops and trips', async () => {
  const id = await createObject(there);
  const { properties } = (await service.admin('GET', `objects/${id}/track?stops=true`)).body;
  expect(properties.stops).toEqual([{ from: START + 10 * MINUTE, to: START + 20 * MINUTE, coordinates: [0.1, 1] }]);
  expect(properties.trips).toMatchObject([
    { from: START, to: START + 10 * MINUTE, start: [0, 1], end: [0.1, 1] },
    { from: START + 20 * MINUTE, to: START + 30 * MINUTE, start: [0.1, 1], end: [0, 1] },
  ]);
  const long = (await service.admin('GET', `objects/${id}/track?stops=true&stopTime=11m`)).body;
  expect([long.properties.stops, long.properties.movingTime]).toEqual([[], 30 * MINUTE]);
});

test('contains several lines if there are gaps', async () => {
  const id = await createObject([
    ...there,
    ...there.map(({ time, ...rest }) => ({ ...rest, time: time + 60 * MINUTE })),
  ]);
  const { geometry, properties } = (await service.admin('GET', `objects/${id}/track`)).body;
  expect(geometry.type).toBe('MultiLineString');
  expect(geometry.coordinates.map(({ length }: unknown[]) => length)).toEqual(
    properties.times.map(({ length }: unknown[]) => length),
  );
  expect((await service.admin('GET', `objects/${id}/track?gap=1%20h`)).body.geometry.type).toBe('LineString');
});

test.each([
  ['latitude and longitude', { latitude: 48, longitude: 16 }, { latitude: 48.1, longitude: 16 }],
  ['lat and lng', { lat: 48, lng: 16 }, { lat: 48.1, lng: 16 }],
  ['a position', { position: { latitude: 48, longitude: 16 } }, { position: { latitude: 48.1, longitude: 16 } }],
  ['GeoJSON', { location: { type: 'Point', coordinates: [16, 48] } }, { location: { coordinates: [16, 48.1, 7] } }],
])('reads positions as %s', async (_, first, second) => {
  const id = await createObject([
    { time: START, ...first },
    { time: START + 1, lat: 0, lon: 0 },
    { time: START + 2, lat: 91, lon: 181, text: 'none' },
    { time: START + 3, ...second },
  ]);
  const { geometry, properties } = (await service.admin('GET', `objects/${id}/track`)).body;
  expect(geometry.coordinates).toEqual([
    [16, 48],
    [16, 48.1],
  ]);
  expect(properties.packets).toBe(2);
});

/** A position every second, 13 m apart, at 48 km/h. */
const drive = (packets: number, more: object = {}): object[] =>
  Array.from({ length: packets }, (_, nth) => ({
    time: START + nth * 1_000,
    lat: 48 + nth * 0.00012,
    lon: 11.5,
    speed: 48,
    ...more,
  }));
const at = (second: number, packet: object): object => ({ time: START + second * 1_000, ...packet });
interface Expected {
  readonly metres: number;
  readonly maxSpeed: number | null;
}

/** Metres between the first and the last position of a drive. */
const metres = (packets: number): number => (packets - 1) * 13.343;

const drive30: Expected = { metres: metres(30), maxSpeed: 48 };
const drive31: Expected = { metres: metres(31), maxSpeed: 48 };

test.each<[string, object[], Expected]>([
  ['a position far away for a moment', [...drive(30), at(14.5, { lat: 10, lon: 3, speed: 700 })], drive30],
  [
    'two in a row that are far from each other',
    [...drive(30), at(14.4, { lat: 10, lon: 3 }), at(14.6, { lat: -10, lon: 3 })],
    drive30,
  ],
  ['a first position far away', [...drive(30), at(-1, { lat: 10, lon: 3 })], drive30],
  ['a last position far away', [...drive(30), at(31, { lat: 10, lon: 3 })], drive30],
  ['a position at the same time elsewhere', [...drive(30), at(14, { lat: 10, lon: 3 })], drive30],
  ['91, 181', [...drive(30), at(14.5, { lat: 91, lon: 181, speed: 102.3, course: 360, heading: 511 })], drive30],
  [
    'a speed of 102.3 knots of a ship that does not move so',
    [...drive(30), at(30, { lat: 48.0036, lon: 11.5, speed: 102.3 })],
    drive31,
  ],
  ['a speed of 1023', [...drive(30), at(30, { lat: 48.0036, lon: 11.5, speed: 1023 })], drive31],
  ['a speed of 65535', [...drive(30), at(30, { lat: 48.0036, lon: 11.5, speed: 65535 })], drive31],
  ['a negative speed', drive(30, { speed: -1 }), { ...drive30, maxSpeed: null }],
])('does not count %s', async (_, packets, expected) => {
  const id = await createObject(packets);
  const { geometry, properties } = (await service.admin('GET', `objects/${id}/track?points=10000`)).body;
  expect(properties.maxSpeed).toBe(expected.maxSpeed);
  expect(Math.abs(properties.distance - expected.metres)).toBeLessThan(3);
  expect(geometry.type).toBe('LineString');
});

test('counts a speed of 102.3 km/h of an object that moves so', async () => {
  const packets = Array.from({ length: 20 }, (_, nth) =>
    at(nth, { lat: 48, lon: 11 + nth * 0.000_382, speed: nth === 9 ? 102.3 : 60 }),
  );
  const id = await createObject(packets);
  expect((await service.admin('GET', `objects/${id}/track`)).body.properties.maxSpeed).toBe(102.3);
});

test('counts the way of an object that is faster than an airliner and says so', async () => {
  const packets = Array.from({ length: 10 }, (_, nth) => at(nth * 10, { lat: 0, lon: 10 + nth * 0.69, speed: 27_600 }));
  const { properties } = (await service.admin('GET', `objects/${await createObject(packets)}/track`)).body;
  expect(properties.maxSpeed).toBe(27_600);
  expect(properties.distance).toBeGreaterThan(680_000);
});

test('counts no way to where an object appears after a jump, and its ways there', async () => {
  const there = drive(30).map((packet) => ({ ...packet, lon: 100 }));
  const packets = [...drive(30), ...there.map((packet, nth) => ({ ...packet, time: START + (30 + nth) * 1_000 }))];
  const { geometry, properties } = (await service.admin('GET', `objects/${await createObject(packets)}/track`)).body;
  expect(Math.abs(properties.distance - 2 * metres(30))).toBeLessThan(5);
  expect(geometry.type).toBe('MultiLineString');
});

test('returns an empty track without positions', async () => {
  const id = await createObject([{ speed: 5 }]);
  const { geometry, properties } = (await service.admin('GET', `objects/${id}/track?stops=1`)).body;
  expect(geometry).toBeNull();
  expect(properties).toEqual({
    id,
    from: null,
    to: null,
    packets: 0,
    distance: 0,
    movingTime: 0,
    maxSpeed: null,
    times: [],
    stops: [],
    trips: [],
  });
});

test.each([
  ['points=1', `points: expected 2 to ${LIMITS.trackPoints}`],
  ['points=10001', `points: expected 2 to ${LIMITS.trackPoints}`],
  ['gap=0', 'gap: expected a duration, such as "15 min", or milliseconds'],
  ['stops=maybe', 'stops: expected true or false'],
  ['stopTime=long', 'stopTime: expected a duration, such as "15 min", or milliseconds'],
  ['stopRadius=0', `stopRadius: expected 1 to ${LIMITS.stopRadiusMaxM} metres`],
  [
    'from=never',
    'from: expected ms since the epoch (12 to 14 digits) or a time such as 2026-11-23 or 2026-11-23T10:00Z',
  ],
])('refuses %s', async (query, message) => {
  const id = await createObject([{ speed: 5 }]);
  const { status, body } = await service.admin('GET', `objects/${id}/track?${query}`);
  expect([status, body.helper.message]).toEqual([400, message]);
});
