/** Who listens: let in by what they prove, put in the rooms of what they may hear, and ended with what let them in. */
import type { Logger } from 'pino';
import type { Identify } from '../auth/identify.js';
import { type ApiError, tooManyRequests, unauthorized, unavailable } from '../errors.js';
import { addressesOf, audibleObjects, type Caller, type Scope, scopeOf } from '../model/access.js';
import type { Change } from '../model/change.js';
import type { ListenRequest, Narrowing, Sink } from '../model/feed.js';
import { LIMITS } from '../model/limits.js';
import { networkOf } from '../model/network.js';
import { createMember, type FanOut, type Member } from './fanout.js';
import { narrow, roomsOf } from './rooms.js';

export interface ListenerOptions {
  readonly identify: Identify;
  /** The `_id`s of those of these objects (by `_id` or own id) that the scope sees. */
  readonly findObjects: (scope: Scope, keys: readonly string[]) => Promise<string[]>;
  /** How many may listen at the same time. */
  readonly most: { readonly perUser: number; readonly perAddress: number };
  readonly log: Logger;
  readonly now: () => number;
}

export interface Listener {
  readonly request: ListenRequest;
  /** Whose connections it counts to. */
  readonly network: string;
  readonly sink: Sink;
  readonly member: Member;
  caller: Caller;
  wanted: Narrowing;
  /** Where it may listen and wants to. */
  rooms: ReadonlySet<string>;
  /** Whether it listens there; not before it is told what it missed. */
  live: boolean;
  /** Up to where what it missed was looked through. */
  upTo: string | null;
  /** Whether it was let in: who was not hears why as an error. */
  admitted: boolean;
  /** How many subscriptions of it are not acknowledged yet. */
  asked: number;
  /** Nobody listens any more. */
  gone: boolean;
  expiry: NodeJS.Timeout | undefined;
  /** The end of what is being done to its rooms. */
  turn: Promise<unknown>;
}

export interface Listeners {
  /** Throws 401, 429 or 503. */
  admit(request: ListenRequest): Promise<Listener>;
  /** Its time begins to run. */
  start(listener: Listener): void;
  /** Puts it in its rooms, at once. */
  join(listener: Listener): void;
  narrow(listener: Listener, wanted: Narrowing): Promise<Narrowing>;
  remove(listener: Listener): void;
  /** Lets it come back later, with its position. */
  end(listener: Listener): void;
  /** Acts on a change of what lets listeners in: sessions, tokens, users, roles. */
  apply(change: Change): Promise<void>;
  endAll(): void;
  count(): number;
  countOf(isMeant: (listener: Listener) => boolean): number;
}

/** The stores that say who is let in. */
const ADMITTING: ReadonlySet<string> = new Set(['sessions', 'tokens', 'users', 'roles']);

interface State {
  readonly options: ListenerOptions;
  readonly fanOut: FanOut;
  readonly all: Set<Listener>;
  readonly users: Counts;
  readonly networks: Counts;
  /** How often what lets listeners in has changed. */
  news: number;
}

export function createListeners(options: ListenerOptions, fanOut: FanOut): Listeners {
  const all = new Set<Listener>();
  const state: State = { options, fanOut, all, users: createCounts(), networks: createCounts(), news: 0 };
  return {
    admit: (request) => admit(state, request),
    start: (listener) => start(state, listener),
    join: (listener) => join(state, listener),
    narrow: (listener, wanted) => narrowNext(state, listener, wanted),
    remove: (listener) => remove(state, listener),
    end: (listener) => end(state, listener, true),
    apply: (change) => apply(state, change),
    endAll() {
      for (const listener of [...all]) end(state, listener, true);
    },
    count: () => all.size,
    countOf: (isMeant) => [...all].filter(isMeant).length,
  };
}

async function admit(state: State, request: ListenRequest): Promise<Listener> {
  const before = state.news;
  const caller = await state.options.identify(request.proof);
  if (caller === null) throw unauthorized();
  const { perUser, perAddress } = state.options.most;
  if (state.users.of(caller.userId) >= perUser) throw tooManyRequests(1, 'too many listeners of this user');
  if (state.networks.of(networkOf(request.address)) >= perAddress) {
    throw tooManyRequests(1, 'too many listeners at this address');
  }
  const listener = createListener(request, caller);
  state.all.add(listener);
  state.users.add(caller.userId);
  state.networks.add(listener.network);
  try {
    await inTurn(listener, () => enter(state, listener, request.wanted));
    // What changed while it was let in did not find it yet.
    if (state.news !== before) await inTurn(listener, () => renew(state, listener));
    if (listener.gone) throw await whyGone(state, request);
  } catch (error) {
    remove(state, listener);
    throw error;
  }
  listener.admitted = true;
  return listener;
}

