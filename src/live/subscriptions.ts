/** Subscribers of the feed: authenticates them, assigns them to rooms by permissions and filter, and ends them with their credentials. */

import type { Logger } from 'pino';
import type { Identify } from '../accounts/identify.js';
import {
  addressesOf,
  type Caller,
  mayCall,
  objectKeysIn,
  permittedObjects,
  type Scope,
  scopeOf,
} from '../core/access.js';
import { type Change, mayHaveChanged } from '../core/change.js';
import { isId } from '../core/entity.js';
import { type ApiError, tooManyRequests, unauthorized, unavailable } from '../core/errors.js';
import { EVENT_NAMES, isAlarmEvent } from '../core/event-names.js';
import type { EventFilter, ListenRequest, Sink } from '../core/feed.js';
import { LIMITS } from '../core/limits.js';
import { networkOf } from '../core/network.js';
import { clock, type Timer } from '../platform/clock.js';
import { type Counts, createCounts } from './counts.js';
import { createMember, type FanOut, type Member } from './fanout.js';
import { restrictFilter, roomsOf } from './rooms.js';

export interface SubscriptionOptions {
  readonly identify: Identify;
  /** The `_id`s of the given objects (by `_id` or own id) that the scope sees. */
  readonly findObjects: (scope: Scope, keys: readonly string[]) => Promise<string[]>;
  /** The `_id`s of the given groups that are the scope's own group or below it. */
  readonly findGroups: (scope: Scope, ids: readonly string[]) => Promise<string[]>;
  readonly maxSubscribers: { readonly perUser: number; readonly perAddress: number };
  readonly log: Logger;
  readonly now: () => number;
}

export interface Subscriber {
  readonly request: ListenRequest;
  /** The network for the limit per address. */
  readonly network: string;
  /** The key for the limit per user. */
  readonly countedAs: string;
  readonly sink: Sink;
  readonly member: Member;
  caller: Caller;
  filter: EventFilter;
  /** The rooms of its permissions and its filter. */
  rooms: ReadonlySet<string>;
  /** The addresses of its permissions, if its rooms are at other addresses; otherwise null. */
  permitted: ReadonlySet<string> | null;
  /** The own ids by which its credentials name objects. */
  names: readonly string[];
  /** Whether it is in its rooms; false until it has received the missed events. */
  live: boolean;
  /** The position up to which missed events were sent. */
  upTo: string | null;
  /** False until `authenticate` succeeds: errors before that are thrown instead of sent to the sink. */
  authenticated: boolean;
  /** The count of unacknowledged changes of its filter. */
  pendingFilters: number;
  gone: boolean;
  expiry: Timer | undefined;
  /** The last change of its rooms: changes run one after the other. */
  lastChange: Promise<unknown>;
}

export interface Subscriptions {
  /** Throws 401, 429 or 503. */
  authenticate(request: ListenRequest): Promise<Subscriber>;
  /** Starts the timer of its session or token. */
  start(listener: Subscriber): void;
  /** Adds it to its rooms. Takes effect at once. */
  join(listener: Subscriber): void;
  setFilter(listener: Subscriber, filter: EventFilter): Promise<EventFilter>;
  remove(listener: Subscriber): void;
  /** Ends it in a way after which its client reconnects with its position. */
  end(listener: Subscriber): void;
  /** Rechecks or ends subscribers after a change of sessions, tokens, users, roles or groups. */
  apply(change: Change): Promise<void>;
  endAll(): void;
  count(): number;
  countOf(isCounted: (listener: Subscriber) => boolean): number;
}

/** The stores that determine authentication. */
const AUTHENTICATING: ReadonlySet<string> = new Set(['sessions', 'tokens', 'users', 'roles']);

interface State {
  readonly options: SubscriptionOptions;
  readonly fanOut: FanOut;
  readonly all: Set<Subscriber>;
  /** The subscribers of whom credentials name objects, by each own id: another object may get it. */
  readonly byOwnId: Map<string, Set<Subscriber>>;
  readonly users: Counts;
  readonly networks: Counts;
  /** The count of changes in the authenticating stores, and of gaps, which may have hidden one. */
  changeCount: number;
}

export function createSubscriptions(options: SubscriptionOptions, fanOut: FanOut): Subscriptions {
  const all = new Set<Subscriber>();
  const state: State = {
    options,
    fanOut,
    all,
    byOwnId: new Map(),
    users: createCounts(),
    networks: createCounts(),
    changeCount: 0,
  };
  return {
    authenticate: (request) => authenticate(state, request),
    start: (listener) => start(state, listener),
    join: (listener) => join(state, listener),
    setFilter: (listener, filter) => setNextFilter(state, listener, filter),
    remove: (listener) => remove(state, listener),
    end: (listener) => end(state, listener, true),
    apply: (change) => apply(state, change),
    endAll() {
      // Changes were missed: who is authenticated meanwhile may have been read before one of them.
      state.changeCount++;
      for (const listener of [...all]) end(state, listener, true);
    },
    count: () => all.size,
    countOf: (isCounted) => [...all].filter(isCounted).length,
  };
}

