/** All objects that the user sees, with their states, kept current by live events. */
import { batch, signal } from '@preact/signals';
import { type Entity, type Json, list, listPages, request, VigilError } from './api.js';
import { learnFromPacket } from './clock.js';
import { isParameter, keepOnlineTime, mergeState } from './merge-state.js';
import { forgetMotion, keepMotion } from './motion.js';
import { forgetPlace, keepPlace } from './places.js';
import { may } from './session.js';

export interface Packet extends Json {
  readonly _id: string;
  readonly time: number;
  readonly online: boolean;
}

export interface FleetObject extends Entity {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly group: string;
  readonly active: boolean;
  readonly status?: string;
  readonly labels?: unknown;
  readonly description?: unknown;
  readonly wrongClock?: { readonly since: number; readonly packets: number; readonly deviceTime: number } | null;
  readonly packetsRemoved?: number;
  readonly config?: { readonly offlineAfter?: unknown } | null;
  state?: Packet;
}

/** Every field that a page shows or edits: the list returns no others. */
const FIELDS =
  'id,name,model,group,active,status,labels,description,wrongClock,packetsRemoved,config.offlineAfter,state';
/** Small, so that it is there at once. */
const FIRST_PAGE = 100;
const NEXT_PAGE = 300;
const PAGE = 1_000;
const TICK_MS = 200;
/** Pages that come sooner are shown together. */
const SHOW_MS = 300;
const RETRY_MS = 5_000;

export const objects = new Map<string, FleetObject>();
/** Counts changes of states; what shows states reads it. At most five times a second. */
export const stateRevision = signal(0);
/** Counts changes of the set of objects, of their names and of their other fields. */
export const objectRevision = signal(0);
export const loading = signal<'idle' | 'loading' | 'complete' | 'failed'>('idle');
export const loadError = signal<VigilError | null>(null);
/** Packets in the last second, for the header of the list. */
export const packetsPerSecond = signal(0);
/** Objects whose state changed, or that were removed, since the map last took them. */
export const changed = new Set<string>();

let timer: number | undefined;
let received: number = 0;
let sinceMs: number = 0;
const packetListeners = new Set<(packet: Packet & { _oid: string }) => void>();

/** Calls the function with every packet. Returns a function that stops this. */
export function onPacket(listener: (packet: Packet & { _oid: string }) => void): () => void {
  packetListeners.add(listener);
  return () => void packetListeners.delete(listener);
}

/** What came live since objects were asked for: the answer may have been read before. */
interface Reading {
  /** By `_id`: their new fields, or null if they were removed. */
  readonly changes: Map<string, Json | null>;
  /** By `_id`: what the packets that came make of the state. */
  readonly states: Map<string, Packet>;
}

const readings = new Set<Reading>();

function startReading(): Reading {
  const reading: Reading = { changes: new Map(), states: new Map() };
  readings.add(reading);
  return reading;
}

/** The first objects, for as long as nobody knows yet whether events arrive. They are loaded again with all others. */
export async function loadFirstObjects(): Promise<void> {
  if (!may('GET', '/objects')) return;
  const first = await list<FleetObject>('/objects', { only: FIELDS, limit: FIRST_PAGE }).catch(() => []);
  for (const object of first) if (run === 0) put(object);
  objectRevision.value++;
}

let run = 0;

/** While few objects are there, pages are small: a page that is being opened has no time for large ones. */
function nextPageSize(read: number): number {
  return read > 0 ? Math.min(PAGE, Math.max(NEXT_PAGE, Math.ceil(read / 10))) : FIRST_PAGE;
}

/** Loads everything anew; objects that are no longer there go when it is complete. */
export async function loadFleet(): Promise<void> {
  if (!may('GET', '/objects')) return;
  const mine = ++run;
  const seen = new Set<string>();
  const reading = startReading();
  if (loading.value !== 'complete') loading.value = 'loading';
  loadError.value = null;
  try {
    let shownMs = objects.size > 0 ? performance.now() : Number.NEGATIVE_INFINITY;
    for await (const page of listPages<FleetObject>('/objects', { only: FIELDS }, nextPageSize)) {
      if (mine !== run) return;
      for (const object of page) {
        seen.add(object._id);
        take(object, reading);
      }
      if (performance.now() - shownMs < SHOW_MS) continue;
      objectRevision.value++;
      shownMs = performance.now();
    }
    // To sort them all is a task of its own.
    await new Promise<void>((resolve) => setTimeout(() => resolve()));
    if (mine !== run) return;
    for (const id of objects.keys()) if (!seen.has(id) && !reading.changes.has(id)) forget(id);
    batch(() => {
      loading.value = 'complete';
      objectRevision.value++;
      stateRevision.value++;
    });
  } catch (error) {
    if (!(error instanceof VigilError)) throw error;
    batch(() => {
      loadError.value = error;
      objectRevision.value++;
      loading.value = loading.value === 'complete' ? 'complete' : 'failed';
    });
  } finally {
    readings.delete(reading);
  }
}

/** Takes an object as it was read. What came live is newer, or else something newer still comes. */
function take(read: FleetObject, { changes, states }: Reading): void {
  const since = changes.get(read._id);
  if (since === null) return;
  const object = { ...read, ...since };
  // Its packet may be one of those that were removed since: the object is being read again.
  if (object.packetsRemoved !== read.packetsRemoved) delete object.state;
  put(object, states.get(read._id));
}

