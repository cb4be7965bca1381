// A test device: replays a recording (CSV) as packets of one object, or simulates a vehicle. An interrupted replay continues
// where it stopped: each row has a fixed id, which the server stores once.
import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parse } from 'csv-parse/sync';
import {
  type Client,
  connect,
  type Failure,
  failure,
  find,
  parseArguments,
  parsePositive,
  pause,
  request,
  runScript,
} from './client.js';
import { connectMqtt, PACKETS_PER_MESSAGE } from './device-mqtt.js';
import { startProgress } from './progress.js';

/** The packet of one row of a recording. */
export type Packet = Record<string, number | boolean | string>;

/** Packets with the order and times of sending. */
interface Feed {
  total: number;
  /** The count of packets that the service has stored already. */
  stored: number;
  dueAt(index: number): number;
  packetAt(index: number): Packet;
}

const HELP = `npm run device -- --object <id> [--file <csv>] [--speed <factor>|max]

Sends packets of one object, which is created if it does not exist: the rows of a CSV file in their recorded rhythm, or,
without --file, those of a simulated vehicle (one a second) until Ctrl-C. An interrupted replay continues when the same
command is given again. The file's first column is "time" (ms since the epoch, or ISO 8601); the others are parameters.

  --object <id>        the object: its own id, or its _id
  --name <text>        its name, if it is created (default: the id)
  --file <csv>         the recording
  --speed <factor>     60 is sixty times faster (default 1); max is as fast as the server acknowledges
  --batch <n>          most packets in one request (default 500), or in one message (at most 100)
  --mqtt <address>     sends them over MQTT (mqtt://127.0.0.1:1883), and carries out every command: it says so, and answers`;

const SERVICE_FIELDS = ['_id', '_ts', '_oid', '_gid', 'id'];
// Only JSON numbers: "007" and "+5" are codes and stay text.
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const LAP_S = 1140;
const DRIVE_S = 1080;
const STOPS = 9;

/** Reads a time: ms since the epoch, or ISO 8601, which is UTC unless it names a zone. */
export function parseTime(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Math.round(Number(text));
  const iso = text.replace(' ', 'T');
  return Date.parse(iso.includes('T') && !/(Z|[+-]\d\d:?\d\d)$/i.test(iso) ? `${iso}Z` : iso);
}

/** Converts one row to a packet without its empty cells. `line` appears in errors. */
export function toPacket(columns: string[], cells: string[], line: number): Packet {
  const packet: Packet = { time: parseTime(cells[0] ?? '') };
  if (Number.isNaN(packet.time))
    throw failure(`Row ${line}: "${cells[0]}" is not a time (ms since the epoch, or ISO 8601)`);
  columns.forEach((column, index) => {
    const cell = cells[index] ?? '';
    if (index > 0 && cell !== '') packet[column] = toValue(cell);
  });
  return packet;
}

function toValue(cell: string): number | boolean | string {
  if (/^(true|false)$/i.test(cell)) return cell.toLowerCase() === 'true';
  const value = Number(cell);
  // A long serial number would lose its last digits.
  const exact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return NUMBER.test(cell) && exact ? value : cell;
}

/** Parses a recording. Errors of csv-parse name the malformed line. */
export function readPackets(csv: string): Packet[] {
  const [columns = [], ...rows] = parse(csv, { bom: true, trim: true, skip_empty_lines: true });
  if (columns[0] !== 'time') throw failure(`The first column must be "time", not "${columns[0] ?? ''}"`);
  const wrong = columns.find((name, index) => SERVICE_FIELDS.includes(name) || columns.indexOf(name) !== index);
  if (wrong !== undefined) throw failure(`The column "${wrong}" is set by the service, or named twice`);
  return rows.map((cells, index) => toPacket(columns, cells, index + 2));
}

/** Assigns each packet an id that is the same in every replay for this object. Equal rows get different ids. */
export function withIds(objectId: string, packets: Packet[]): Packet[] {
  const seen = new Map<string, number>();
  return packets.map((packet) => {
    const content = JSON.stringify(packet);
    const nth = seen.get(content) ?? 0;
    seen.set(content, nth + 1);
    const hash = createHash('sha256').update(`${objectId}\n${nth}\n${content}`);
    return { _id: hash.digest('hex').slice(0, 24), ...packet };
  });
}

