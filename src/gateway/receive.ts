/** One message of a device becomes stored packets, or the end of a command: the same for every way it came. */
import { isUtf8 } from 'node:buffer';
import { finishCommand } from '../db/commands.js';
import type { Database } from '../db/connect.js';
import { findPacketId } from '../db/devices.js';
import type { Ingest } from '../db/ingest.js';
import { readOutcome } from '../model/command.js';
import { LIMITS } from '../model/limits.js';
import type { Declarations } from '../model/model.js';
import { type Message, type PacketSource, readMessages } from '../model/packet.js';
import { digest, packetIdOf } from './packet-id.js';
import { readPublished } from './topics.js';

export interface ReceiveParts {
  readonly database: Database;
  readonly ingest: Ingest;
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
  const content = digestOf(source, received, isNamed ? null : messageId);
  const hourMs = Math.floor(parts.now() / BUCKET_MS) * BUCKET_MS;
  const withIds = (bucketMs: number): Message[] =>
    messages.map((message, at) => ({ ...message, id: idOf(message, content + BigInt(at), messageId, bucketMs) }));
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

/** The hour in which a packet was stored, within the time that it may be sent again; null where it was not. */
async function findBucket(
  database: Database,
  source: PacketSource,
  like: Message,
  hourMs: number,
): Promise<number | null> {
  const hours = Math.ceil(LIMITS.mqttResendMs / BUCKET_MS);
  const rest = BigInt(`0x${(like.id as string).slice(8)}`);
  const ids = Array.from({ length: hours + 1 }, (_, ago) => packetIdOf(hourMs - ago * BUCKET_MS, rest));
  const found = await findPacketId(database, source.objectId, ids);
  return found === null ? null : Number.parseInt(found.slice(0, 8), 16) * 1_000;
}

function idOf(message: Message, content: bigint, messageId: number | null, bucketMs: number): string | null {
  if (message.id !== null) return message.id;
  if (message.timeMs === null && messageId === null) return null;
  return packetIdOf(message.timeMs ?? bucketMs, content);
}

function digestOf(source: PacketSource, { topic, payload }: Received, messageId: number | null): bigint {
  return digest(Buffer.concat([Buffer.from(`${source.objectId}\n${messageId ?? ''}\n${topic}\n`), payload]));
}