async function authenticate(state: State, request: ListenRequest): Promise<Subscriber> {
  const changesBefore = state.changeCount;
  const caller = await identifyOf(state, request);
  if (caller === null) throw unauthorized();
  const { perUser, perAddress } = state.options.maxSubscribers;
  if (state.users.of(request.guest?.id ?? caller.userId) >= perUser)
    throw tooManyRequests(1, 'too many listeners of this user');
  if (state.networks.of(networkOf(request.address)) >= perAddress) {
    throw tooManyRequests(1, 'too many listeners at this address');
  }
  const listener = createSubscriber(request, caller);
  state.all.add(listener);
  state.users.add(listener.countedAs);
  state.networks.add(listener.network);
  try {
    await runSerially(listener, () => applyFilter(state, listener, request.filter));
    // A change during authentication may have been applied before the subscriber was registered.
    if (state.changeCount !== changesBefore) await runSerially(listener, () => renew(state, listener));
    if (listener.gone) throw await toEndError(state, request);
  } catch (error) {
    remove(state, listener);
    throw error;
  }
  listener.authenticated = true;
  return listener;
}

async function setNextFilter(state: State, listener: Subscriber, filter: EventFilter): Promise<EventFilter> {
  if (listener.pendingFilters >= LIMITS.subscriptionsPerSocket) {
    throw tooManyRequests(1, 'too many subscriptions at once; wait for their acknowledgements');
  }
  listener.pendingFilters++;
  try {
    return await runSerially(listener, () => applyFilter(state, listener, filter));
  } finally {
    listener.pendingFilters--;
  }
}

const identifyOf = ({ options }: State, { guest, credentials }: ListenRequest): Promise<Caller | null> =>
  guest === undefined ? options.identify(credentials) : guest.identify();

async function toEndError(state: State, request: ListenRequest): Promise<ApiError> {
  return (await identifyOf(state, request)) === null ? unauthorized() : unavailable('the feed restarted');
}

async function apply(state: State, change: Change): Promise<void> {
  const { store, kind } = change;
  if (store === 'objects') return recheckNamed(state, change);
  if (kind === 'created') return;
  // Packets, of which there are many, would be decoded for it.
  const { id } = change;
  if (AUTHENTICATING.has(store)) state.changeCount++;
  const listenersOf = (isAffected: (caller: Caller) => boolean): Subscriber[] =>
    [...state.all].filter(({ caller }) => isAffected(caller));
  if (kind === 'removed' && (store === 'sessions' || store === 'tokens')) {
    for (const listener of listenersOf(({ session, token }) => (store === 'sessions' ? session : token)?.id === id))
      end(state, listener, false);
  }
  if (store === 'groups') {
    const named = [...state.all].filter(({ filter }) => filter.groups?.includes(id));
    await Promise.all(named.map((listener) => recheck(state, listener)));
  }
  if (store === 'users' || store === 'roles') {
    const affected = listenersOf(({ userId, roleId }) => (store === 'users' ? userId : roleId) === id);
    await Promise.all(
      affected.map(async (listener) => {
        const { groupId } = listener.caller;
        await recheck(state, listener);
        if (listener.gone || !listener.authenticated || listener.caller.groupId === groupId) return;
        // Of what it has read, it sees less now, and more of which it has heard nothing.
        state.fanOut.flush(listener.member);
        listener.sink.gap({ reason: 'user moved', from: change.position });
      }),
    );
  }
}

/** Rechecks subscribers whose credentials name an object by an own id that this object has got or lost. */
async function recheckNamed(state: State, change: Change): Promise<void> {
  const { byOwnId } = state;
  if (byOwnId.size === 0 || !mayHaveChanged(change, ['id'])) return;
  const { kind, before, after } = change;
  // Without both images, it may have had any id.
  const isUnknown = kind === 'changed' && (before === null || after === null);
  const named = isUnknown
    ? [...byOwnId.values()]
    : [before, after].map((image) => byOwnId.get(String(image?.id)) ?? []);
  const affected = new Set(named.flatMap((subscribers) => [...subscribers]));
  await Promise.all([...affected].map((listener) => recheck(state, listener)));
}

