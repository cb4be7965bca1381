/** What the kinds osmand and owntracks make of every form of their payloads, and the words of their refusals. */
import { describe, expect, test } from '@jest/globals';
import { parseSourceMap } from '../../../src/core/source.js';
import type { SourceKindName } from '../../../src/core/source-kinds.js';
import type { Readout, SourceRequest } from '../../../src/devices/sources/kind.js';
import { explainKind, KINDS } from '../../../src/devices/sources/kinds.js';

const NOW_MS = 1_795_500_000_000;

type Given = Partial<Omit<SourceRequest, 'body' | 'map'>> & { readonly body?: unknown; readonly map?: object };

function toRequest(kind: SourceKindName, { body = '', map, ...given }: Given): SourceRequest {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const request = { query: {}, headers: {}, zone: null, nowMs: NOW_MS, ...given } as SourceRequest;
  return { ...request, body: Buffer.from(text), map: parseSourceMap(kind, map as never) };
}

const read = (kind: SourceKindName, given: Given): Readout => KINDS[kind].read(toRequest(kind, given));

/** The only sample. */
function one(kind: SourceKindName, given: Given) {
  const items = [...read(kind, given).items];
  expect(items).toHaveLength(1);
  return items[0];
}

const query = (text: string): Record<string, string> => Object.fromEntries(new URLSearchParams(text));

describe('osmand', () => {
  const SAMPLE = 'lat=52.5&lon=13.4&speed=10&bearing=90&altitude=34&accuracy=5&batt=81&charge=true';
  const packet = { lat: 52.5, lon: 13.4, speed: 18.52, angle: 90, height: 34, accuracy: 5, battery: 81, charge: true };

  test.each([
    ['id=123456&timestamp=1795500000', 1_795_500_000_000],
    ['device_id=123456&timestamp=1795500000', 1_795_500_000_000],
    ['deviceid=123456&timestamp=1795500000123', 1_795_500_000_123],
    ['id=123456&timestamp=2026-11-24T06:00:00Z', Date.UTC(2026, 10, 24, 6)],
  ])('takes the time of %s', (named, time) => {
    expect(one('osmand', { query: query(`${named}&${SAMPLE}`) })).toEqual({
      devices: ['123456'],
      packet: { ...packet, time },
    });
  });

  test('takes a query without a body, whatever content type is set', () => {
    const headers = { 'content-type': 'application/json' };
    expect(one('osmand', { query: query(`id=123456&${SAMPLE}`), headers })).toEqual({ devices: ['123456'], packet });
  });

  test('takes a form, and keeps what else there is', () => {
    const body =
      'id=123456&lat=52.5&lon=13.4&speed=0&hdop=1.2&driverUniqueId=d-1&valid=false&cell=310,410,26511,232511';
    const more = { speed: 0, hdop: 1.2, driver: 'd-1', valid: false, cell: '310,410,26511,232511' };
    expect(one('osmand', { body })).toEqual({ devices: ['123456'], packet: { lat: 52.5, lon: 13.4, ...more } });
  });

  test('takes coordinates in one field', () => {
    expect(one('osmand', { query: query('id=1&location=52.5,13.4') })).toEqual({
      devices: ['1'],
      packet: { lat: 52.5, lon: 13.4 },
    });
  });

  test('takes the JSON of Traccar Client 9, with its speed in m/s and its battery from 0 to 1', () => {
    const body = {
      location: {
        timestamp: '2026-11-24T06:00:00.000Z',
        coords: { latitude: 52.5, longitude: 13.4, accuracy: 5, speed: 10, heading: 90, altitude: 34 },
        is_moving: true,
        odometer: 1234.5,
        event: 'motionchange',
        battery: { level: 0.81, is_charging: true },
        activity: { type: 'in_vehicle' },
        extras: {},
      },
      device_id: '48241179',
    };
    const more = { speed: 36, motion: true, odometer: 1234.5, event: 'motionchange', activity: 'in_vehicle' };
    const time = Date.UTC(2026, 10, 24, 6);
    expect(one('osmand', { body })).toEqual({
      devices: ['48241179'],
      packet: { ...packet, time: new Date(time).getTime(), ...more },
    });
  });

  test('takes -1 for an unknown value', () => {
    const coords = { latitude: 52.5, longitude: 13.4, accuracy: -1, speed: -1, heading: -1, altitude: -5 };
    const body = { location: { coords, battery: { level: -1 } }, device_id: 'x' };
    expect(one('osmand', { body })).toEqual({ devices: ['x'], packet: { lat: 52.5, lon: 13.4, height: -5 } });
  });

  test.each([
    ['lat=1&lon=1', 'id: required'],
    ['id=1&lat=north&lon=1', 'lat: expected degrees'],
    ['id=1&lat=91&lon=1', 'lat: expected degrees'],
    ['id=1&lat=1&lon=181', 'lon: expected degrees'],
    ['id=1&lat=1&lon=1&timestamp=soon', 'timestamp: expected seconds'],
  ])('refuses %s', (text, why) => expect(() => read('osmand', { query: query(text) })).toThrow(why));

  test('answers nothing', () => {
    expect(read('osmand', { query: query('id=1') }).answer?.body).toBe('');
  });
});

