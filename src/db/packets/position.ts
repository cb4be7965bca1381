/** Reads positions of objects from the BSON bytes of packets, in the field names of many devices. */

import { eachMember, nameAt } from '../bson/members.js';
import { numberAt } from '../bson/numbers.js';
import { BSON_TYPES, byteAt } from '../bson/reader.js';

const { DOCUMENT, ARRAY } = BSON_TYPES;

/** The fields that can hold a position, for a projection. */
export const POSITION_FIELDS: readonly string[] = [
  ...['lat', 'latitude', 'lon', 'lng', 'long', 'longitude', 'position', 'location', 'gps', 'coordinates'],
  ...['height', 'alt', 'altitude', 'elevation', 'ele', 'speed', 'angle', 'course', 'heading', 'direction'],
];

const LATITUDE = 0;
const LONGITUDE = 1;
const HEIGHT = 2;
const SPEED = 3;
const COURSE = 4;
const CONTAINER = 5;
const COORDINATES = 6;
const TIME = 7;

const KINDS: ReadonlyMap<string, number> = new Map([
  ...['lat', 'latitude'].map((name) => [name, LATITUDE] as const),
  ...['lon', 'lng', 'long', 'longitude'].map((name) => [name, LONGITUDE] as const),
  ...['height', 'alt', 'altitude', 'elevation', 'ele'].map((name) => [name, HEIGHT] as const),
  ['speed', SPEED],
  ...['angle', 'course', 'heading', 'direction'].map((name) => [name, COURSE] as const),
  ...['position', 'location', 'gps'].map((name) => [name, CONTAINER] as const),
  ['coordinates', COORDINATES],
  ['time', TIME],
]);
/** The first letters of these names, to skip most members quickly. */
const FIRST = new Uint8Array(256);
for (const name of KINDS.keys()) FIRST[name.charCodeAt(0)] = 1;

/** Reads one position after the other into the same fields; NaN for missing values. */
export class PositionReader {
  /** Degrees. */
  latitude = Number.NaN;
  longitude = Number.NaN;
  /** Metres. */
  height = Number.NaN;
  /** km/h. */
  speed = Number.NaN;
  /** Degrees. */
  course = Number.NaN;
  timeMs = Number.NaN;
  #memory: Uint8Array = new Uint8Array(0);

  /** Reads the packet that begins at `start`; returns whether it has a position. Receivers without a fix send exactly 0, 0. */
  read(memory: Uint8Array, start: number): boolean {
    this.#memory = memory;
    this.latitude = this.longitude = this.height = this.speed = this.course = this.timeMs = Number.NaN;
    eachMember(memory, start, this.#readMember);
    const { latitude, longitude } = this;
    if (latitude === 0 && longitude === 0) return false;
    return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180;
  }

  #readMember = (type: number, nameStart: number, nameEnd: number, valueStart: number): void => {
    const memory = this.#memory;
    if (FIRST[byteAt(memory, nameStart)] === 0 || nameEnd - nameStart > 11) return;
    const kind = KINDS.get(nameAt(memory, nameStart, nameEnd));
    if (kind === undefined) return;
    if (kind === CONTAINER && type === DOCUMENT) eachMember(memory, valueStart, this.#readMember);
    else if (kind === COORDINATES && type === ARRAY) this.#readCoordinates(valueStart);
    else this.#set(kind, numberAt(memory, type, valueStart));
  };

  /** GeoJSON: longitude, latitude, height. */
  #readCoordinates(start: number): void {
    const order = [LONGITUDE, LATITUDE, HEIGHT];
    let index = 0;
    eachMember(this.#memory, start, (type, _nameStart, _nameEnd, valueStart) => {
      const kind = order[index++];
      if (kind !== undefined) this.#set(kind, numberAt(this.#memory, type, valueStart));
    });
  }

  #set(kind: number, value: number): void {
    if (!Number.isFinite(value)) return;
    if (kind === LATITUDE) this.latitude = value;
    else if (kind === LONGITUDE) this.longitude = value;
    else if (kind === HEIGHT) this.height = value;
    else if (kind === SPEED) this.speed = value;
    else if (kind === COURSE) this.course = value;
    else if (kind === TIME) this.timeMs = value;
  }
}
