// The packets that the measurement of packed history packs: made from a seed to resemble recordings, or read from a folder of them.
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ObjectId } from 'mongodb';
import { NewPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { DOCUMENT_BYTES, toBson } from '../../src/platform/mongo/bson/writer.js';
import { PlainError } from '../../src/program.js';
import { BEGIN_MS, objectId } from './data.js';
import { createRandom } from './random.js';

/** What a device has measured at a time; fields without a value are absent. */
export interface Sample {
  readonly time: number;
  readonly [field: string]: number | boolean | string;
}

export interface DataSet {
  readonly name: string;
  readonly samples: readonly Sample[];
}

/** Packets of an object as they are stored, and their parts, for other formats. */
export interface StoredPackets {
  readonly rows: readonly Buffer[];
  readonly packets: readonly StoredPacket[];
}

export interface StoredPacket {
  readonly id: string;
  readonly stampUs: number;
  readonly sample: Sample;
}

/** So many objects send in turn: the counter of the service advances by about as much between two packets of one of them. */
const OBJECTS = 1_000;
const OBJECT_ID = new ObjectId(objectId(1));
const GROUP_ID = new ObjectId(objectId(2));
const PROCESS = 'c0ffee1234';
const ARRIVAL_MS = { least: 20, spread: 60 };

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));
/** About normally distributed, with a deviation of 1. */
const normal = (random: () => number): number => Array.from({ length: 12 }, random).reduce((sum, one) => sum + one, -6);

/** A car in a city: a fix each second with seven decimals, a speed, an angle, and a gap now and then. */
function drive(count: number, random: () => number): Sample[] {
  let time = BEGIN_MS;
  let lat = 48.1635;
  let lon = 11.5644;
  let angle = 90;
  let speed = 30;
  return Array.from({ length: count }, () => {
    time += random() < 0.01 ? 1_000 * Math.ceil(random() * 30) : 1_000;
    angle = (angle + (random() < 0.03 ? 90 : normal(random) * 6) + 360) % 360;
    speed = Math.max(0, Math.min(60, speed + normal(random) * 4));
    const metres = speed / 3.6;
    lat += (metres * Math.cos((angle * Math.PI) / 180) + normal(random)) / 111_000;
    lon += (metres * Math.sin((angle * Math.PI) / 180) + normal(random)) / 74_000;
    return {
      time,
      lat: rounded(lat, 7),
      lon: rounded(lon, 7),
      speed: rounded(speed, 1),
      angle: Math.round(angle) % 360,
    };
  });
}

/** A machine: its temperature each five minutes with three decimals. */
function heat(count: number, random: () => number): Sample[] {
  let temperature = 90;
  return Array.from({ length: count }, (_, index) => {
    temperature += normal(random) * 1.3 + (92 - temperature) / 60;
    return { time: BEGIN_MS + index * 300_000, temperature: rounded(temperature, 3) };
  });
}

/** The worst that can be sent: numbers without any relation to each other. */
function scatter(count: number, random: () => number): Sample[] {
  const any = (): number => (random() - 0.5) * 10 ** Math.floor(random() * 12) + random() / 2 ** 30;
  return Array.from({ length: count }, (_, index) => ({
    time: BEGIN_MS + index * 1_000,
    a: any(),
    b: any(),
    c: any(),
  }));
}

export function createDataSets(count: number): DataSet[] {
  return [
    { name: 'car, made', samples: drive(count, createRandom(1)) },
    { name: 'machine, made', samples: heat(count, createRandom(2)) },
    { name: 'random doubles', samples: scatter(count, createRandom(3)) },
  ];
}

/** Reads the CSV files of a folder: a column `time` in ms, and numbers, of which empty ones are absent. */
export async function readRecordings(folder: string): Promise<DataSet[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.csv')).sort();
  if (names.length === 0) throw new PlainError(`--recordings: no CSV file in ${folder}`);
  return Promise.all(
    names.map(async (name) => ({
      name: basename(name, '.csv'),
      samples: parseRecording(name, await readFile(join(folder, name), 'utf8')),
    })),
  );
}

export function parseRecording(name: string, text: string): Sample[] {
  const [head = '', ...lines] = text.trim().split(/\r?\n/);
  const fields = head.split(',');
  const samples = lines.map((line) => {
    const cells = line
      .split(',')
      .map((cell, nth): [string, number | null] => [fields[nth] ?? '', cell.trim() === '' ? null : Number(cell)]);
    return Object.fromEntries(cells.filter(([, value]) => value !== null)) as unknown as Sample;
  });
  const bad = samples.findIndex(
    (sample) => !Object.values(sample).every(Number.isFinite) || !Number.isInteger(sample.time),
  );
  if (bad !== -1) throw new PlainError(`--recordings: ${name}, line ${bad + 2}: expected numbers and a time in ms`);
  return samples;
}

/** The samples as the service stores them, with `_id`s of its own or such as devices choose. */
export function toStoredPackets({ samples }: DataSet, isIdChosen: boolean): StoredPackets {
  const random = createRandom(7);
  let counter = 0;
  let lastUs = 0;
  const packets = samples.map((sample) => {
    const arrivalMs = sample.time + Math.round(ARRIVAL_MS.least + ARRIVAL_MS.spread * random() ** 3);
    const stampUs = Math.max(lastUs + 1, arrivalMs * 1_000 + Math.floor(random() * 4));
    lastUs = stampUs;
    counter = (counter + Math.round(OBJECTS + normal(random) * 30)) % 2 ** 24;
    const id = isIdChosen ? hexOf(random, 24) : givenId(arrivalMs, counter);
    return { id, stampUs, sample };
  });
  return { packets, rows: packets.map((packet) => toRow(packet, OBJECT_ID)) };
}

const hexOf = (random: () => number, digits: number): string =>
  Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join('');

/** An `_id` as the service gives it. */
export const givenId = (timeMs: number, counter: number): string =>
  Math.floor(timeMs / 1_000).toString(16) + PROCESS + counter.toString(16).padStart(6, '0');

/** A packet as it is stored. */
export function toRow({ id, stampUs, sample }: StoredPacket, object: ObjectId): Buffer {
  const { time, ...parameters } = sample;
  return toBson(
    {
      _id: new NewPacketKey(new ObjectId(id), object),
      _ts: stampUs,
      time,
      online: true,
      _oid: object,
      id: 'truck-7',
      _gid: GROUP_ID,
      ...parameters,
    },
    DOCUMENT_BYTES,
  ) as Buffer;
}
