// Shows live events as they arrive, for a person or (--json) for a program; after a lost connection it asks for what came
// after the last position it saw, and shows the gap where the service cannot tell.
import { fileURLToPath } from 'node:url';
import { io, type Socket } from 'socket.io-client';
import {
  type Client,
  connect,
  type Failure,
  failure,
  find,
  type Json,
  pause,
  readArguments,
  readPositive,
  renewToken,
  request,
  runScript,
} from './client.js';

/** One event as it came. */
export interface LiveEvent {
  event: string;
  data: Json;
  position: string | null;
}

/** What a listener remembers while it runs. */
interface Listener {
  client: Client;
  objects: string[];
  /** Own ids of objects by `_id`, for updates name only the latter. */
  names: Map<string, string>;
  counts: Map<string, number>;
  position: string | null;
  show(event: LiveEvent): void;
  end(error?: Failure): void;
}

const HELP = `npm run listen -- [--object <id>]

Prints live events as they arrive, until Ctrl-C. After a lost connection it goes on where it was; where the service cannot
tell what came meanwhile, it prints a gap. Events go to the standard output, everything else to the standard error.

  --object <id>        only this object (its own id, or its _id); may be given several times
  --json               one JSON line per event: {"event", "data", "position"}; with npm run --silent, nothing else
  --quiet              a count instead of the events
  --count <n>          end after n events`;

const HIDDEN = ['_id', '_ts', '_oid', '_gid', 'id', 'time'];
const ACK_TIMEOUT_MS = 10_000;
const COME_BACK_MS = 1000;
const OLD_MS = 60_000;

/** The `_id` of the object that an event is about. */
export function objectOf({ data }: LiveEvent): string {
  return String(data._oid ?? data.id ?? '');
}

/** One line for a person. `name` is the object's own id; `now` the local time of arrival. */
export function formatEvent(live: LiveEvent, name: string, now: Date): string {
  const { event, data } = live;
  if (event === 'object-packet') return `${clock(now)}  ${plain(name)}  ${formatPacket(data, now)}`;
  if (event === 'object-update') return `${clock(now)}  ${plain(name)}  ${formatUpdate(data)}`;
  if (event.startsWith('object-command-')) return `${clock(now)}  ${plain(name)}  ${formatCommand(data)}`;
  if (event === 'gap') return `${clock(now)}  gap: events before this moment are lost ${formatValue(data)}`;
  return `${clock(now)}  ${plain(event)}  ${formatValue(data)}`;
}

function formatPacket(packet: Json, now: Date): string {
  const shown = Object.entries(packet).filter(([key, value]) => !HIDDEN.includes(key) && !(key === 'online' && value));
  const parameters = shown.map(([key, value]) => `${plain(key)} ${formatValue(value)}`);
  const time = new Date(Number(packet.time));
  // A recording, or a device that was offline: the packet is older than its arrival.
  const old = Math.abs(now.getTime() - time.getTime()) > OLD_MS;
  return [...parameters, ...(old ? [`(${day(time)} ${clock(time)})`] : [])].join('  ');
}

function formatUpdate(data: Json): string {
  const before = (data.before ?? {}) as Json;
  const after = (data.after ?? {}) as Json;
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return fields.map((key) => `${plain(key)}: ${formatValue(before[key])} → ${formatValue(after[key])}`).join(', ');
}

function formatCommand(data: Json): string {
  const { command, params, status, result } = (data.command ?? {}) as Json;
  const answer = result === undefined ? '' : ` ${formatValue(result)}`;
  return `${plain(String(command))} ${formatValue(params)}: ${plain(String(status))}${answer}`;
}

function formatValue(value: unknown): string {
  return value === undefined ? 'none' : plain(JSON.stringify(value));
}

