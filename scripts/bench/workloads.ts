// The workloads: the same requests for every server. The table of results has a row for each.
import { BEGIN_MS, newObject, newPacket, objectId, PAGE, placeOf, type Size, SOURCE, STEP_MS } from './data.js';

/** A request to the API. */
export interface Wanted {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly path: string;
  readonly body?: unknown;
}

export type MakeWanted = (nth: number, size: Size) => Wanted;

interface Common {
  readonly id: string;
  readonly title: string;
  /** The number of GETs of one object per second beside the workload. */
  readonly readsPerSecond: number;
  /** Whether the floor is omitted: it cannot do the same with less code. */
  readonly withoutFloor?: true;
  /** Whether the other servers have nothing like it. */
  readonly onlyOurs?: true;
}

/** Requests as fast as answers arrive, or at a fixed rate. */
export interface HttpWorkload extends Common {
  readonly kind: 'http';
  readonly connections: number;
  readonly wanted: MakeWanted;
  /** Requests per second, whether or not answers arrive; as fast as answers arrive if absent. */
  readonly rate?: number;
  /** The number of answers after which a server runs compiled code. */
  readonly warmRequests: number;
  /** Whether the peak memory of the server is reported. */
  readonly memory?: true;
}

/** Packets posted at a fixed rate and received by many sockets. */
export interface LiveWorkload extends Common {
  readonly kind: 'live';
  readonly sockets: number;
  readonly packetsPerSecond: number;
  /** Packets per request. */
  readonly packetsPerPost: number;
}

export type Workload = HttpWorkload | LiveWorkload;

const PRIME = 7_919;
const pathOf = (nth: number): string => `/api/v1/objects/${objectId(nth)}`;
// Scattered, and all equally often.
const anyObject = (nth: number, { objects }: Size): string => pathOf((nth * PRIME) % objects);
const anyDevice = (nth: number, { longHistories, histories }: Size): string =>
  pathOf(longHistories + (nth % histories));

/** A clock shared by all processes of a machine. */
export const nowMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

const run = Date.now().toString(36);

export const readObject: MakeWanted = (nth, size) => ({ method: 'GET', path: anyObject(nth, size) });

const listObjects: MakeWanted = () => ({ method: 'GET', path: '/api/v1/objects?limit=100' });

const readPackets: MakeWanted = (nth, { longHistories, longPackets }) => {
  const beginMs = BEGIN_MS + Math.floor(Math.max(0, longPackets - PAGE) / 2) * STEP_MS;
  const interval = `begin=${beginMs}&end=${beginMs + (PAGE - 1) * STEP_MS}`;
  return { method: 'GET', path: `${pathOf(nth % longHistories)}/packets?${interval}` };
};

const DAY_MS = 86_400_000;

/** The series of the first day of a long history, which has a packet per second, or of all of it if it is shorter. */
const readDay: MakeWanted = (nth, { longHistories }) => {
  const interval = `from=${BEGIN_MS}&to=${BEGIN_MS + DAY_MS - 1}`;
  return { method: 'GET', path: `${pathOf(nth % longHistories)}/series?params=speed&points=1000&${interval}` };
};

const readHistory: MakeWanted = (nth, { longHistories, longPackets }) => {
  const interval = `from=${BEGIN_MS}&to=${BEGIN_MS + longPackets * STEP_MS - 1}`;
  return { method: 'GET', path: `${pathOf(nth % longHistories)}/series?params=speed&points=2000&${interval}` };
};

const createObject: MakeWanted = (nth) => ({
  method: 'POST',
  path: '/api/v1/objects',
  body: newObject(`new-${run}-${process.pid}-${nth}`),
});

const changeStatus: MakeWanted = (nth, size) => ({
  method: 'PATCH',
  path: anyObject(nth, size),
  body: { status: `status ${nth}` },
});

/** Packets with the current time; `sentMs` lets receivers compute the latency. */
export const postPackets =
  (count: number): MakeWanted =>
  (nth, size) => {
    const timeMs = Date.now();
    const sentMs = nowMs();
    const packets = Array.from({ length: count }, () => ({ ...newPacket(timeMs), sentMs }));
    return { method: 'POST', path: `${anyDevice(nth, size)}/packets`, body: count === 1 ? packets[0] : packets };
  };

