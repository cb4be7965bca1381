// Prints live events as they arrive, as text or (--json) as JSON. After a lost connection it resumes from the last position, and
// prints a gap if the service cannot replay the missed events.
import { fileURLToPath } from 'node:url';
import { io, type Socket } from 'socket.io-client';
import {
  type Client,
  connect,
  type Failure,
  failure,
  find,
  type Json,
  parseArguments,
  parsePositive,
  pause,
  renewToken,
  request,
  runScript,
} from './client.js';
import { formatCounts, formatEvent, objectOf } from './event-text.js';
import { createForwarder, type Forwarder } from './forward.js';

/** One event as it arrived. */
export interface LiveEvent {
  event: string;
  data: Json;
  position: string | null;
}

/** The state of a running listener. */
interface Listener {
  client: Client;
  objects: string[];
  /** Own ids of objects by `_id`: updates contain only the `_id`. */
  names: Map<string, string>;
  counts: Map<string, number>;
  position: string | null;
  show(event: LiveEvent): void;
  end(error?: Failure): void;
}

const HELP = `npm run listen -- [--object <id>] [--forward <address>]

Prints live events as they arrive, until Ctrl-C. After a lost connection it resumes where it stopped, or prints a gap if the
missed events cannot be replayed. Events go to the standard output, everything else to the standard error.

  --object <id>        only this object (its own id, or its _id); may be given several times
  --json               one JSON line per event: {"event", "data", "position"}; with npm run --silent, nothing else
  --quiet              a count instead of the events
  --count <n>          ends after n events
  --forward <address>  also sends each event to this address, for example http://localhost:3000, as Vigil would call a webhook:
                       signed with WEBHOOK_SECRET, or with a secret that it prints. A message that fails is sent three times`;

const ACK_TIMEOUT_MS = 10_000;
const RECONNECT_MS = 1000;

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
  // After a reconnection, events of all objects arrive until the subscription is answered.
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

async function onConnectError(listener: Listener, socket: Socket, message: string): Promise<void> {
  if (!/unauthorized|response: 401/i.test(message)) return;
  // The token may have expired while the connection was lost.
  if (!('login' in listener.client.credentials)) return listener.end(failure('The token is invalid or has expired'));
  try {
    await renewToken(listener.client);
    await reconnect(listener, socket);
  } catch (error) {
    listener.end(error as Failure);
  }
}

async function reconnect(listener: Listener, socket: Socket): Promise<void> {
  await pause(RECONNECT_MS, listener.client.signal);
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
  let reported = '';
  socket.onAny((event: string, data: Json, meta?: Json) => onEvent(listener, event, data, meta));
  socket.on('connect', () => {
    reported = '';
    console.error(`Connected to ${url}${listener.position ? ', resuming from the last position' : ''}`);
    // If the connection breaks meanwhile, it subscribes again after reconnecting.
    subscribe(listener, socket).catch((error: Error) => console.error(`Subscription: ${error.message}`));
  });
  socket.on('disconnect', (reason) => {
    if (reason === 'io client disconnect') return;
    console.error(`Connection lost (${reason})`);
    // Socket.IO does not reconnect by itself after the server has disconnected it.
    if (!socket.active) void reconnect(listener, socket);
  });
  socket.on('connect_error', (error) => {
    // For a handshake that was refused over HTTP, the reason is in the description.
    const reason = (error as { description?: Error }).description?.message ?? error.message;
    if (reason !== reported) console.error(`No connection: ${reason}`);
    reported = reason;
    void onConnectError(listener, socket, reason);
  });
  socket.io.on('reconnect_attempt', () => setOptions(listener, socket));
  setOptions(listener, socket);
  return socket.connect();
}

async function findNames(client: Client, ids: string[]): Promise<Map<string, string>> {
  // Without --object the names are optional: the caller may not be allowed to list objects.
  const all = () => request(client, 'GET', '/api/v1/objects?only=id').catch(() => [] as unknown as Json);
  const one = async (id: string) => {
    const found = await find(client, `/api/v1/objects/${encodeURIComponent(id)}?only=id`);
    if (found === null) throw failure(`There is no object ${id}, or you do not see it`);
    return found;
  };
  const found = ids.length > 0 ? await Promise.all(ids.map(one)) : [await all()];
  return new Map(found.flat().map((object) => [String(object._id), String(object.id)]));
}

function toShow(args: { json?: boolean | undefined; quiet?: boolean | undefined }, names: Map<string, string>) {
  let count = 0;
  let printedMs = 0;
  if (args.quiet) {
    return () => {
      count++;
      if (Date.now() - printedMs < 100) return;
      printedMs = Date.now();
      process.stderr.write(`\r${count} events`);
    };
  }
  if (args.json) return (live: LiveEvent) => console.log(toJsonLine(live));
  return (live: LiveEvent) => {
    const object = objectOf(live);
    console.log(formatEvent(live, names.get(object) ?? object, new Date()));
  };
}

function startForwarding(to: string): Forwarder {
  const given = process.env.WEBHOOK_SECRET;
  const forwarder = createForwarder(to, given, (text) => console.error(`→ ${text}`));
  console.error(`Forwarding to ${to}`);
  if (!given) console.error(`The receiver verifies with WEBHOOK_SECRET=${forwarder.secret}`);
  return forwarder;
}

async function main(signal: AbortSignal): Promise<number> {
  const flag = { type: 'boolean' } as const;
  const object = { type: 'string', multiple: true } as const;
  const text = { type: 'string' } as const;
  const args = parseArguments({ object, json: flag, quiet: flag, count: text, forward: text }, HELP);
  const maxEvents = args.count === undefined ? Infinity : parsePositive('count', args.count, 1);
  const client = await connect(args, signal);
  const names = await findNames(client, args.object ?? []);
  const showOne = toShow(args, names);
  const forwarder = args.forward === undefined ? null : startForwarding(args.forward);
  const counts = new Map<string, number>();
  let shown = 0;
  await new Promise<void>((resolve, reject) => {
    const end = (error?: Failure) => {
      socket.disconnect();
      return error ? reject(error) : resolve();
    };
    const show = (live: LiveEvent) => {
      if (shown++ < maxEvents) {
        showOne(live);
        if (live.event.startsWith('object-')) forwarder?.forward(live);
      }
      if (shown >= maxEvents) end();
    };
    const objects = args.object ? [...names.keys()] : [];
    const listener: Listener = { client, objects, names, counts, position: null, show, end };
    const socket = openSocket(listener);
    if (signal.aborted) end();
    signal.addEventListener('abort', () => end());
  });
  if (!signal.aborted) await forwarder?.idle();
  console.error(`${args.quiet ? '\n' : ''}${formatCounts(counts)}`);
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runScript(main);
