/**
 * `vigil device`: a device for trials, which replays a recording or simulates a vehicle. An interrupted replay continues where it
 * stopped: each row has a fixed id, which the service stores once.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type AddedPackets, type NewPacket, VigilError } from '../client/client.js';
import { toNull } from '../client/stores.js';
import { PlainError, parsePositive } from '../program.js';
import { type Command, openClient, type Session, textOf } from './command.js';
import { connectMqtt, PACKETS_PER_MESSAGE } from './device-mqtt.js';
import { type Packet, parseRecording, storedCount, withIds } from './recording.js';
import { readText } from './text-file.js';
import { vehicleAt } from './vehicle.js';

/** Packets with the order and times of sending. */
interface Feed {
  readonly total: number;
  /** The count of packets that the service has stored already. */
  readonly stored: number;
  dueAt(index: number): number;
  packetAt(index: number): Packet;
}

/** The connection over which packets are sent. */
interface Sender {
  /** Resolves when the packets are stored, with those that are not stored whole; waits while the service is unavailable. */
  send(packets: readonly Packet[]): Promise<Pick<AddedPackets, 'refused' | 'incomplete'>>;
  stop(): Promise<void>;
}

// A longer timer would overflow and fire at once.
const MAX_TIMER_MS = 2 ** 31 - 1;
const PACKETS_PER_REQUEST = 500;

const device: Command = {
  name: 'device',
  usage: '<object>',
  summary: 'Sends packets of an object as a device does: those of a simulated vehicle, or a recording',
  help: `  --name <text>        the name of the object, which is created if it does not exist (default: its id)
  --file <csv>         a recording. Its first column is "time", as devices send it (ms, s, or ISO 8601); the others are parameters.
                       An interrupted replay continues when the same command is given again
  --speed <factor>     60 is sixty times faster (default 1); max is as fast as the service acknowledges
  --batch <n>          at most n packets in one request (default ${PACKETS_PER_REQUEST}), or in one message (at most ${PACKETS_PER_MESSAGE})
  --mqtt <address>     sends over MQTT, such as mqtt://127.0.0.1:1883; also carries out every command, and answers it
  Without --file, it sends one packet a second until Ctrl-C.`,
  options: {
    name: { type: 'string' },
    file: { type: 'string' },
    speed: { type: 'string' },
    batch: { type: 'string' },
    mqtt: { type: 'string' },
  },
  needsLogin: true,
  arguments: [1, 1],
  async run(session, values, [id = '']) {
    const { output, signal } = session;
    const speedText = textOf(values, 'speed');
    const speed = speedText === 'max' ? Number.POSITIVE_INFINITY : parsePositive('speed', speedText, 1);
    const batch = Math.ceil(parsePositive('batch', textOf(values, 'batch'), PACKETS_PER_REQUEST));
    const file = textOf(values, 'file');
    const rows = file === undefined ? null : parseRecording(await readText(file));
    const objectId = await findOrCreateObject(session, id, textOf(values, 'name') ?? id);
    const feed = rows === null ? createSimulation(speed) : await createReplay(session, { objectId, rows, speed });
    const address = textOf(values, 'mqtt');
    const sender = await openSender(session, objectId, address);
    const most = address === undefined ? batch : Math.min(batch, PACKETS_PER_MESSAGE);
    const startedMs = performance.now();
    const { sent, done, requestMs } = await sendFeed(session, { sender, feed, batch: most }).finally(() =>
      sender.stop(),
    );
    output.say(summarize(sent, performance.now() - startedMs, requestMs));
    if (rows === null || done >= feed.total) return;
    output.say(`Stopped after ${done} of ${feed.total} packets. The same command continues from there.`);
    signal.throwIfAborted();
  },
};

async function findOrCreateObject({ client, output, signal }: Session, id: string, name: string): Promise<string> {
  const only = ['_id'] as const;
  const found = await client.objects.find(id, { only, signal });
  if (found !== null) return found._id;
  try {
    const { _id } = await client.objects.create({ id, name }, { signal });
    output.say(`Created the object ${id} (${_id})`);
    return _id;
  } catch (error) {
    // Another device of this object may have created it first.
    const isTaken = error instanceof VigilError && error.status === 409;
    const other = isTaken ? await client.objects.find(id, { only, signal }) : null;
    if (other === null) throw error;
    return other._id;
  }
}

