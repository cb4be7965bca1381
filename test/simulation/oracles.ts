/**
 * What must be true of every run. The oracles know no rule of the service but one: who sees an object, which they take from the
 * stored documents alone.
 */
import type { Document } from 'mongodb';
import { isAfter } from '../../src/core/position.js';
import { packetIdIn } from '../../src/platform/mongo/bson/packet-key.js';
import { toPosition } from '../../src/platform/mongo/changes/decoder.js';
import { toNumber } from './database/compare.js';
import { isReport } from './database/documents.js';
import { type Entry, tokenOf } from './database/oplog.js';
import type { SimulatedServer } from './database/server.js';
import type { SendingDevice } from './device.js';
import type { SubscribedClient } from './subscriber.js';

/** A sentence that was not kept. */
export class Violation extends Error {}

export const fail = (message: string): never => {
  throw new Violation(message);
};

/**
 * Every acknowledged packet is stored, none is stored that was not sent, and those of one device in the order it sent them. `packed` are
 * those that are no rows any more.
 */
export function checkStored(
  server: SimulatedServer,
  devices: readonly SendingDevice[],
  packed: ReadonlyMap<string, Document>,
): void {
  const firsts = new Map<string, number>();
  for (const [index, { collection, after, id }] of server.oplog.entries()) {
    if (collection === 'packets' && after !== null) firsts.set(packetIdIn(id as never), index);
  }
  const rows = server.committed('packets').map((packet) => [packetIdIn(packet._id), packet] as const);
  const stored = new Map([...packed, ...rows]);
  for (const { sent, acknowledged, stamps } of devices) {
    for (const [id, stamp] of stamps ?? []) {
      const found = stored.get(id);
      if (found !== undefined && toNumber(found._ts) !== stamp)
        fail(`the answer says that packet ${id} was stored at ${stamp}, and it was at ${found._ts}`);
    }
    for (const id of acknowledged) if (!stored.has(id)) fail(`packet ${id} was acknowledged and is not stored`);
    const places = sent.flatMap((id) => (stored.has(id) ? [{ id, place: firsts.get(id) as number }] : []));
    for (const [nth, { id, place }] of places.entries()) {
      const before = places[nth - 1];
      if (before !== undefined && before.place > place)
        fail(`packet ${id} was stored before ${before.id}, which was sent earlier`);
    }
  }
  const all = new Set(devices.flatMap(({ sent }) => sent));
  for (const [id, packet] of stored)
    if (!all.has(id) && !isReport(packet)) fail(`packet ${id} is stored and was never sent`);
}

/** Whether the document that is stored lets the user see the object. */
type Sees = (userId: string, objectId: string) => boolean;

function createReplay() {
  const objects = new Map<string, Document>();
  const users = new Map<string, Document>();
  const apply = ({ collection, key, after }: Entry): void => {
    const documents = collection === 'objects' ? objects : collection === 'users' ? users : null;
    if (after === null) documents?.delete(key);
    else documents?.set(key, after);
  };
  const sees: Sees = (userId, objectId) => {
    const object = objects.get(`o${objectId}`);
    const user = users.get(`o${userId}`);
    if (object === undefined || user === undefined) return false;
    const named = [object.owner, ...object.access].map(String);
    return named.includes(userId) || object.branch.map(String).includes(String(user.group));
  };
  return { apply, sees };
}

/** At which entries of the oplog the user begins, and ceases, to see the object. */
export interface Sight {
  readonly index: number;
  readonly sees: boolean;
}

export interface Viewer {
  readonly client: SubscribedClient;
  readonly userId: string;
  readonly tokenId: string;
}

export function sightsOf(oplog: readonly Entry[], userId: string, objectIds: readonly string[]): Map<string, Sight[]> {
  const { apply, sees } = createReplay();
  const sights = new Map(objectIds.map((id) => [id, [] as Sight[]]));
  for (const [index, entry] of oplog.entries()) {
    apply(entry);
    if (entry.collection !== 'objects' && entry.collection !== 'users') continue;
    for (const [objectId, known] of sights) {
      const now = sees(userId, objectId);
      if (known.at(-1)?.sees !== now) known.push({ index, sees: now });
    }
  }
  return sights;
}

/** Whether the user sees the object at some entry from `first` to `last`. */
export function seesAny(sights: readonly Sight[], first: number, last: number): boolean {
  return sights.some(
    ({ index, sees }, nth) => sees && index <= last && (sights[nth + 1]?.index ?? Number.POSITIVE_INFINITY) > first,
  );
}

/** Whether the user sees the object from this entry on, until the end. */
export function seesFrom(sights: readonly Sight[], first: number): boolean {
  const last = sights.at(-1);
  return last?.sees === true && last.index <= first;
}

/** The index of each entry by its position. */
export const placesOf = (oplog: readonly Entry[]): Map<string, number> =>
  new Map(oplog.map((entry, index) => [toPosition({ _data: tokenOf(entry) }), index]));

/** The object that an entry is about. */
export function objectOf({ collection, after, before, id }: Entry): string | null {
  if (collection === 'objects') return String(id);
  if (collection !== 'packets' && collection !== 'alarms' && collection !== 'commands') return null;
  return String((after ?? before)?.[collection === 'packets' ? '_oid' : 'object']);
}

/** From when on who sees the object may be told of an entry: alarms and commands follow its rights a little later. */
export const toldFrom = ({ collection }: Entry, index: number): number =>
  collection === 'alarms' || collection === 'commands' ? 0 : index;

/**
 * What a subscriber received is what the database has, in its order, without a double, and without a gap from where it joined; nothing
 * of an object that it could see neither then nor since.
 */
export function checkReceived(
  server: SimulatedServer,
  { client, userId, tokenId }: Viewer,
  objectIds: readonly string[],
): void {
  const { oplog, majority } = server;
  const places = placesOf(oplog);
  const sights = sightsOf(oplog, userId, objectIds);
  const removedAt = oplog.findIndex(
    ({ collection, after, id }) => collection === 'tokens' && after === null && String(id) === tokenId,
  );
  const lastPermitted = removedAt === -1 ? oplog.length : removedAt;
  let last = -1;
  for (const { position, name, id, seen } of client.received) {
    const index = places.get(position) ?? fail(`${client.name} received ${name} ${id}, which no majority has`);
    const entry = oplog[index] as Entry;
    if (index <= last) fail(`${client.name} received ${name} ${id} again, or after a later event`);
    if (index > lastPermitted) fail(`${client.name} received ${name} ${id} after its token was removed`);
    last = index;
    const objectId = objectOf(entry) ?? fail(`${client.name} received ${name} of ${entry.collection}`);
    const wanted = name === 'object-packet' ? packetIdIn(entry.id as never) : id;
    if (id !== wanted) fail(`${client.name} received ${id} at the position of ${wanted}`);
    // The one event for those who lose an object is the last one.
    if (name === 'object-removed' || seesAny(sights.get(objectId) ?? [], toldFrom(entry, index), seen)) continue;
    fail(`${client.name} received ${name} ${id} of an object that it could not see`);
  }
  if (client.isRefused || client.from === null) return;
  const got = new Set(client.received.map(({ position }) => position));
  for (const [position, index] of places) {
    const entry = oplog[index] as Entry;
    if (index >= majority || entry.collection !== 'packets' || entry.before !== null || !isAfter(position, client.from))
      continue;
    const isSeen = seesFrom(sights.get(String(entry.after?._oid)) ?? [], index);
    if (isSeen && !got.has(position)) fail(`${client.name} did not receive packet ${packetIdIn(entry.id as never)}`);
  }
}