/** Ends a subscriber when its session or token expires. */
function start(state: State, listener: Subscriber): void {
  if (listener.gone) return;
  const { session, token } = listener.caller;
  const leftMs = (session ?? token ?? { expiresAtMs: Number.POSITIVE_INFINITY }).expiresAtMs - state.options.now();
  if (leftMs <= 0) end(state, listener, false);
  else listener.expiry = clock.setTimeout(() => start(state, listener), Math.min(leftMs, LIMITS.timerMs)).unref();
}

function join({ fanOut }: State, listener: Subscriber): void {
  listener.live = true;
  if (!listener.gone) fanOut.setRooms(listener.member, listener);
}

/**
 * Updates the rooms of a subscriber to its current permissions. Ends the subscriber only if its session, token or user is no longer
 * valid; one that may see nothing stays connected and receives nothing.
 */
async function recheck(state: State, listener: Subscriber): Promise<void> {
  try {
    await runSerially(listener, () => renew(state, listener));
  } catch (error) {
    // The client reconnects and is then checked again.
    state.options.log.warn({ err: error }, 'failed to recheck a subscriber');
    end(state, listener, true);
  }
}

async function renew(state: State, listener: Subscriber): Promise<void> {
  const caller = await identifyOf(state, listener.request);
  if (caller === null) return end(state, listener, false);
  listener.caller = caller;
  await applyFilter(state, listener, listener.filter);
}

function end(state: State, listener: Subscriber, mayReturn: boolean): void {
  if (listener.gone) return;
  state.fanOut.flush(listener.member);
  remove(state, listener);
  if (listener.authenticated) listener.sink.end(mayReturn);
}

function remove(state: State, listener: Subscriber): void {
  const { fanOut, all, users, networks } = state;
  if (listener.gone) return;
  listener.gone = true;
  setNames(state, listener, []);
  clock.clearTimer(listener.expiry);
  fanOut.setRooms(listener.member, { rooms: new Set(), permitted: null });
  all.delete(listener);
  users.subtract(listener.countedAs);
  networks.subtract(listener.network);
}

function createSubscriber(request: ListenRequest, caller: Caller): Subscriber {
  const { sink, filter } = request;
  return {
    request,
    sink,
    caller,
    filter,
    rooms: new Set(),
    permitted: null,
    names: [],
    upTo: null,
    live: false,
    expiry: undefined,
    authenticated: false,
    gone: false,
    pendingFilters: 0,
    network: networkOf(request.address),
    countedAs: request.guest?.id ?? caller.userId,
    member: createMember((batch) => sink.write(batch)),
    lastChange: Promise.resolve(),
  };
}

/** Runs changes one after the other: rooms of former permissions must not replace those of current ones. */
function runSerially<T>(listener: Subscriber, work: () => Promise<T>): Promise<T> {
  const done = listener.lastChange.then(work);
  listener.lastChange = done.catch(() => undefined);
  return done;
}

/** Events of alarms are for those who may read alarms. */
function permittedEvents(caller: Caller, events: EventFilter['events']): EventFilter['events'] {
  if (mayCall(caller, 'GET', ['alarms'])) return events;
  return (events ?? EVENT_NAMES).filter((name) => !isAlarmEvent(name));
}

const ownIdsIn = ({ credentials, scopes }: Caller): string[] => [
  ...new Set(objectKeysIn([...credentials, ...(scopes ?? [])]).filter((key) => !isId(key))),
];

function setNames({ byOwnId }: State, listener: Subscriber, names: readonly string[]): void {
  for (const name of listener.names) {
    const named = byOwnId.get(name);
    named?.delete(listener);
    if (named?.size === 0) byOwnId.delete(name);
  }
  listener.names = listener.gone ? [] : names;
  for (const name of listener.names) byOwnId.set(name, (byOwnId.get(name) ?? new Set()).add(listener));
}

/** Sets the rooms of its permissions and the filter. All rooms change in the same turn. */
async function applyFilter(state: State, listener: Subscriber, filter: EventFilter): Promise<EventFilter> {
  const scope = scopeOf(listener.caller);
  const resolve = (keys: readonly string[] | null) => keys && state.options.findObjects(scope, keys);
  const permittedKeys = permittedObjects(listener.caller);
  // Before they are resolved: of what is renamed meanwhile, it hears.
  setNames(state, listener, permittedKeys === 'all' ? [] : ownIdsIn(listener.caller));
  const permitted = await resolve(permittedKeys === 'all' ? null : permittedKeys);
  const groups = filter.groups && (await state.options.findGroups(scope, filter.groups));
  const restricted = restrictFilter(
    { groups, objects: await resolve(filter.objects), events: permittedEvents(listener.caller, filter.events) },
    permitted,
  );
  const addresses = addressesOf(scope);
  listener.rooms = new Set(roomsOf(addresses, restricted));
  listener.permitted = groups && new Set(addresses);
  listener.filter = filter;
  if (listener.live) join(state, listener);
  return restricted;
}