// What devices send must not steer the terminal.
function plain(text: string): string {
  return text.replace(/\p{Cc}/gu, '?');
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

function clock(time: Date): string {
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

function day(time: Date): string {
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
}

/** The last words: how many events came, per object. */
export function formatCounts(counts: Map<string, number>): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const lines = [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => `  ${plain(name)}: ${count}`);
  return [`${total} events`, ...lines].join('\n');
}

/** The line of `--json`. */
export function toJsonLine({ event, data, position }: LiveEvent): string {
  return JSON.stringify({ event, data, position });
}

function onEvent(listener: Listener, event: string, data: Json, meta?: Json): void {
  const position = typeof meta?.position === 'string' ? meta.position : null;
  listener.position = position ?? listener.position;
  const live = { event, data: data ?? {}, position };
  const object = objectOf(live);
  if (live.data._oid !== undefined) listener.names.set(object, String(live.data.id));
  // Between a reconnection and its subscription the server tells of every object.
  if (listener.objects.length > 0 && event.startsWith('object-') && !listener.objects.includes(object)) return;
  const name = listener.names.get(object) ?? (object || event);
  listener.counts.set(name, (listener.counts.get(name) ?? 0) + 1);
  listener.show(live);
}

async function subscribe(listener: Listener, socket: Socket): Promise<void> {
  if (listener.objects.length === 0) return;
  const answer = await socket.timeout(ACK_TIMEOUT_MS).emitWithAck('subscribe', { objects: listener.objects });
  if (answer?.success !== false) return;
  listener.end(failure(`The service refuses the subscription: ${answer.helper?.message ?? answer.message}`));
}

async function onRefused(listener: Listener, socket: Socket, message: string): Promise<void> {
  if (!/unauthorized|response: 401/i.test(message)) return;
  // The token may have expired while the connection was lost.
  if (!('login' in listener.client.credentials)) return listener.end(failure('The token is not accepted (any more)'));
  try {
    await renewToken(listener.client);
    await comeBack(listener, socket);
  } catch (error) {
    listener.end(error as Failure);
  }
}

async function comeBack(listener: Listener, socket: Socket): Promise<void> {
  await pause(COME_BACK_MS, listener.client.signal);
  if (listener.client.signal.aborted) return;
  setOptions(listener, socket);
  if (!socket.active) socket.connect();
}

function setOptions({ client, position }: Listener, socket: Socket): void {
  socket.io.opts.extraHeaders = { authorization: `Bearer ${client.token}` };
  socket.io.opts.query = position === null ? {} : { since: position };
}

function openSocket(listener: Listener): Socket {
  const { url } = listener.client;
  const socket = io(url, { transports: ['websocket'], autoConnect: false, reconnectionDelayMax: 10_000 });
  let told = '';
  socket.onAny((event: string, data: Json, meta?: Json) => onEvent(listener, event, data, meta));
  socket.on('connect', () => {
    told = '';
    console.error(`Connected to ${url}${listener.position ? ', going on where it was' : ''}`);
    // A connection that breaks meanwhile subscribes anew when it is back.
    subscribe(listener, socket).catch((error: Error) => console.error(`Subscription: ${error.message}`));
  });
  socket.on('disconnect', (reason) => {
    if (reason === 'io client disconnect') return;
    console.error(`Connection lost (${reason})`);
    // Socket.IO does not come back by itself when the server said goodbye.
    if (!socket.active) void comeBack(listener, socket);
  });
  socket.on('connect_error', (error) => {
    // Refused in the HTTP handshake, the reason is hidden deeper.
    const reason = (error as { description?: Error }).description?.message ?? error.message;
    if (reason !== told) console.error(`No connection: ${reason}`);
    told = reason;
    void onRefused(listener, socket, reason);
  });
  socket.io.on('reconnect_attempt', () => setOptions(listener, socket));
  setOptions(listener, socket);
  return socket.connect();
}

async function readNames(client: Client, ids: string[]): Promise<Map<string, string>> {
  // Without --object the names are a nicety: a caller may lack the right to list objects.
  const all = () => request(client, 'GET', '/api/v1/objects?only=id').catch(() => [] as unknown as Json);
  const one = async (id: string) => {
    const found = await find(client, `/api/v1/objects/${encodeURIComponent(id)}?only=id`);
    if (found === null) throw failure(`There is no object ${id}, or it is not for you to see`);
    return found;
  };
  const found = ids.length > 0 ? await Promise.all(ids.map(one)) : [await all()];
  return new Map(found.flat().map((object) => [String(object._id), String(object.id)]));
}

function toShow(args: { json?: boolean | undefined; quiet?: boolean | undefined }, names: Map<string, string>) {
  let count = 0;
  let told = 0;
  if (args.quiet) {
    return () => {
      count++;
      if (Date.now() - told < 100) return;
      told = Date.now();
      process.stderr.write(`\r${count} events`);
    };
  }
  if (args.json) return (live: LiveEvent) => console.log(toJsonLine(live));
  return (live: LiveEvent) => {
    const object = objectOf(live);
    console.log(formatEvent(live, names.get(object) ?? object, new Date()));
  };
}

async function main(signal: AbortSignal): Promise<number> {
  const flag = { type: 'boolean' } as const;
  const object = { type: 'string', multiple: true } as const;
  const args = readArguments({ object, json: flag, quiet: flag, count: { type: 'string' } }, HELP);
  const most = args.count === undefined ? Infinity : readPositive('count', args.count, 1);
  const client = await connect(args, signal);
  const names = await readNames(client, args.object ?? []);
  const showOne = toShow(args, names);
  const counts = new Map<string, number>();
  let shown = 0;
  await new Promise<void>((resolve, reject) => {
    const end = (error?: Failure) => {
      socket.disconnect();
      return error ? reject(error) : resolve();
    };
    const show = (live: LiveEvent) => {
      if (shown++ < most) showOne(live);
      if (shown >= most) end();
    };
    const objects = args.object ? [...names.keys()] : [];
    const listener: Listener = { client, objects, names, counts, position: null, show, end };
    const socket = openSocket(listener);
    if (signal.aborted) end();
    signal.addEventListener('abort', () => end());
  });
  console.error(`${args.quiet ? '\n' : ''}${formatCounts(counts)}`);
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runScript(main);
