// Measures what a flood of messages to the webhooks of one tenant costs another tenant: how long its own webhook and its live client wait
// for a packet, before, during and after the flood.
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { io } from 'socket.io-client';
import { LOGIN } from './data.js';
import { addTenant, call, create, logIn } from './neighbours/stage.js';
import { readCpuMs } from './process.js';
import { type Place, type RunningServer, startServer } from './servers.js';
import { format, percentile } from './stats.js';
import { type Receivers, startReceivers } from './webhooks.js';
import { nowMs } from './workloads.js';

export interface FloodBench {
  readonly place: Place;
  /** How long an interval is. */
  readonly seconds: number;
  /** Multiplies the packets of the flood. */
  readonly scale: number;
  readonly mongodProcessId: number;
  readonly say: (text: string) => void;
}

/** How long an interval is unless the command line says it. */
export const FLOOD_SECONDS = 5;
const INTERVALS = { alone: 2, beside: 10 };
/** As many as a tenant may have, but for one. */
const WEBHOOKS = 99;
const OBJECTS = 100;
const PACKETS = 20_000;
const PACKETS_PER_POST = 100;
const PAUSE_MS = 100;
const HEAD = [
  '| Flood | webhook p50 ms | p99 ms | live p50 ms | p99 ms | not received | messages/s of the flood | CPU, of mongod |',
  '|---|---:|---:|---:|---:|---:|---:|---:|',
];

/** The lines of the results as a Markdown table. */
export async function measureFlood(bench: FloodBench): Promise<string> {
  const receivers = await startReceivers();
  const server = await startServer('ours', bench.place);
  try {
    return await measureWith(bench, server, receivers);
  } finally {
    await server.stop();
    receivers.stop();
  }
}

async function measureWith(bench: FloodBench, server: RunningServer, receivers: Receivers): Promise<string> {
  const { url, processId } = server;
  const admin = await logIn(url, LOGIN);
  const neighbour = await addTenant(url, admin, 'neighbour');
  const { token } = await addTenant(url, admin, 'flood');
  await create(url, neighbour.token, 'handlers', { url: `${receivers.url}/neighbour`, events: ['object-packet'] });
  const lines = [...HEAD];
  const client = await startNeighbour(url, neighbour);
  const measureOne = async (title: string): Promise<void> => {
    const row = await measureInterval(bench, { receivers, client, processId });
    const line = `| ${title} | ${row} |`;
    bench.say(line);
    lines.push(line);
  };
  for (let nth = 0; nth < INTERVALS.alone; nth++) await measureOne('none yet');
  const objects = await prepareFlood(url, token, receivers);
  const startMs = performance.now();
  let stored = '';
  const flood = postFlood({ url, token, objects, packets: Math.round(PACKETS * bench.scale) }).then(() => {
    stored = `stored after ${format((performance.now() - startMs) / 1_000)} s, `;
  });
  for (let nth = 0; nth < INTERVALS.beside; nth++) {
    const fromS = (performance.now() - startMs) / 1_000;
    await measureOne(`${stored}from ${format(fromS)} s`);
  }
  await Promise.all([flood, client.stop()]);
  return lines.join('\n');
}

interface Neighbour {
  /** How long each event took that the live client received since the last call, ms. */
  take(): { readonly live: readonly number[]; readonly sent: number };
  stop(): Promise<void>;
}

/** Stores a packet every `PAUSE_MS`, and receives it as a live event. */
async function startNeighbour(url: string, { token, objectId }: { token: string; objectId: string }) {
  const extraHeaders = { authorization: `Bearer ${token}` };
  const socket = io(url, { transports: ['websocket'], extraHeaders, reconnection: false, forceNew: true });
  await once(socket as unknown as NodeJS.EventEmitter, 'connect');
  let live: number[] = [];
  let sent = 0;
  socket.on('object-packet', ({ sentMs }: { sentMs: number }) => live.push(nowMs() - sentMs));
  let isRunning = true;
  const posting = (async () => {
    for (; isRunning; await wait(PAUSE_MS)) {
      await call(url, token, 'POST', `objects/${objectId}/packets`, { sentMs: nowMs() });
      sent++;
    }
  })();
  return {
    take() {
      const taken = { live, sent };
      live = [];
      sent = 0;
      return taken;
    },
    async stop() {
      isRunning = false;
      await posting;
      socket.disconnect();
    },
  } satisfies Neighbour;
}

async function measureInterval(
  { seconds, mongodProcessId }: FloodBench,
  { receivers, client, processId }: { receivers: Receivers; client: Neighbour; processId: number },
): Promise<string> {
  const processIds = [processId, mongodProcessId];
  client.take();
  await receivers.ask('begin', '/neighbour');
  const before = processIds.map(readCpuMs);
  await wait(seconds * 1_000);
  const used = processIds.map((id, at) => (readCpuMs(id) - (before[at] as number)) / (10 * seconds));
  const { live, sent } = client.take();
  const webhook = await receivers.ask('end', '/neighbour');
  const flood = await receivers.ask('end', '/flood');
  return [
    format(webhook.p50),
    format(webhook.p99),
    format(percentile(live, 0.5)),
    format(percentile(live, 0.99)),
    `${sent - webhook.count}, ${sent - live.length} of ${sent}`,
    format(flood.count / flood.seconds),
    used.map((percent) => `${Math.round(percent)} %`).join(', '),
  ].join(' | ');
}

async function prepareFlood(url: string, token: string, receivers: Receivers): Promise<readonly string[]> {
  const objects: string[] = [];
  for (let nth = 0; nth < OBJECTS; nth++) {
    objects.push(await create(url, token, 'objects', { id: `flood-object-${nth}`, name: 'x' }));
  }
  for (let nth = 0; nth < WEBHOOKS; nth++) {
    await create(url, token, 'handlers', { url: `${receivers.url}/flood${nth}`, events: ['object-packet'] });
  }
  return objects;
}

async function postFlood({
  url,
  token,
  objects,
  packets,
}: {
  url: string;
  token: string;
  objects: readonly string[];
  packets: number;
}): Promise<void> {
  for (let nth = 0; nth < packets / PACKETS_PER_POST; nth++) {
    const body = Array.from({ length: PACKETS_PER_POST }, (_, at) => ({ speed: at, fuel: 50, sentMs: nowMs() }));
    await call(url, token, 'POST', `objects/${objects[nth % OBJECTS]}/packets`, body);
  }
}
