/**
 * What must be true of webhooks: every message at least once, but not any more once it counts as delivered, in order for each object,
 * with the same id and the same bytes each time, and nothing after a right has ended. Of the rules of the service they know one: who sees
 * an object.
 */
import { packetIdIn } from '../../src/platform/mongo/bson/packet-key.js';
import type { Entry } from './database/oplog.js';
import type { SimulatedServer } from './database/server.js';
import { fail, objectOf, placesOf, type Sight, seesAny, seesFrom, sightsOf, toldFrom } from './oracles.js';
import type { Request } from './receivers.js';

/** A webhook that is there from the beginning to the end, for all events. */
export interface Handler {
  readonly name: string;
  readonly mode: 'object' | 'batch';
  /** Its owner. */
  readonly userId: string;
  /** The group that it belongs to: nothing else is sent, wherever its owner is. */
  readonly groupId: string;
}

export interface Sent {
  readonly handlers: readonly Handler[];
  /** All requests, and in which order they arrived. */
  readonly requests: readonly Request[];
  readonly arrived: readonly Request[];
  readonly objectIds: readonly string[];
  /** The history of some partition was gone: messages were made again of what is stored. */
  readonly hasRefilled: boolean;
}

/** One event in a request. */
interface Message {
  /** What it is about: the same for the same event. */
  readonly key: string;
  readonly type: string;
  readonly objectId: string;
  /** The entry of the oplog that it tells. */
  readonly index: number;
  /** Made of what is stored, because the history was gone. */
  readonly isRefilled: boolean;
  readonly request: Request;
}

interface EventBody {
  readonly type: string;
  readonly position?: string;
  /** A packet, or what an event says of the object `id`. */
  readonly data: { readonly _id: string; readonly id: string };
}

interface World {
  readonly server: SimulatedServer;
  readonly places: ReadonlyMap<string, number>;
  readonly packets: ReadonlyMap<string, number>;
  readonly hasRefilled: boolean;
}

export function checkWebhooks(server: SimulatedServer, sent: Sent): void {
  const { handlers, arrived, requests, objectIds, hasRefilled } = sent;
  const packets = new Map<string, number>();
  for (const [index, { collection, before, id }] of server.oplog.entries()) {
    if (collection === 'packets' && before === null) packets.set(packetIdIn(id as never), index);
  }
  const world = { server, places: placesOf(server.oplog), packets, hasRefilled };
  checkBytes(arrived);
  checkRows(server, requests);
  checkDelivered(server, requests);
  for (const handler of handlers) {
    const sights = sightsOf(server.oplog, handler.userId, objectIds);
    const messages = arrived
      .filter((request) => request.handler === handler.name)
      .flatMap((request) => messagesIn(world, request));
    checkIds(world, handler, messages);
    checkRights(world, messages, sights);
    checkOrder(world, handler, { messages, sights });
    checkComplete(world, handler, { messages, sights });
    checkOneByOne(handler, messages);
  }
}

function messagesIn(world: World, request: Request): Message[] {
  const body = JSON.parse(request.body);
  const events = body.type === 'batch' ? body.data : [body];
  return events.map((event: EventBody) => {
    const index = indexOf(world, request, event);
    const entry = world.server.oplog[index] as Entry;
    const objectId = objectOf(entry) ?? fail(`${request.handler} received ${event.type} of ${entry.collection}`);
    const isRefilled = event.position === undefined;
    return { key: `${event.type} ${index}`, type: event.type, objectId, index, isRefilled, request };
  });
}

function indexOf(
  { server, places, packets, hasRefilled }: World,
  { handler }: Request,
  { type, position, data }: EventBody,
): number {
  const id = type === 'object-packet' ? data._id : data.id;
  const what = `${handler} received ${type} ${id}`;
  if (position === undefined) {
    if (!hasRefilled) fail(`${what} without a position, though no history was lost`);
    return packets.get(id) ?? fail(`${what}, which is not stored`);
  }
  const index = places.get(position) ?? fail(`${what}, which no majority has`);
  const entry = server.oplog[index] as Entry;
  const wanted = entry.collection === 'packets' ? packetIdIn(entry.id as never) : objectOf(entry);
  if (wanted !== id) fail(`${what} at the position of ${wanted}`);
  return index;
}

/** What has the same id has the same bytes. */
function checkBytes(arrived: readonly Request[]): void {
  const bodies = new Map<string, string>();
  for (const { handler, id, body } of arrived) {
    const before = bodies.get(`${handler} ${id}`);
    if (before !== undefined && before !== body) fail(`${handler} received other bytes by the same id: ${body}`);
    bodies.set(`${handler} ${id}`, body);
  }
}

/** A repeated message has the id that it had. In a batch it may stand beside others the next time. */
function checkIds({ hasRefilled }: World, { name, mode }: Handler, messages: readonly Message[]): void {
  if (mode === 'batch' || hasRefilled) return;
  const ids = new Map<string, string>();
  for (const { key, request } of messages) {
    const before = ids.get(key);
    if (before !== undefined && before !== request.id) fail(`${name} received ${key} by two ids`);
    ids.set(key, request.id);
  }
}

/** From the look at the rights until it is sent, the owner sees the object at some moment. */
function checkRights(
  { places, server }: World,
  messages: readonly Message[],
  sights: ReadonlyMap<string, readonly Sight[]>,
) {
  for (const { key, type, objectId, index, isRefilled, request } of messages) {
    // The one event for those who lose an object is the last one.
    if (type === 'object-removed') continue;
    const known = places.get(request.applied) ?? 0;
    // What is made again of what is stored may be newer than what its instance knows of rights.
    const from = isRefilled ? known : Math.max(index, known);
    const told = Math.min(from, toldFrom(server.oplog[index] as Entry, from));
    if (!seesAny(sights.get(objectId) ?? [], told, Math.max(from, request.committed))) {
      fail(`${request.handler} received ${key} of an object that its owner did not see any more`);
    }
  }
}

