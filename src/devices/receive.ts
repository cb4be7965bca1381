/** Stores a device's message as packets or as the result of a command, for the broker and the bridge. */
import { isUtf8 } from 'node:buffer';
import { finishCommand } from '../commands/command-store.js';
import { parseOutcome } from '../core/command.js';
import { LIMITS } from '../core/limits.js';
import type { Declarations } from '../core/model.js';
import { identifyingMs } from '../packets/device-time.js';
import type { Ingest } from '../packets/ingest.js';
import type { InsertOrder } from '../packets/insert-order.js';
import {
  type Batch,
  inOrder,
  type Message,
  type PacketSource,
  parseBatch,
  parseInTurns,
  type Refusal,
  refusalError,
  takesTurns,
  withoutRefused,
} from '../packets/packet.js';
import { othersStored } from '../packets/reasons.js';
import type { RefusedPackets } from '../packets/refused-packets.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { type Digest, packetIdOf } from './dedup-id.js';
import { findPacketId } from './devices.js';
import { parseMessage } from './topics.js';

export interface ReceiveDeps {
  readonly database: Database;
  readonly ingest: Ingest;
  /** Of messages that are parsed in turns, and of those behind them. */
  readonly parsing: InsertOrder;
  /** Derives the `_id` of packets without one. */
  readonly digest: Digest;
  /** Keeps why fields are left out. */
  readonly refusedPackets: Pick<RefusedPackets, 'record'>;
  readonly now: () => number;
}

export interface Received {
  readonly topic: string;
  readonly payload: Buffer;
  /** The packet identifier, which a resent message has again; null for QoS 0. */
  readonly messageId: number | null;
  /** Whether the message may be resent: it has the DUP flag, or continues the session of a lost connection. */
  readonly maybeDuplicate: boolean;
  /** Aborted when an earlier message could not be stored: the device resends both, in order. Null for QoS 0. */
  readonly signal: AbortSignal | null;
}

const BUCKET_MS = 3_600_000;

/**
 * Stores a message; resolves when it is durable. Throws 400 for an invalid message, 404 and 409 for a result of a command that
 * expects none, 413, 503. If packets of an array cannot be stored, it stores all others, and throws a 400 then.
 * Fields that cannot be stored are only kept with the refused packets of the object.
 */
export async function receive(
  deps: ReceiveDeps,
  source: PacketSource,
  declared: Declarations,
  received: Received,
): Promise<void> {
  received.signal?.throwIfAborted();
  const nowMs = deps.now();
  const parsed = parseMessage(received.topic, received.payload, declared);
  if (parsed.kind === 'packet') {
    const { messages, refused, incomplete } = await parseInOrder(deps, source, { body: parsed.body, declared, nowMs });
    if (declared.keepsLastMessage) keepMessage(messages, received);
    const tooLarge = await store(deps, source, messages, received);
    const partial = withoutRefused(incomplete, tooLarge).map((one) => ({ ...one, reason: othersStored(one.reason) }));
    const all = inOrder(refused.concat(tooLarge, partial));
    if (all.length > partial.length) throw refusalError(all, messages.length - tooLarge.length);
    const common = { time: nowMs, via: 'mqtt', topic: received.topic } as const;
    const isList = Array.isArray(parsed.body);
    deps.refusedPackets.record(
      source.objectId,
      partial.map(({ index, reason }) => ({ ...common, index: isList ? index : null, reason })),
    );
    return;
  }
  const outcome = parseOutcome(parsed.body);
  await finishCommand(deps.database, { objectId: source.objectId, commandId: parsed.commandId }, outcome, nowMs);
}

interface Parsing {
  readonly body: unknown;
  readonly declared: Declarations;
  readonly nowMs: number;
}

/** Parses after the messages of the same object that came before. */
function parseInOrder(
  { parsing }: ReceiveDeps,
  { objectId }: PacketSource,
  { body, declared, nowMs }: Parsing,
): Batch | Promise<Batch> {
  if (!takesTurns(body, declared) && !parsing.hasPending(objectId)) return parseBatch(body, declared, nowMs);
  return parsing.after(objectId, async () => parseInTurns(body, declared, nowMs));
}

