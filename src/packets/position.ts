/** Reads positions of objects from the BSON bytes of packets, by the rule of `core/position-fields.ts`. */

import { COURSE_NAMES, HEIGHT_NAMES, isCourse, SPEED_NAMES } from '../core/motion-fields.js';
import {
  CONTAINER_NAMES,
  COORDINATES_NAME,
  isPosition,
  LATITUDE_NAMES,
  LONGITUDE_NAMES,
  PLACE_NAMES,
} from '../core/position-fields.js';
import { eachMember, nameAt } from '../platform/mongo/bson/members.js';
import { numberAt } from '../platform/mongo/bson/numbers.js';
import { BSON_TYPES, byteAt } from '../platform/mongo/bson/reader.js';

const { DOCUMENT, ARRAY } = BSON_TYPES;

/** The fields that can hold a position, for a projection. */
export const POSITION_FIELDS: readonly string[] = [...PLACE_NAMES, ...HEIGHT_NAMES, ...SPEED_NAMES, ...COURSE_NAMES];

const LATITUDE = 0;
const LONGITUDE = 1;
const HEIGHT = 2;
const SPEED = 3;
const COURSE = 4;
const NUMBERS = 5;
const CONTAINER = 5;
const COORDINATES = 6;
const TIME = 7;

/** What each name is, with its rank among names for the same. */
const KINDS: ReadonlyMap<string, { readonly kind: number; readonly rank: number }> = new Map(
  [
    LATITUDE_NAMES,
    LONGITUDE_NAMES,
    HEIGHT_NAMES,
    SPEED_NAMES,
    COURSE_NAMES,
    CONTAINER_NAMES,
    [COORDINATES_NAME],
    ['time'],
  ].flatMap((names, kind) => names.map((name, rank) => [name, { kind, rank }] as const)),
);
/** The first letters of these names, and the length of the longest, to skip most members quickly. */
const FIRST = new Uint8Array(256);
for (const name of KINDS.keys()) FIRST[name.charCodeAt(0)] = 1;
const LONGEST = Math.max(...[...KINDS.keys()].map(({ length }) => length));
const NONE = -1;
const LAST_RANK = 255;

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
  #isPacket = true;
  /** Of the packet or of the container that is being read: numbers with their ranks, and where its members begin. */
  readonly #values = new Float64Array(NUMBERS);
  readonly #ranks = new Uint8Array(NUMBERS);
  readonly #containers = new Int32Array(CONTAINER_NAMES.length);
  #hasContainers = false;
  #coordinates = NONE;

  /** Reads the packet that begins at `start`; returns whether it has a position. */
  read(memory: Uint8Array, start: number): boolean {
    this.#memory = memory;
    this.latitude = this.longitude = this.height = this.speed = this.course = this.timeMs = Number.NaN;
    this.#isPacket = true;
    this.#readPlace(start);
    return !Number.isNaN(this.latitude);
  }

  #readPlace(start: number): void {
    this.#values.fill(Number.NaN);
    this.#hasContainers = false;
    this.#coordinates = NONE;
    eachMember(this.#memory, start, this.#readMember);
    this.#isPacket = false;
    this.#takePosition();
    if (this.#coordinates !== NONE) this.#readCoordinates(this.#coordinates);
    this.#takeOthers();
    if (this.#hasContainers) this.#readContainers();
  }

  #readContainers(): void {
    // Reading one forgets what was found here.
    for (const start of this.#containers.slice()) if (start !== NONE) this.#readPlace(start);
  }

  #readMember = (type: number, nameStart: number, nameEnd: number, valueStart: number): void => {
    const memory = this.#memory;
    if (FIRST[byteAt(memory, nameStart)] === 0 || nameEnd - nameStart > LONGEST) return;
    const found = KINDS.get(nameAt(memory, nameStart, nameEnd));
    if (found === undefined) return;
    const { kind, rank } = found;
    if (kind < NUMBERS) this.#set(kind, rank, numberAt(memory, type, valueStart));
    else if (kind === TIME && this.#isPacket) this.timeMs = numberAt(memory, type, valueStart);
    else if (kind === CONTAINER && type === DOCUMENT) this.#addContainer(rank, valueStart);
    else if (kind === COORDINATES && type === ARRAY) this.#coordinates = valueStart;
  };

  #addContainer(rank: number, start: number): void {
    if (!this.#hasContainers) this.#containers.fill(NONE);
    this.#containers[rank] = start;
    this.#hasContainers = true;
  }

  #set(kind: number, rank: number, value: number): void {
    const isLess = rank >= (this.#ranks[kind] as number) && !Number.isNaN(this.#values[kind]);
    if (isLess || !Number.isFinite(value) || (kind === COURSE && !isCourse(value))) return;
    this.#values[kind] = value;
    this.#ranks[kind] = rank;
  }

  #takePosition(): void {
    const latitude = this.#values[LATITUDE] as number;
    const longitude = this.#values[LONGITUDE] as number;
    if (!Number.isNaN(this.latitude) || !isPosition(latitude, longitude)) return;
    this.latitude = latitude;
    this.longitude = longitude;
  }

  #readCoordinates(start: number): void {
    this.#values.fill(Number.NaN, LATITUDE, LONGITUDE + 1);
    let index = 0;
    eachMember(this.#memory, start, (type, _nameStart, _nameEnd, valueStart) => {
      const kind = COORDINATE_KINDS[index++];
      if (kind !== undefined) this.#set(kind, LAST_RANK, numberAt(this.#memory, type, valueStart));
    });
    this.#takePosition();
  }

  /** What an outer place has is not replaced. */
  #takeOthers(): void {
    if (Number.isNaN(this.height)) this.height = this.#values[HEIGHT] as number;
    if (Number.isNaN(this.speed)) this.speed = this.#values[SPEED] as number;
    if (Number.isNaN(this.course)) this.course = this.#values[COURSE] as number;
  }
}

const COORDINATE_KINDS = [LONGITUDE, LATITUDE, HEIGHT];