async function openSender(session: Session, objectId: string, address: string | undefined): Promise<Sender> {
  const { output, signal } = session;
  if (address !== undefined) {
    return connectMqtt({ address, objectId, token: session.token ?? '', output, signal });
  }
  // A device continues after any outage of the service.
  const client = openClient(session, Number.POSITIVE_INFINITY);
  return {
    send: (packets) => client.objects.addPackets(objectId, packets as readonly NewPacket[], { signal }),
    stop: async () => undefined,
  };
}

interface Sending {
  readonly sender: Sender;
  readonly feed: Feed;
  /** The maximum number of packets that are sent together. */
  readonly batch: number;
}

async function sendFeed({ output, signal }: Session, { sender, feed, batch }: Sending) {
  const requestMs: number[] = [];
  // The previous run may have been interrupted during a request; rows that it stored are not stored again.
  let next = Math.max(0, feed.stored - batch);
  while (next < feed.total && !signal.aborted) {
    let end = next;
    while (end < feed.total && end - next < batch && (end < feed.stored || feed.dueAt(end) <= Date.now())) end++;
    if (end === next) {
      await delay(Math.min(feed.dueAt(next) - Date.now(), MAX_TIMER_MS), undefined, { signal }).catch(() => undefined);
      continue;
    }
    const first = next;
    const packets = Array.from({ length: end - first }, (_, index) => feed.packetAt(first + index));
    const startedMs = performance.now();
    try {
      const { refused, incomplete } = await sender.send(packets);
      for (const { index, reason } of refused) output.say(`Packet ${first + index + 1} is not stored: ${reason}`);
      for (const { index, reason } of incomplete)
        output.say(`Packet ${first + index + 1} is stored without some fields: ${reason}`);
    } catch (error) {
      if (signal.aborted) break;
      throw new PlainError(`Packets ${first + 1} to ${end}: ${(error as Error).message}`);
    }
    requestMs.push(performance.now() - startedMs);
    next = end;
    output.progress(feed.total === Number.POSITIVE_INFINITY ? `${next} packets` : `${next} of ${feed.total} packets`);
  }
  return { sent: Math.max(0, next - feed.stored), done: Math.max(next, feed.stored), requestMs };
}

function createSimulation(speed: number): Feed {
  const startMs = Date.now();
  const dueAt = (index: number) => startMs + (index * 1000) / speed;
  // Not the current time: after an outage of the service the vehicle sends the packets that it recorded meanwhile.
  const timeAt = (index: number) => (speed === Number.POSITIVE_INFINITY ? Date.now() : Math.round(dueAt(index)));
  return {
    total: Number.POSITIVE_INFINITY,
    stored: 0,
    dueAt,
    packetAt: (index) => ({ _id: randomBytes(12).toString('hex'), time: timeAt(index), ...vehicleAt(index) }),
  };
}

interface Replay {
  readonly objectId: string;
  readonly rows: readonly Packet[];
  readonly speed: number;
}

async function createReplay({ client, output, signal }: Session, { objectId, rows, speed }: Replay): Promise<Feed> {
  const packets = withIds(objectId, rows);
  const packetAt = (index: number) => packets[index] as Packet;
  const isStored = async (index: number) => {
    const packetId = String(packetAt(index)._id);
    return (await client.objects.packet(objectId, packetId, { signal }).catch(toNull)) !== null;
  };
  const stored = await storedCount(packets.length, isStored);
  if (stored > 0) output.say(`${stored} of ${packets.length} packets are stored already`);
  const offsetMs = Date.now() - Number(packets[stored]?.time) / speed;
  const dueAt = (index: number) => offsetMs + Number(packetAt(index).time) / speed;
  return { total: packets.length, stored, dueAt, packetAt };
}

/** Summarizes how fast packets were acknowledged. */
export function summarize(packets: number, milliseconds: number, requestMs: number[]): string {
  const sorted = requestMs.toSorted((a, b) => a - b);
  const percentile = (share: number) => (sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(1);
  const seconds = Math.max(milliseconds, 1) / 1000;
  const rate = `${packets} packets in ${seconds.toFixed(1)} s: ${(packets / seconds).toFixed(1)} packets/s`;
  return `${rate}; ${sorted.length} requests, acknowledged in p50 ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms`;
}

export const DEVICE_COMMANDS: readonly Command[] = [device];