/** One packet of an object that drives around a place of its own. */
export const postMove: MakeWanted = (nth, size) => {
  const { lat, lon } = placeOf(nth % size.histories);
  const turn = nth / size.histories / TURN_PACKETS;
  const body = { ...newPacket(Date.now()), lat: lat + Math.sin(turn) / 50, lon: lon + Math.cos(turn) / 50 };
  return { method: 'POST', path: `${anyDevice(nth, size)}/packets`, body };
};

/** A position as a Traccar server forwards it, through a source. */
const forwardPosition: MakeWanted = (nth, { longHistories, histories }) => {
  const device = longHistories + (nth % histories);
  const fixTime = new Date().toISOString();
  const attributes = { batteryLevel: 81, distance: 12.5, totalDistance: 1_234_567.8, motion: true, sat: 9 };
  const motion = { speed: 24.3, course: 118, altitude: 34, accuracy: 5 };
  const { lat: latitude, lon: longitude } = placeOf(device);
  const known = { protocol: 'teltonika', valid: true, deviceId: device, fixTime, deviceTime: fixTime };
  const position = { id: nth, ...known, latitude, longitude, ...motion, attributes };
  return {
    method: 'POST',
    path: `/api/v1/in/${SOURCE.id}/${SOURCE.key}`,
    body: { position, device: { id: device, name: `Truck ${device}`, uniqueId: `truck-${device}`, status: 'online' } },
  };
};

const TURN_PACKETS = 20;
const WARM_REQUESTS = 10_000;
/** For requests whose inner loops run a hundred times or more. */
const WARM_PAGES = 300;
const WARM_SERIES = 20;

const http = (id: string, title: string, wanted: MakeWanted, connections = 32): HttpWorkload => ({
  kind: 'http',
  id,
  title,
  wanted,
  connections,
  warmRequests: WARM_REQUESTS,
  readsPerSecond: 0,
});

const live = (id: string, sockets: number, packetsPerSecond: number, readsPerSecond = 0): LiveWorkload => {
  const beside = readsPerSecond === 0 ? '' : ` with ${readsPerSecond} GET/s`;
  const title = `live: ${sockets.toLocaleString('en-US')} sockets × ${packetsPerSecond.toLocaleString('en-US')}/s${beside}`;
  const packetsPerPost = packetsPerSecond < 1_000 ? 1 : 10;
  return { kind: 'live', id, title, sockets, packetsPerSecond, packetsPerPost, readsPerSecond };
};

const series = (id: string, title: string, wanted: MakeWanted, readsPerSecond = 0): HttpWorkload => ({
  ...http(id, title, wanted, readsPerSecond === 0 ? 1 : 10),
  warmRequests: WARM_SERIES,
  readsPerSecond,
  memory: true,
  withoutFloor: true,
});

export const WORKLOADS: readonly Workload[] = [
  http('W1', 'GET one object', readObject),
  http('W2', 'list of 100 objects', listObjects),
  { ...http('W3', 'page of 10,000 packets', readPackets, 4), warmRequests: WARM_PAGES, memory: true },
  http('W4', 'create an object', createObject),
  http('W5', 'PATCH `status`', changeStatus),
  http('W6', 'POST one packet', postPackets(1)),
  { ...http('W6b', 'POST 100 packets', postPackets(100)), warmRequests: WARM_PAGES },
  live('W7a', 100, 200),
  live('W8', 100, 200, 500),
  live('W7b', 100, 1_000),
  live('W7c', 1_000, 1_000),
  {
    ...http('W9', 'pages of 10,000 packets with 200 GET/s', readPackets, 8),
    warmRequests: WARM_PAGES,
    readsPerSecond: 200,
  },
  { ...http('F', 'forward one position through a source', forwardPosition), onlyOurs: true },
  { ...http('Fr', 'forward 1,000 positions a second through a source', forwardPosition), rate: 1_000, onlyOurs: true },
  series('S1', 'series of a day in 1,000 points', readDay),
  series('S2', 'series of a long history in 2,000 points', readHistory),
  series('S3', 'series of long histories with 200 GET/s', readHistory, 200),
];