describe('owntracks', () => {
  const LOCATION = {
    _type: 'location',
    _id: '5f3c2a91',
    topic: 'owntracks/jane/phone',
    acc: 5,
    alt: 154,
    batt: 41,
    bs: 1,
    cog: 271,
    conn: 'w',
    created_at: 1_795_500_005,
    lat: 48.85833,
    lon: 2.29513,
    t: 'u',
    tid: 'JJ',
    tst: 1_795_500_000,
    vac: 10,
    vel: 54,
  };

  // The root is any of the user's choice, also of several levels or none (https://owntracks.org/booklet/guide/topics/).
  test.each([
    'owntracks/jane/phone',
    'owntracks/jane/phone/event',
    'owntracks/jane/phone/of-an-app-to-come',
    'jane/phone',
    'peters/locations/jane/phone',
    'peters/locations/jane/phone/waypoint',
    'home/owntracks/jane/phone',
    'home/owntracks/jane/phone/waypoints',
    '/jane/phone',
  ])('names the device by the last levels of its topic, whatever its root: %s', (topic) => {
    const devices = ['jane-phone', 'phone', 'JJ', 'jane'];
    expect(one('owntracks', { body: { ...LOCATION, tid: 'JJ', topic } })).toMatchObject({ devices });
  });

  test.each([
    ['owntracks/jane', ['JJ', 'jane']],
    ['owntracks/jane/', ['JJ', 'jane']],
    ['owntracks/jane/event', ['jane-event', 'event', 'JJ', 'jane']],
    ['phone', ['phone', 'JJ']],
    ['', ['JJ']],
    ['/', ['JJ']],
  ])('names the device by what is there of its topic: %j', (topic, devices) =>
    expect(one('owntracks', { body: { ...LOCATION, tid: 'JJ', topic } })).toMatchObject({ devices }),
  );

  test('takes a location, with its speed in km/h already', () => {
    expect(one('owntracks', { body: LOCATION })).toEqual({
      devices: ['jane-phone', 'phone', 'JJ', 'jane'],
      packet: {
        _id: '5f3c2a91',
        time: 1_795_500_000_000,
        lat: 48.85833,
        lon: 2.29513,
        speed: 54,
        angle: 271,
        height: 154,
        accuracy: 5,
        battery: 41,
        bs: 1,
        conn: 'w',
        t: 'u',
        tid: 'JJ',
        vac: 10,
      },
    });
  });

  test('takes the names of the headers of its HTTP mode, and of the query', () => {
    const { topic: _, ...body } = LOCATION;
    const devices = ['jane-phone', 'phone', 'JJ', 'jane'];
    expect(one('owntracks', { body, headers: { 'x-limit-u': 'jane', 'x-limit-d': 'phone' } })).toMatchObject({
      devices,
    });
    expect(one('owntracks', { body, query: { u: 'jane', d: 'phone' } })).toMatchObject({ devices });
    expect(one('owntracks', { body })).toMatchObject({ devices: ['JJ'] });
  });

  test('takes a transition, a waypoint, a status, steps, and a last will', () => {
    const common = { tst: 1_795_500_000, tid: 'JJ' };
    const place = { lat: 48.85, lon: 2.29, acc: 20, event: 'enter', desc: 'Home', wtst: 1_400_000_000, rid: '6da9cf' };
    const time = 1_795_500_000_000;
    const packetOf = (body: object) =>
      (one('owntracks', { body: { ...common, ...body } }) as { packet: object }).packet;
    expect(packetOf({ _type: 'transition', ...place })).toMatchObject({
      time,
      lat: 48.85,
      lon: 2.29,
      event: 'enter',
      desc: 'Home',
    });
    const { lat, lon, desc } = place;
    // Where a place is, not where the device is.
    const waypoint = packetOf({ _type: 'waypoint', lat, lon, desc, rad: 50 });
    expect(waypoint).toEqual({ time, waypoint: { ...common, lat, lon, desc, rad: 50 } });
    expect(packetOf({ _type: 'status', android: { wifi: 1 } })).toEqual({
      time,
      status: { tid: 'JJ', android: { wifi: 1 } },
    });
    expect(packetOf({ _type: 'steps', steps: 1200 })).toEqual({ time, tid: 'JJ', steps: 1200 });
    expect(packetOf({ _type: 'lwt' })).toEqual({ online: false });
  });

  test.each(['', { _type: 'card', tid: 'JJ' }, { _type: 'waypoints', waypoints: [] }])(
    'stores nothing of %j',
    (body) => {
      expect(read('owntracks', { body })).toMatchObject({ items: [], answer: { body: '[]' } });
    },
  );

  test.each([
    [{ _type: 'encrypted', data: 'x' }, 'the payload is encrypted'],
    [{ _type: 'nonsense' }, '_type: "nonsense" is none of OwnTracks'],
    [{ lat: 1 }, '_type: required'],
    [{ ...LOCATION, lat: 91 }, 'lat: expected degrees'],
  ])('refuses %j', (body, why) => expect(() => read('owntracks', { body })).toThrow(why));
});