interface Told {
  readonly messages: readonly Message[];
  readonly sights: ReadonlyMap<string, readonly Sight[]>;
}

/** The first of each comes in the order of the database, and only after the receiver has accepted the one before. */
function checkOrder({ hasRefilled }: World, { name, mode }: Handler, { messages, sights }: Told): void {
  if (hasRefilled) return;
  const last = new Map<string, Message>();
  const seen = new Set<string>();
  const accepted = new Set<string>();
  for (const message of messages) {
    const { key, index, objectId, request } = message;
    const line = mode === 'batch' ? '' : objectId;
    const before = last.get(line);
    if (!seen.has(key) && before !== undefined) {
      if (before.index > index) fail(`${name} received ${key} after ${before.key}`);
      const isGivenUp = !seesFrom(sights.get(before.objectId) ?? [], before.index);
      const isAccepted = accepted.has(before.key) || before.request === request;
      if (!isAccepted && !isGivenUp) fail(`${name} received ${key} before it had accepted ${before.key}`);
    }
    if (!seen.has(key)) last.set(line, message);
    seen.add(key);
    if (request.isAccepted) accepted.add(key);
  }
}

/** Every packet that the owner sees from then on was accepted. */
function checkComplete({ packets, server }: World, { name, userId, groupId }: Handler, { messages, sights }: Told) {
  const accepted = new Set(messages.filter(({ request }) => request.isAccepted).map(({ key }) => key));
  const awayTo = server.oplog.findLastIndex(
    ({ collection, id, after }) =>
      collection === 'users' && String(id) === userId && after !== null && String(after.group) !== groupId,
  );
  const isAway = server
    .committed('users')
    .some(({ _id, group }) => String(_id) === userId && String(group) !== groupId);
  if (isAway) return;
  const back = server.oplog.findIndex(
    ({ collection, id }, index) => index > awayTo && collection === 'users' && String(id) === userId,
  );
  for (const [id, index] of packets) {
    if (index >= server.majority || index <= Math.max(awayTo, back)) continue;
    const objectId = objectOf(server.oplog[index] as Entry) as string;
    if (seesFrom(sights.get(objectId) ?? [], index) && !accepted.has(`object-packet ${index}`)) {
      fail(`${name} did not receive packet ${id}`);
    }
  }
}

/** An instance sends what is of one object, or all of a webhook with batches, one after the other. */
function checkOneByOne({ name, mode }: Handler, messages: readonly Message[]): void {
  const running = new Map<string, Request>();
  for (const { objectId, request } of messages) {
    const line = `${request.sender?.name} ${mode === 'batch' ? '' : objectId}`;
    const before = running.get(line);
    if (before !== undefined && before !== request && (before.endedMs ?? Number.POSITIVE_INFINITY) > request.sentMs) {
      fail(`${name} received two requests about ${objectId} at the same time`);
    }
    running.set(line, request);
  }
}

/** What counts as delivered was accepted and stays so, and nothing that waits is removed. */
function checkRows({ oplog, majority }: SimulatedServer, requests: readonly Request[]): void {
  const accepted = new Set(requests.filter(({ isAccepted }) => isAccepted).map(({ id }) => id));
  for (const { collection, id, before, after } of oplog.slice(0, majority)) {
    if (collection !== 'deliveries') continue;
    if (before?.state === 'pending' && after === null) fail('a message was removed while it waited');
    if (before?.state === 'delivered' && after !== null && after.state !== 'delivered') fail('a message is sent again');
    const isAccepted =
      accepted.has(`msg_${id}`) || (typeof after?.batch === 'string' && accepted.has(`msg_${after.batch}`));
    if (after?.state === 'delivered' && !isAccepted)
      fail('a message counts as delivered that no receiver has accepted');
  }
}

/**
 * What a majority knows as delivered is not sent any more: not by the instance that has delivered it, nor by one that takes its partition
 * over afterwards. One that took it over before, while the former owner was sending, may send it again.
 */
function checkDelivered({ oplog }: SimulatedServer, requests: readonly Request[]): void {
  const delivered = new Map<string, { readonly index: number; readonly partition: number }>();
  const takeovers: { readonly index: number; readonly partition: unknown }[] = [];
  for (const [index, { collection, id, before, after }] of oplog.entries()) {
    const key = `msg_${id}`;
    if (collection === 'deliveries' && after?.state === 'delivered' && !delivered.has(key))
      delivered.set(key, { index, partition: after.partition });
    if (collection === 'partitions' && after?.epoch !== before?.epoch) takeovers.push({ index, partition: id });
  }
  /** How many entries a majority had when a sender sent what was accepted. */
  const acceptedFrom = new Map<string, number>();
  for (const { handler, id, committed, sender, isAccepted } of requests) {
    const done = delivered.get(id);
    const from = `${id} ${sender?.name}`;
    if (done !== undefined && done.index < committed) {
      const taken = takeovers.findLast((one) => one.partition === done.partition && one.index < committed);
      const takenAt = taken?.index ?? 0;
      if (takenAt > done.index || takenAt <= (acceptedFrom.get(from) ?? -1))
        fail(`${handler} was sent ${id} once more`);
    }
    if (isAccepted) acceptedFrom.set(from, committed);
  }
}