/** Counts the stored rows by binary search, since a replay stores rows in order without gaps. */
export async function storedCount(count: number, isStored: (index: number) => Promise<boolean>): Promise<number> {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await isStored(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The state of the simulated vehicle at a second of its trip: rounds of 12 km with stops at lights, then a break. */
export function vehicleAt(second: number): Packet {
  const driven = Math.min((second % LAP_S) / DRIVE_S, 1);
  // The driven share of the round; its slope falls to zero at every stop.
  const way = (share: number) => share - Math.sin(2 * Math.PI * STOPS * share) / (2 * Math.PI * STOPS);
  const [north, east] = metersAt(way(driven));
  const [northAhead, eastAhead] = metersAt(way(driven) + 0.0001);
  const [northNext, eastNext] = metersAt(way(driven + 1 / DRIVE_S));
  const heading = (Math.atan2(eastAhead - east, northAhead - north) * 180) / Math.PI;
  return {
    lat: Number((48.14 + north / 111_195).toFixed(6)),
    lon: Number((11.57 + east / 74_200).toFixed(6)),
    speed: driven < 1 ? Number((Math.hypot(northNext - north, eastNext - east) * 3.6).toFixed(1)) : 0,
    angle: Math.round(heading + 360) % 360,
    fuel: Number((60 - (((Math.floor(second / LAP_S) + way(driven)) * 0.96) % 48)).toFixed(2)),
    ignition: driven < 1,
  };
}

function metersAt(share: number): [number, number] {
  const turn = 2 * Math.PI * share;
  const radius = 1 + 0.12 * Math.sin(3 * turn);
  return [1720 * radius * Math.sin(turn), 1930 * radius * Math.cos(turn)];
}

/** Summarizes how fast packets were acknowledged. */
export function summarize(packets: number, milliseconds: number, requestMs: number[]): string {
  const sorted = requestMs.toSorted((a, b) => a - b);
  const percentile = (share: number) => (sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(1);
  const seconds = Math.max(milliseconds, 1) / 1000;
  const rate = `${packets} packets in ${seconds.toFixed(1)} s: ${(packets / seconds).toFixed(1)} packets/s`;
  return `${rate}; ${sorted.length} requests, acknowledged in p50 ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms`;
}

async function getObject(client: Client, id: string, name: string): Promise<string> {
  const path = `/api/v1/objects/${encodeURIComponent(id)}`;
  const found = await find(client, path);
  if (found) return String(found._id);
  try {
    const created = await request(client, 'POST', '/api/v1/objects', { id, name });
    console.log(`Created the object ${id} (${created._id})`);
    return String(created._id);
  } catch (error) {
    // Another device of this object, or an own request whose answer was lost, may have created it first.
    const other = (error as Failure).status === 409 && (await find(client, path));
    if (other) return String(other._id);
    throw error;
  }
}

/** Sends packets to the service. */
type Send = (packets: Packet[]) => Promise<unknown>;

async function sendFeed(client: Client, send: Send, feed: Feed, batch: number, show: (done: number) => void) {
  const requestMs: number[] = [];
  // The previous run may have been interrupted during a request; rows that it stored are not stored again.
  let next = Math.max(0, feed.stored - batch);
  while (next < feed.total && !client.signal.aborted) {
    let end = next;
    while (end < feed.total && end - next < batch && (end < feed.stored || feed.dueAt(end) <= Date.now())) end++;
    if (end === next) {
      await pause(feed.dueAt(next) - Date.now(), client.signal);
      continue;
    }
    const packets = Array.from({ length: end - next }, (_, index) => feed.packetAt(next + index));
    const started = performance.now();
    try {
      await send(packets);
    } catch (error) {
      if (client.signal.aborted) break;
      throw failure(`Packets ${next + 1} to ${end}: ${(error as Failure).message}`);
    }
    requestMs.push(performance.now() - started);
    next = end;
    show(next);
  }
  return { sent: Math.max(0, next - feed.stored), done: Math.max(next, feed.stored), requestMs };
}

function simulation(speed: number): Feed {
  const begun = Date.now();
  const dueAt = (index: number) => begun + (index * 1000) / speed;
  // Not the current time: after an outage of the service the vehicle sends the packets that it recorded meanwhile.
  const timeAt = (index: number) => (speed === Infinity ? Date.now() : Math.round(dueAt(index)));
  const common = (index: number) => ({ _id: randomBytes(12).toString('hex'), time: timeAt(index) });
  const packetAt = (index: number) => ({ ...common(index), ...vehicleAt(index) });
  return { total: Infinity, stored: 0, dueAt, packetAt };
}

async function recording(client: Client, objectId: string, rows: Packet[], speed: number): Promise<Feed> {
  const packets = withIds(objectId, rows);
  const at = (index: number) => packets[index] as Packet;
  const pathOf = (index: number) => `/api/v1/objects/${objectId}/packets/${at(index)._id}?only=_id`;
  const isStored = async (index: number) => (await find(client, pathOf(index))) !== null;
  const stored = await storedCount(packets.length, isStored);
  if (stored > 0) console.log(`${stored} of ${packets.length} packets are stored already`);
  const offset = Date.now() - Number(packets[stored]?.time) / speed;
  const dueAt = (index: number) => offset + Number(at(index).time) / speed;
  return { total: packets.length, stored, dueAt, packetAt: at };
}

async function main(signal: AbortSignal): Promise<number> {
  const text = { type: 'string' } as const;
  const args = parseArguments({ object: text, name: text, file: text, speed: text, batch: text, mqtt: text }, HELP);
  if (!args.object) throw failure('--object is missing: the id of the object. --help lists the arguments.');
  const speed = args.speed === 'max' ? Infinity : parsePositive('speed', args.speed, 1);
  const asked = Math.ceil(parsePositive('batch', args.batch, 500));
  const batch = args.mqtt ? Math.min(asked, PACKETS_PER_MESSAGE) : asked;
  const rows = args.file ? readPackets(await readFile(args.file, 'utf8')) : null;
  const client = await connect(args, signal);
  const objectId = await getObject(client, args.object, args.name ?? args.object);
  const feed = rows ? await recording(client, objectId, rows, speed) : simulation(speed);
  const progress = startProgress(feed.total);
  // A device continues after any outage of the service. The line break keeps the progress bar intact.
  client.attempts = Infinity;
  client.say = (message) => console.error(process.stdout.isTTY ? `\n${message}` : message);
  const path = `/api/v1/objects/${objectId}/packets`;
  const broker = args.mqtt ? await connectMqtt(args.mqtt, objectId, client) : null;
  const send: Send = (packets) =>
    broker?.send(packets) ?? request(client, 'POST', path, packets.length === 1 ? packets[0] : packets);
  const started = performance.now();
  const { sent, done, requestMs } = await sendFeed(client, send, feed, batch, progress.show).finally(() => {
    progress.stop();
    return broker?.stop();
  });
  console.log(summarize(sent, performance.now() - started, requestMs));
  if (done >= feed.total || !rows) return 0;
  console.log(`Stopped after ${done} of ${feed.total} packets. The same command continues from there.`);
  return 130;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runScript(main);