test('tells one kind from another', () => {
  expect(explainKind({ _type: 'location' }, 'osmand')).toContain('this looks like OwnTracks');
  expect(explainKind({ _type: 'location' }, 'owntracks')).toBeNull();
  expect(explainKind({ location: { coords: {} } }, 'owntracks')).toContain('this looks like Traccar Client');
  expect(explainKind({ a: 1 }, 'owntracks')).toBeNull();
});

test('leaves a speed in SenML out that is below 0', () => {
  const records = [
    { bn: 'a:', bu: 'm/s', n: 'speed', v: -1 },
    { n: 'gust', v: 2 },
  ];
  expect(one('senml', { body: records })).toEqual({ devices: ['a'], packet: { gust: 2 } });
});

test('keeps the bytes of ChirpStack where the decoder found nothing', () => {
  const body = { deviceInfo: { devEui: '0101010101010101' }, data: 'qg==', object: {} };
  expect(one('chirpstack', { query: { event: 'up' }, body })).toMatchObject({ packet: { data: 'qg==' } });
});

describe('hostile payloads', () => {
  const MANY = 400_000;
  const digits = `${'1'.repeat(MANY)}x`;

  // With a pattern or a name that each value repeats, one of these takes minutes, or all memory.
  test.each<[SourceKindName, string, Given, unknown]>([
    [
      'senml',
      'a base name of separators',
      { body: [{ bn: `${'-'.repeat(MANY)}x`, n: 'a', v: 1 }] },
      { reason: 'record 0: bn: more than 256 characters' },
    ],
    [
      'senml',
      'a name of letters',
      { body: [{ n: `urn:dev:mac:${'a'.repeat(MANY)}/`, v: 1 }] },
      { reason: 'record 0: n: more than 256 characters' },
    ],
    [
      'telegraf',
      'a name',
      { body: { name: 'n'.repeat(MANY), fields: { a: 1 } } },
      { reason: 'name: more than 128 characters' },
    ],
    [
      'overland',
      'a speed of digits',
      { body: { locations: [{ properties: { device_id: 'a', speed: digits } }] } },
      { devices: ['a'], packet: {} },
    ],
    [
      'overland',
      'a latitude of digits',
      { body: { locations: [{ geometry: { coordinates: [1, digits] }, properties: {} }] } },
      { reason: 'latitude: expected degrees, from -90 to 90' },
    ],
    [
      'flespi',
      'a device',
      { body: [{ ident: 'i'.repeat(MANY), timestamp: 1, a: 1 }] },
      { devices: ['i'.repeat(129)], packet: { a: 1, time: 1 } },
    ],
  ])('are read in a time that grows with their length: %s, %s', (kind, _name, given, expected) => {
    expect(one(kind, given)).toEqual(expected);
  });

  test('are refused if they are a long form', () => {
    expect(() => read('osmand', { body: 'id=1&a=1'.padEnd(65_537, '&b=1') })).toThrow('a form of more than 64 KiB');
  });

  test.each<[string, object, unknown]>([
    [
      'fields with the same large value',
      Object.fromEntries(Array.from({ length: 190 }, (_, at) => [`f${at}`, '$.big'])),
      { big: 'x'.repeat(100_000) },
    ],
    [
      'fields with the same long list',
      Object.fromEntries(Array.from({ length: 190 }, (_, at) => [`f${at}`, '$'])),
      Array(9_000).fill({ a: [1, 2, 3] }),
    ],
    ['long names', { [`n${'n'.repeat(10_000)}`]: '$.a' }, Array(9_000).fill({ a: 1 })],
  ])('are refused if the map makes too much of them: %s', (_name, map, body) => {
    expect(() => [...read('json', { body, map }).items]).toThrow(
      'the map of the source makes more than 16 MiB of the body: send fewer measurements at once',
    );
  });

  test('are no lists of many measurements, each with many fields', () => {
    const map = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`f${at}`, `$.f${at}`]));
    const body = Array(5_000).fill(Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`f${at}`, at])));
    expect([...read('json', { body, map }).items]).toHaveLength(5_000);
  });
});