/** Adds the topic and the payload to the newest packet; a binary payload is encoded in base64. */
function keepMessage(messages: readonly Message[], { topic, payload }: Received): void {
  const timeOf = ({ timeMs }: Message): number => timeMs ?? Number.POSITIVE_INFINITY;
  const [first] = messages;
  if (first === undefined) return;
  const { parameters } = messages.reduce((newest, one) => (timeOf(one) >= timeOf(newest) ? one : newest), first);
  parameters.topic = topic;
  // The payload duplicates the parsed values, so only small ones are stored.
  if (payload.length > LIMITS.mqttLastMessageBytes) delete parameters.payload;
  else parameters.payload = payload.toString(isUtf8(payload) ? 'utf8' : 'base64');
}

/**
 * Stores a resent message once, and returns what is too large. Each of its packets is identified by the device's own `_id`, by time
 * and content, or by packet identifier and content. The database refuses a duplicate `_id`, also from another instance.
 */
async function store(
  deps: ReceiveDeps,
  source: PacketSource,
  messages: readonly Message[],
  received: Received,
): Promise<readonly Refusal[]> {
  const { messageId, signal, maybeDuplicate } = received;
  const nowMs = deps.now();
  const hourMs = Math.floor(nowMs / BUCKET_MS) * BUCKET_MS;
  const timeOf = (message: Message): number | null => (message.id === null ? identifyingMs(message, nowMs) : null);
  const isUnnamed = (message: Message): boolean => message.id === null && timeOf(message) === null;
  const isTimed = messages.some((message) => timeOf(message) !== null);
  const timed = isTimed ? assignIds(messages, timeOf, digestOf(deps, source, received, null)) : messages;
  const unnamed = messageId === null ? undefined : timed.find(isUnnamed);
  if (unnamed === undefined) return (await deps.ingest(source, timed, { signal })).refused;
  const digest = digestOf(deps, source, received, messageId);
  const sample = digest + BigInt(unnamed.index ?? 0);
  const storedMs = maybeDuplicate ? await findBucket(deps.database, source, sample, hourMs) : null;
  // Of several packets, an interrupted write may have stored only a part.
  if (storedMs !== null && messages.length === 1) return [];
  const untimedMs = storedMs ?? hourMs;
  const named = assignIds(timed, (message) => (isUnnamed(message) ? untimedMs : null), digest);
  const { repeated, refused } = await deps.ingest(source, named, { signal });
  if (maybeDuplicate) return refused;
  // A device may reuse a packet identifier for a new message with the same content.
  const reused = timed.filter((message, at) => isUnnamed(message) && repeated.has(named[at]?.id ?? ''));
  await deps.ingest(source, reused, { signal });
  return refused;
}

/** Assigns the `_id`s of the messages that have such a time. */
function assignIds(
  messages: readonly Message[],
  timeOf: (message: Message) => number | null,
  digest: bigint,
): readonly Message[] {
  return messages.map((message) => {
    const timeMs = timeOf(message);
    // By the place in the message: what of it can be stored may be more when it is sent again.
    return timeMs === null ? message : { ...message, id: packetIdOf(timeMs, digest + BigInt(message.index ?? 0)) };
  });
}

/** Finds the hour in which a packet was stored, within the time in which devices resend; null if it was not stored. */
async function findBucket(
  database: Database,
  source: PacketSource,
  digest: bigint,
  hourMs: number,
): Promise<number | null> {
  const hours = Math.ceil(LIMITS.mqttResendMs / BUCKET_MS);
  const ids = Array.from({ length: hours + 1 }, (_, ago) => packetIdOf(hourMs - ago * BUCKET_MS, digest));
  const found = await findPacketId(database, source.objectId, ids);
  return found === null ? null : Number.parseInt(found.slice(0, 8), 16) * 1_000;
}

function digestOf(
  { digest }: ReceiveDeps,
  { objectId }: PacketSource,
  { topic, payload }: Received,
  messageId: number | null,
): bigint {
  return digest(Buffer.from(`${objectId}\n${messageId ?? ''}\n${topic}\n`), payload);
}
