/** Where objects are, also when their newest packet does not say it. */
import { expect, test } from '@jest/globals';
import { forgetPlace, keepPlace, placeOf, rememberPlace, setPlace } from '../../../src/console/state/places.js';

const packet = (time: number, fields: object) => ({ time, ...fields });
const at = (time: number, lat: number, lon = 1) => packet(time, { lat, lon });
const nowhere = (time: number) => packet(time, { temperature: 7 });

test('is the position in the newest packet', () => {
  rememberPlace('a', at(1, 10));
  expect(placeOf({ _id: 'a', state: at(2, 20) })).toEqual({ lat: 20, lon: 1 });
});

test('is the last known one, with its time, if the newest packet has none', () => {
  keepPlace('b', nowhere(2), at(1, 10));
  expect(placeOf({ _id: 'b', state: nowhere(2) })).toEqual({ lat: 10, lon: 1, timeMs: 1 });
});

test('is unknown without any position, and without any packet', () => {
  keepPlace('c', nowhere(2), undefined, at(1, 0, 0));
  expect(placeOf({ _id: 'c', state: nowhere(2) })).toBeNull();
  rememberPlace('c', at(1, 10));
  expect(placeOf({ _id: 'c' })).toBeNull();
  expect(placeOf(undefined)).toBeNull();
});

test('is not replaced by an older one', () => {
  rememberPlace('d', at(5, 50));
  setPlace('d', { lat: 40, lon: 1, timeMs: 4 });
  keepPlace('d', nowhere(9), nowhere(8), at(3, 30));
  expect(placeOf({ _id: 'd', state: nowhere(9) })).toMatchObject({ lat: 50, timeMs: 5 });
});

test('is that of a packet that came late, if none is newer', () => {
  keepPlace('e', nowhere(9), nowhere(9), at(6, 60));
  expect(placeOf({ _id: 'e', state: nowhere(9) })).toMatchObject({ lat: 60, timeMs: 6 });
});

test('is not remembered while the newest packet says it', () => {
  const state = at(9, 90);
  keepPlace('f', state, at(8, 80));
  expect(placeOf({ _id: 'f', state: nowhere(10) })).toBeNull();
});

test('follows a device that sends latitude and longitude in packets of their own', () => {
  const arrives = (time: number, fields: object) => {
    const state = packet(time, fields);
    keepPlace('g', state, undefined, state);
    return placeOf({ _id: 'g', state });
  };
  expect(arrives(1_000, { lat: 10 })).toBeNull();
  expect(arrives(1_001, { lon: 1 })).toEqual({ lat: 10, lon: 1, timeMs: 1_001 });
  expect(arrives(1_002, { temperature: 7 })).toEqual({ lat: 10, lon: 1, timeMs: 1_001 });
  arrives(2_000, { lat: 20 });
  expect(arrives(2_001, { lon: 2 })).toEqual({ lat: 20, lon: 2, timeMs: 2_001 });
  // Late values change nothing, and long after the last longitude nobody knows where a latitude is.
  expect(arrives(1_500, { lat: 15 })).toEqual({ lat: 20, lon: 2, timeMs: 2_001 });
  expect(arrives(90_000, { lat: 30 })).toEqual({ lat: 20, lon: 2, timeMs: 2_001 });
  forgetPlace('g');
  expect(arrives(90_001, { lon: 3 })).toBeNull();
});