/** `newer`: the state that packets make which came since the object was read. */
function put(object: FleetObject, newer?: Packet): void {
  const present = objects.get(object._id);
  // Otherwise what was removed would stay, because it is newer than what is left.
  if (present !== undefined && present.packetsRemoved !== object.packetsRemoved) forgetPackets(object._id);
  const known = objects.get(object._id)?.state;
  const loaded = object.state;
  if (known && (!object.state || object.state.time < known.time)) object.state = known;
  else if (known && object.state) keepOnlineTime(object.state, known);
  if (newer !== undefined) object.state = mergeState(object.state, newer);
  if (object.state !== undefined) {
    keepPlace(object._id, object.state, known, loaded);
    keepMotion(object._id, object.state, known);
  }
  objects.set(object._id, object);
  changed.add(object._id);
}

export function addObject(object: FleetObject): void {
  const { state: _state, ...fields } = object;
  for (const { changes } of readings) changes.set(object._id, fields);
  put(object);
  objectRevision.value++;
}

const requested = new Map<string, Promise<void>>();

/** Loads the object that a page shows, by `_id` or own id. Those who ask meanwhile wait for the same answer. */
export function loadObject(id: string, by = request): Promise<void> {
  const asked = requested.get(id) ?? readObject(id, by).finally(() => requested.delete(id));
  requested.set(id, asked);
  return asked;
}

async function readObject(id: string, by: typeof request): Promise<void> {
  const reading = startReading();
  const read = (await by('GET /api/v1/objects/{id}', { path: { id } }).finally(() =>
    readings.delete(reading),
  )) as FleetObject;
  take(read, reading);
  // It is there, although the list may have been read before it was.
  for (const { changes } of readings) if (!changes.has(read._id)) changes.set(read._id, {});
  objectRevision.value++;
  const removed = reading.changes.get(read._id)?.packetsRemoved;
  if (removed !== undefined && removed !== read.packetsRemoved) await readObject(id, by);
}

export function removeObject(id: string): void {
  for (const { changes } of readings) changes.set(id, null);
  if (forget(id)) objectRevision.value++;
}

function forget(id: string): boolean {
  changed.add(id);
  forgetPlace(id);
  forgetMotion(id);
  return objects.delete(id);
}

export function applyPacket(packet: Packet & { _oid: string }): void {
  received++;
  learnFromPacket(packet._ts);
  const object = objects.get(packet._oid);
  if (object !== undefined) {
    object.state = nextState(object.state, packet);
    changed.add(packet._oid);
  }
  // Of an object that is not there yet, nothing else keeps its place.
  const merge = object === undefined ? nextState : mergeState<Packet>;
  for (const { states } of readings) states.set(packet._oid, merge(states.get(packet._oid), packet));
  for (const listener of packetListeners) listener(packet);
  startTimer();
}

function nextState(before: Packet | undefined, packet: Packet & { _oid: string }): Packet {
  const state = mergeState(before, packet);
  keepPlace(packet._oid, state, before, packet);
  keepMotion(packet._oid, state, before);
  return state;
}

export function applyUpdate({ id, after }: { id: string; after: Json }): void {
  for (const { changes } of readings) changes.set(id, { ...changes.get(id), ...after });
  const object = objects.get(id);
  if (object !== undefined) objects.set(id, { ...object, ...after } as FleetObject);
  if ('packetsRemoved' in after) {
    forgetPackets(id);
    void readAgain(id);
  }
  if (object !== undefined) objectRevision.value++;
}

/** The packet of the state, or that of the last place, may have been removed. */
function forgetPackets(id: string): void {
  delete objects.get(id)?.state;
  for (const { states } of readings) states.delete(id);
  forgetPlace(id);
  forgetMotion(id);
  changed.add(id);
}

/**
 * Whether what is read now of the packets of these objects is still so when the answer comes: false for one of which packets were
 * removed meanwhile.
 */
export function watchRemovals(ids: readonly string[]): (id: string) => boolean {
  const removed = new Map(ids.map((id) => [id, objects.get(id)?.packetsRemoved]));
  return (id) => objects.get(id)?.packetsRemoved === removed.get(id);
}

/** Until the server answers: nothing else would show what is left. */
async function readAgain(id: string): Promise<void> {
  await loadObject(id).catch((error: unknown) => {
    if (!(error instanceof VigilError)) throw error;
    if (error.status !== 403 && error.status !== 404) setTimeout(() => void readAgain(id), RETRY_MS);
  });
}

function startTimer(): void {
  if (timer !== undefined) return;
  if (sinceMs === 0) sinceMs = performance.now();
  timer = setTimeout(() => {
    timer = undefined;
    const nowMs = performance.now();
    batch(() => {
      stateRevision.value++;
      if (nowMs - sinceMs >= 1_000) {
        packetsPerSecond.value = Math.round((received * 1_000) / (nowMs - sinceMs));
        [received, sinceMs] = [0, nowMs];
      }
    });
    // Goes on once more when packets stop, so that the rate falls to 0.
    if (packetsPerSecond.value > 0) startTimer();
  }, TICK_MS);
}

/** The parameters of a packet that its device sent. */
export function parametersOf(packet: Packet): [string, unknown][] {
  return Object.entries(packet).filter(([name]) => isParameter(name));
}
