/** One message of a device becomes stored packets, or the end of a command: the same for every way it came. */
import { isUtf8 } from 'node:buffer';
import { finishCommand } from '../db/commands.js';
import type { Database } from '../db/connect.js';
import { findPacketId } from '../db/devices.js';
import type { Ingest } from '../db/ingest.js';
import { readOutcome } from '../model/command.js';
import { LIMITS } from '../model/limits.js';
import type { Declarations } from '../model/model.js';
import { type Message, mayBeFormer, type PacketSource, readMessages } from '../model/packet.js';
import { type Digest, formerDigest, packetIdOf } from './packet-id.js';
import { readPublished } from './topics.js';

export interface ReceiveParts {
  readonly database: Database;
  readonly ingest: Ingest;
  /** Makes the `_id` of what comes without one. */
  readonly digest: Digest;
  /** See `findPacketUpgrade`. */
  readonly upgradedMs: number | null;
  readonly now: () => number;
}

export interface Received {
  readonly topic: string;
  readonly payload: Buffer;
  /** The identifier that the message is sent again with; null where it is sent once (QoS 0). */
  readonly messageId: number | null;
  /** Whether it may be one that came before: it says so, or the connection before it broke. */
  readonly isSuspect: boolean;
  /** Aborted when one before it could not be stored, and this one comes again after that one; null where none is waited for. */
  readonly signal: AbortSignal | null;
}

const BUCKET_MS = 3_600_000;

/**
 * Stores what a message says; resolves when it is durable. Throws a 400 for a message that makes no sense, 404 and 409
 * for an answer to a command that does not wait for one, 413, 503.
 */
export async function receive(
  parts: ReceiveParts,
  source: PacketSource,
  declared: Declarations,
  received: Received,
): Promise<void> {
  received.signal?.throwIfAborted();
  const nowMs = parts.now();
  const meant = readPublished(received.topic, received.payload, declared);
  if (meant.kind === 'packet') {
    const messages = readMessages(meant.body, declared, nowMs);
    if (declared.keepsLastMessage) keepMessage(messages, received);
    await store(parts, source, messages, received);
    return;
  }
  const outcome = readOutcome(meant.body);
  await finishCommand(parts.database, { objectId: source.objectId, commandId: meant.commandId }, outcome, nowMs);
}

/** The newest of the packets says which message it came with; bytes that are no text are told in base64. */
function keepMessage(messages: readonly Message[], { topic, payload }: Received): void {
  const timeOf = ({ timeMs }: Message): number => timeMs ?? Number.POSITIVE_INFINITY;
  const [first] = messages;
  if (first === undefined) return;
  const { parameters } = messages.reduce((newest, one) => (timeOf(one) >= timeOf(newest) ? one : newest), first);
  parameters.topic = topic;
  // It is stored beside what was read out of it: only what is small is worth that.
  if (payload.length > LIMITS.mqttLastMessageBytes) delete parameters.payload;
  else parameters.payload = payload.toString(isUtf8(payload) ? 'utf8' : 'base64');
}

/**
 * What is sent again is stored once: by the `_id` of the device's own; by its time and content; by the identifier of its
 * message and content. The database refuses what it has, so no two instances store it twice.
 */
async function store(
  parts: ReceiveParts,
  source: PacketSource,
  messages: readonly Message[],
  received: Received,
): Promise<void> {
  const { messageId, signal } = received;
  const isNamed = messages.every(({ id, timeMs }) => id !== null || timeMs !== null);
  const withIds = createNaming(parts, messages, contentOf(source, received, isNamed ? null : messageId), received);
  const hourMs = Math.floor(parts.now() / BUCKET_MS) * BUCKET_MS;
  if (isNamed || messageId === null) {
    await parts.ingest(source, withIds(hourMs), signal);
    return;
  }
  const unnamed = messages.findIndex(({ id, timeMs }) => id === null && timeMs === null);
  const like = withIds(hourMs)[unnamed] as Message;
  const storedMs = received.isSuspect ? await findBucket(parts.database, source, like, hourMs) : null;
  // One packet is stored or is not; of several, a part may be when the database was interrupted.
  if (storedMs !== null && messages.length === 1) return;
  const { repeated } = await parts.ingest(source, withIds(storedMs ?? hourMs), signal);
  // A device that counts its messages anew, or not at all, says the same again: that is another message.
  if (repeated > 0 && !received.isSuspect) await parts.ingest(source, messages, signal);
}

/** The messages with the `_id`s that they are stored with, given the hour of those that have no time of their own. */
function createNaming(
  { digest, upgradedMs }: ReceiveParts,
  messages: readonly Message[],
  content: Buffer,
  { messageId, isSuspect }: Received,
): (hourMs: number) => Message[] {
  // Without a time of its own, only what may be one that came before can be one that a former version stored.
  const isFormer = (message: Message): boolean =>
    upgradedMs !== null && mayBeFormer(message, upgradedMs) && (message.timeMs !== null || isSuspect);
  const present = digest(content);
  const former = messages.some(isFormer) ? formerDigest(content) : null;
  return (hourMs) =>
    messages.map((message, at) => {
      const { id, timeMs, online, parameters } = message;
      if (id !== null || (timeMs === null && messageId === null)) return message;
      const named = (digested: bigint): string => packetIdOf(timeMs ?? hourMs, digested + BigInt(at));
      const formerId = former !== null && isFormer(message) ? named(former) : null;
      return { id: named(present), formerId, timeMs, online, parameters };
    });
}

/** The hour in which a packet was stored, within the time that it may be sent again; null where it was not. */
async function findBucket(
  database: Database,
  source: PacketSource,
  { id, formerId }: Message,
  hourMs: number,
): Promise<number | null> {
  const hours = Math.ceil(LIMITS.mqttResendMs / BUCKET_MS);
  const ids = [id, formerId].flatMap((named) => {
    if (named === null) return [];
    const rest = BigInt(`0x${named.slice(8)}`);
    return Array.from({ length: hours + 1 }, (_, ago) => packetIdOf(hourMs - ago * BUCKET_MS, rest));
  });
  const found = await findPacketId(database, source.objectId, ids);
  return found === null ? null : Number.parseInt(found.slice(0, 8), 16) * 1_000;
}

function contentOf(source: PacketSource, { topic, payload }: Received, messageId: number | null): Buffer {
  return Buffer.concat([Buffer.from(`${source.objectId}\n${messageId ?? ''}\n${topic}\n`), payload]);
}