async function narrowNext(state: State, listener: Listener, wanted: Narrowing): Promise<Narrowing> {
  if (listener.asked >= LIMITS.subscriptionsPerSocket) {
    throw tooManyRequests(1, 'too many subscriptions at once; wait for their acknowledgements');
  }
  listener.asked++;
  try {
    return await inTurn(listener, () => enter(state, listener, wanted));
  } finally {
    listener.asked--;
  }
}

async function whyGone({ options }: State, { proof }: ListenRequest): Promise<ApiError> {
  return (await options.identify(proof)) === null ? unauthorized() : unavailable('the feed begins anew');
}

async function apply(state: State, { store, kind, id }: Change): Promise<void> {
  if (kind === 'created') return;
  if (ADMITTING.has(store)) state.news++;
  const those = (isMeant: (caller: Caller) => boolean): Listener[] =>
    [...state.all].filter(({ caller }) => isMeant(caller));
  if (kind === 'removed' && (store === 'sessions' || store === 'tokens')) {
    for (const listener of those(({ session, token }) => (store === 'sessions' ? session : token)?.id === id))
      end(state, listener, false);
  }
  if (store === 'users' || store === 'roles') {
    const touched = those(({ userId, roleId }) => (store === 'users' ? userId : roleId) === id);
    await Promise.all(touched.map((listener) => recheck(state, listener)));
  }
}

/** A listener ends with the session or the token that let it in. */
function start(state: State, listener: Listener): void {
  if (listener.gone) return;
  const { session, token } = listener.caller;
  const leftMs = (session ?? token ?? { expiresAtMs: Number.POSITIVE_INFINITY }).expiresAtMs - state.options.now();
  if (leftMs <= 0) end(state, listener, false);
  else listener.expiry = setTimeout(() => start(state, listener), Math.min(leftMs, LIMITS.timerMs)).unref();
}

function join({ fanOut }: State, listener: Listener): void {
  listener.live = true;
  if (!listener.gone) fanOut.enter(listener.member, listener.rooms);
}

/** After a change of the user or the role: other rights, other rooms; or none, and it ends. */
async function recheck(state: State, listener: Listener): Promise<void> {
  try {
    await inTurn(listener, () => renew(state, listener));
  } catch (error) {
    // What cannot be told now is asked anew when the client comes back.
    state.options.log.warn({ err: error }, 'a listener could not be rechecked');
    end(state, listener, true);
  }
}

async function renew(state: State, listener: Listener): Promise<void> {
  const caller = await state.options.identify(listener.request.proof);
  if (caller === null) return end(state, listener, false);
  listener.caller = caller;
  await enter(state, listener, listener.wanted);
}

function end(state: State, listener: Listener, mayReturn: boolean): void {
  if (listener.gone) return;
  state.fanOut.flush(listener.member);
  remove(state, listener);
  if (listener.admitted) listener.sink.end(mayReturn);
}

function remove({ fanOut, all, users, networks }: State, listener: Listener): void {
  if (listener.gone) return;
  listener.gone = true;
  clearTimeout(listener.expiry);
  fanOut.enter(listener.member, new Set());
  all.delete(listener);
  users.subtract(listener.caller.userId);
  networks.subtract(listener.network);
}

function createListener(request: ListenRequest, caller: Caller): Listener {
  const { sink, wanted } = request;
  return {
    ...{ request, sink, caller, wanted, rooms: new Set(), upTo: null, live: false, expiry: undefined },
    ...{ admitted: false, gone: false, asked: 0, network: networkOf(request.address) },
    member: createMember((batch) => sink.write(batch)),
    turn: Promise.resolve(),
  };
}

/** One after the other: rooms of the rights of before must not come over those of now. */
function inTurn<T>(listener: Listener, work: () => Promise<T>): Promise<T> {
  const done = listener.turn.then(work);
  listener.turn = done.catch(() => undefined);
  return done;
}

/** Puts it in the rooms of what it may hear and wants to; the rooms change in one turn. */
async function enter(state: State, listener: Listener, wanted: Narrowing): Promise<Narrowing> {
  const scope = scopeOf(listener.caller);
  const resolve = (keys: readonly string[] | null) => keys && state.options.findObjects(scope, keys);
  const audible = audibleObjects(listener.caller);
  const permitted = await resolve(audible === 'all' ? null : audible);
  const narrowing = narrow({ objects: await resolve(wanted.objects), events: wanted.events }, permitted);
  listener.rooms = new Set(roomsOf(addressesOf(scope), narrowing));
  listener.wanted = wanted;
  if (listener.live) join(state, listener);
  return narrowing;
}

type Counts = ReturnType<typeof createCounts>;

function createCounts() {
  const counts = new Map<string, number>();
  return {
    of: (key: string): number => counts.get(key) ?? 0,
    add: (key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1),
    subtract(key: string): void {
      const left = (counts.get(key) ?? 0) - 1;
      if (left > 0) counts.set(key, left);
      else counts.delete(key);
    },
  };
}
