/** One socket: who it is, what it hears, what it missed, when it ends. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Socket } from 'socket.io';
import type { Identify, Proof } from '../auth/identify.js';
import { toApiError } from '../errors.js';
import { addressesOf, audibleObjects, type Caller, type Scope, scopeOf } from '../model/access.js';
import { LIMITS } from '../model/limits.js';
import type { Returning } from './catchup.js';
import { EVERYTHING, type Narrowing, narrow, readNarrowing, roomsFor, roomsOf } from './rooms.js';

/** What the sockets of the service ask of it. */
export interface SocketOptions {
  readonly identify: Identify;
  /** The `_id`s of those of these objects (by `_id` or own id) that the scope sees. */
  readonly findObjects: (scope: Scope, keys: readonly string[]) => Promise<string[]>;
  readonly log: Logger;
  readonly now: () => number;
}

interface SocketData {
  proof: Proof;
  caller: Caller;
  narrowing: Narrowing;
  /** Where it may listen and wants to. */
  rooms: ReadonlySet<string>;
  /** Whether it listens there; not while it is told what it missed. */
  live: boolean;
  expiry: NodeJS.Timeout | undefined;
  /** The end of what is being done to the socket's rooms. */
  turn: Promise<unknown>;
}
export type LiveSocket = Socket<
  Record<string, (...args: unknown[]) => void>,
  Record<string, (...args: unknown[]) => void>,
  object,
  SocketData
>;

/** Who the socket is: by the headers of its handshake, or by the token that newer clients send as `auth`. */
export async function admit(options: SocketOptions, socket: LiveSocket): Promise<void> {
  const { headers, auth } = socket.handshake;
  const token = typeof auth?.token === 'string' ? `Bearer ${auth.token}` : undefined;
  const proof = { authorization: headers.authorization ?? token, cookie: headers.cookie };
  const caller = await options.identify(proof).catch((error: unknown) => {
    options.log.warn({ err: error }, 'a socket could not be identified');
    throw new Error(toApiError(error).status === 503 ? 'Service Unavailable' : 'Internal Server Error');
  });
  if (caller === null) throw new Error('Unauthorized');
  const live = sinceOf(socket) === null;
  const narrowing = EVERYTHING;
  socket.data = { proof, caller, narrowing, rooms: new Set(), live, expiry: undefined, turn: Promise.resolve() };
  await enter(options, socket, narrowing);
}

/** The position that a client comes back with: in the query, or as newer clients send what is theirs. */
function sinceOf({ handshake: { query, auth } }: LiveSocket): string | null {
  const since = query.since ?? auth?.since;
  return typeof since === 'string' && since !== '' ? since : null;
}

export function toReturning(socket: LiveSocket): Returning {
  const since = sinceOf(socket) ?? '';
  const { conn } = socket;
  let taken = true;
  conn.on('drain', () => {
    taken = true;
  });
  return {
    since,
    isGone: () => !socket.connected,
    wants: (event) => roomsFor(event).some((room) => socket.data.rooms.has(room)),
    tell({ name, payload, position }) {
      taken = false;
      socket.emit(name, payload, { position });
    },
    async drained() {
      const untilMs = performance.now() + LIMITS.slowMs;
      while (!taken && socket.connected && performance.now() < untilMs) await wait(LIMITS.historyWaitMs);
      if (!taken) end([socket]);
      return taken && socket.connected;
    },
    join() {
      socket.data.live = true;
      listenIn(socket);
    },
    end: () => end([socket]),
    gap: (reason) => void socket.emit('gap', { reason, from: since }),
  };
}

export function welcome(options: SocketOptions, socket: LiveSocket): void {
  const { userId } = socket.data.caller;
  options.log.info({ socket: socket.id, user: userId, protocol: socket.conn.protocol }, 'socket connected');
  expireIn(options, socket);
  socket.on('subscribe', (...args: unknown[]) => void subscribe(options, socket, args));
  socket.on('disconnect', (reason: unknown) => {
    clearTimeout(socket.data.expiry);
    options.log.info({ socket: socket.id, user: userId, reason }, 'socket disconnected');
  });
}

/** Narrows what a socket hears; the acknowledgement says which objects it got, or what was wrong. */
async function subscribe(options: SocketOptions, socket: LiveSocket, args: unknown[]): Promise<void> {
  const acknowledge = args.at(-1);
  const answer = typeof acknowledge === 'function' ? (acknowledge as (result: object) => void) : () => undefined;
  try {
    const wanted = readNarrowing(args[0]);
    const narrowing = await inTurn(socket, () => enter(options, socket, wanted));
    answer({ success: true, ...(narrowing.objects && { objects: narrowing.objects }) });
  } catch (error) {
    const { status, message } = toApiError(error);
    answer({ success: false, code: String(status), message });
  }
}

/** Puts the socket in the rooms of what it may hear and wants to; the rooms change in one turn. */
async function enter(options: SocketOptions, socket: LiveSocket, wanted: Narrowing): Promise<Narrowing> {
  const { caller } = socket.data;
  const scope = scopeOf(caller);
  const resolve = (keys: readonly string[] | null) => keys && options.findObjects(scope, keys);
  const audible = audibleObjects(caller);
  const permitted = await resolve(audible === 'all' ? null : audible);
  const narrowing = narrow({ objects: await resolve(wanted.objects), events: wanted.events }, permitted);
  socket.data.rooms = new Set([socket.id, ...roomsOf(addressesOf(scope), narrowing)]);
  socket.data.narrowing = wanted;
  if (socket.data.live) listenIn(socket);
  return narrowing;
}

function listenIn(socket: LiveSocket): void {
  const { rooms } = socket.data;
  for (const room of socket.rooms) if (!rooms.has(room)) void socket.leave(room);
  void socket.join([...rooms]);
}

/** One after the other: rooms of the rights of before must not come over those of now. */
function inTurn<T>(socket: LiveSocket, work: () => Promise<T>): Promise<T> {
  const done = socket.data.turn.then(work);
  socket.data.turn = done.catch(() => undefined);
  return done;
}

/** After a change of the user or the role: other rights, other rooms; or none, and the socket ends. */
export async function recheck(options: SocketOptions, socket: LiveSocket): Promise<void> {
  try {
    await inTurn(socket, async () => {
      const caller = await options.identify(socket.data.proof);
      if (caller === null) {
        end([socket]);
        return;
      }
      socket.data.caller = caller;
      await enter(options, socket, socket.data.narrowing);
    });
  } catch (error) {
    // What cannot be told now is asked anew when the client comes back.
    options.log.warn({ err: error, socket: socket.id }, 'a socket could not be rechecked');
    end([socket]);
  }
}

/** A socket ends with the session or the token that opened it. */
function expireIn(options: SocketOptions, socket: LiveSocket): void {
  const { session, token } = socket.data.caller;
  const leftMs = (session ?? token ?? { expiresAtMs: Number.POSITIVE_INFINITY }).expiresAtMs - options.now();
  if (leftMs <= 0) {
    end([socket]);
    return;
  }
  const stepMs = Math.min(leftMs, LIMITS.timerMs);
  socket.data.expiry = setTimeout(() => expireIn(options, socket), stepMs).unref();
}

export function end(sockets: readonly LiveSocket[]): void {
  for (const socket of sockets) socket.disconnect(true);
}
