/** The position in a packet: the server, which reads BSON, and the console, which reads JSON, find the same one. */
import { describe, expect, test } from '@jest/globals';
import { BSON } from 'mongodb';
import { findCourse, findSpeed } from '../../../src/core/motion-fields.js';
import { findPosition, isPlaceField } from '../../../src/core/position-fields.js';
import { PositionReader } from '../../../src/packets/position.js';
import { fc } from '../../support/runs.js';

type Fields = Record<string, unknown>;
const point = (coordinates: unknown) => ({ type: 'Point', coordinates });

function readBson(packet: Fields) {
  const reader = new PositionReader();
  const isFound = reader.read(BSON.serialize(packet), 0);
  const { latitude, longitude, speed, course, height, timeMs } = reader;
  return { at: isFound ? [latitude, longitude] : null, speed, course, height, timeMs };
}

function readJson(packet: Fields) {
  const found = findPosition(packet);
  return { at: found && [found.lat, found.lon], speed: findSpeed(packet), course: findCourse(packet) };
}

describe('a position', () => {
  test.each<[string, Fields, [number, number] | null]>([
    ['lat, lon', { lat: 48, lon: 16 }, [48, 16]],
    ['latitude, longitude', { latitude: 48, longitude: 16 }, [48, 16]],
    ['lat, lng', { lat: 48, lng: 16 }, [48, 16]],
    ['lat, long', { lat: 48, long: 16 }, [48, 16]],
    ['a position', { position: { lat: 48, lon: 16 } }, [48, 16]],
    ['a location', { location: { latitude: 48, longitude: 16 } }, [48, 16]],
    ['gps', { gps: { lat: 48, lng: 16, satellites: 7 } }, [48, 16]],
    ['a position in a position', { gps: { position: { lat: 48, lon: 16 } } }, [48, 16]],
    ['GeoJSON', { location: point([16, 48]) }, [48, 16]],
    ['GeoJSON with a height', { position: point([16, 48, 200]) }, [48, 16]],
    ['coordinates of the packet', { coordinates: [16, 48] }, [48, 16]],
    ['whole numbers and the equator', { lat: 0, lon: 16 }, [0, 16]],
    ['the first name of several', { latitude: 1, lat: 48, longitude: 2, lon: 16 }, [48, 16]],
    ['the packet before its members', { gps: { lat: 1, lon: 2 }, lat: 48, lon: 16 }, [48, 16]],
    ['position before location before gps', { gps: { lat: 1, lon: 2 }, location: { lat: 48, lon: 16 } }, [48, 16]],
    ['names before coordinates', { location: { coordinates: [1, 2], lat: 48, lon: 16 } }, [48, 16]],
    ['a member where the packet has no fix', { lat: 0, lon: 0, gps: { lat: 48, lon: 16 } }, [48, 16]],
    ['a member where the packet has half of one', { lat: 1, gps: { lat: 48, lon: 16 } }, [48, 16]],
    ['not exactly 0, 0', { lat: 0, lon: 0 }, null],
    ['not 0, 0 in GeoJSON', { location: point([0, 0]) }, null],
    ['not beyond the poles', { lat: 90.1, lon: 16 }, null],
    ['not beyond the antimeridian', { lat: 48, lon: 180.1 }, null],
    ['not text', { lat: '48', lon: '16' }, null],
    ['not null', { lat: null, lon: null }, null],
    ['not half of one', { lat: 48 }, null],
    ['not half from the packet and half from a member', { lat: 48, gps: { lon: 16 } }, null],
    ['not the position of a valve, nor the name of a town', { position: 5, location: 'Vienna', gps: null }, null],
    ['not a list', { position: [48, 16] }, null],
    ['not a line', { location: { type: 'LineString', coordinates: [[16, 48]] } }, null],
    ['not an empty packet', {}, null],
  ])('is %s', (_, packet, at) => {
    expect([readJson(packet).at, readBson(packet).at]).toEqual([at, at]);
  });

  test.each<[string, Fields, number, number]>([
    ['the usual names', { speed: 50, angle: 90 }, 50, 90],
    ['other names', { heading: 90 }, Number.NaN, 90],
    ['the first name of several', { direction: 1, heading: 2, course: 3, angle: 90 }, Number.NaN, 90],
    ['a member', { gps: { speed: 50, course: 90 } }, 50, 90],
    ['the packet before its members', { gps: { speed: 1, heading: 2 }, speed: 50, direction: 90 }, 50, 90],
    ['beside a position of a member', { position: { lat: 1, lon: 2, course: 90 }, speed: 50 }, 50, 90],
    ['available values', { angle: 360, course: 511, heading: 90 }, Number.NaN, 90],
    ['available values of a member', { heading: 511, gps: { course: 359.9 } }, Number.NaN, 359.9],
    ['none that is not available', { heading: 511, course: 360 }, Number.NaN, Number.NaN],
    ['numbers only', { speed: 'fast', direction: 'N' }, Number.NaN, Number.NaN],
  ])('has its speed and course in %s', (_, packet, speed, course) => {
    for (const found of [readJson(packet), readBson(packet)]) expect(found).toMatchObject({ speed, course });
  });

  test('is the same in BSON and in JSON, whatever a packet contains', () => {
    const number = fc.oneof(fc.constantFrom(0, 16, 48, 91, 181), fc.double({ noNaN: true, noDefaultInfinity: true }));
    const value = fc.oneof(number, fc.constantFrom(null, 'x', true), fc.array(number, { maxLength: 3 }));
    const numbers = ['lat', 'latitude', 'lon', 'lng', 'long', 'longitude', 'speed', 'angle', 'heading', 'coordinates'];
    const { packet } = fc.letrec<{ packet: Fields }>((tie) => {
      const members = ['position', 'location', 'gps'].map((name) => [name, fc.oneof(value, tie('packet'))] as const);
      const all = Object.fromEntries([...numbers.map((name) => [name, value] as const), ...members]);
      return { packet: fc.record(all, { requiredKeys: [] }) as fc.Arbitrary<Fields> };
    });
    fc.assert(fc.property(packet, (one) => expect(readBson(one)).toMatchObject(readJson(one))));
  });

  test('has the height of its names, or of GeoJSON, and the time of the packet', () => {
    expect(readBson({ location: point([16, 48, 200]) }).height).toBe(200);
    expect(readBson({ location: { ...point([16, 48, 200]), alt: 300 } }).height).toBe(300);
    expect(readBson({ time: 7, gps: { lat: 48, lon: 16, time: 5 } }).timeMs).toBe(7);
  });
});

test.each<[string, unknown, boolean]>([
  ['lat', 48, true],
  ['longitude', 16, true],
  ['lon', null, true],
  ['long', 'ago', false],
  ['coordinates', [16, 48], true],
  ['position', { lat: 48, lon: 16 }, true],
  ['location', point([16, 48]), true],
  ['gps', { lat: 48, lon: 16, satellites: 7 }, false],
  ['position', 5, false],
  ['location', 'Vienna', false],
  ['speed', 50, false],
])('knows whether %s is a place and nothing else: %j', (name, value, expected) => {
  expect(isPlaceField(name, value)).toBe(expected);
});
