/** Subscribers of the feed: authenticates them, assigns them to rooms by permissions and filter, and ends them with their credentials. */

import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Accounts } from '../accounts/accounts.js';
import type { Identify } from '../accounts/identify.js';
import { ACCESS_FIELDS, addressesOf, type Caller, scopeOf } from '../core/access.js';
import { type Change, mayHaveChanged } from '../core/change.js';
import { type ApiError, tooManyRequests, unauthorized, unavailable } from '../core/errors.js';
import type { EventFilter, ListenRequest } from '../core/feed.js';
import { LIMITS } from '../core/limits.js';
import { networkOf } from '../core/network.js';
import { clock } from '../platform/clock.js';
import { callerAfter, createDeliveredRights, type DeliveredRights } from './changed-rights.js';
import { type Counts, createCounts } from './counts.js';
import type { FanOut } from './fanout.js';
import {
  createLookups,
  type Finders,
  type Found,
  type Lookups,
  namesIn,
  ownIdsIn,
  type WantedNames,
  wantedBy,
} from './lookups.js';
import { createNameIndex, type NameIndex } from './names.js';
import { permittedEvents, restrictFilter, roomsOf } from './rooms.js';
import { createSubscriber, type RoomBasis, runSerially, type Subscriber } from './subscriber.js';

export interface SubscriptionOptions extends Finders {
  readonly identify: Identify;
  readonly wasAt: Accounts['wasAt'];
  /** By `now`: every change that was stored before is delivered. */
  readonly deliveredToMs: () => number;
  /** Up to where every change is delivered; null while that is unknown. */
  readonly deliveredTo: () => string | null;
  readonly maxSubscribers: { readonly perUser: number; readonly perAddress: number };
  readonly log: Logger;
  readonly now: () => number;
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
  /** Keeps nothing that was looked up: a change is unknown. */
  forget(): void;
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
  /** The subscribers whose credentials name objects by own ids: another object may get one. */
  readonly naming: NameIndex<Subscriber>;
  /** The subscribers for whom objects and groups were looked up. */
  readonly lookedUp: NameIndex<Subscriber>;
  readonly users: Counts;
  readonly networks: Counts;
  readonly delivered: DeliveredRights;
  /** The count of changes in the authenticating stores, and of gaps, which may have hidden one. */
  changeCount: number;
  /** The count of objects that were renamed or removed. */
  renameCount: number;
}

export function createSubscriptions(options: SubscriptionOptions, fanOut: FanOut): Subscriptions {
  const all = new Set<Subscriber>();
  const state: State = {
    options,
    fanOut,
    all,
    naming: createNameIndex(),
    lookedUp: createNameIndex(),
    users: createCounts(),
    networks: createCounts(),
    delivered: createDeliveredRights(options),
    changeCount: 0,
    renameCount: 0,
  };
  return {
    authenticate: (request) => authenticate(state, request),
    start: (listener) => start(state, listener),
    join: (listener) => join(state, listener),
    setFilter: (listener, filter) => setNextFilter(state, listener, filter),
    remove: (listener) => remove(state, listener),
    end: (listener) => end(state, listener, true),
    apply: (change) => apply(state, change),
    forget() {
      state.renameCount++;
      for (const listener of all) {
        listener.hasChanged = true;
        listener.isRenamed = true;
      }
    },
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
  const { changeCount: changesBefore, renameCount: renamesBefore } = state;
  const caller = await identifyOf(state, request);
  if (caller === null) throw unauthorized();
  const { perUser, perAddress } = state.options.maxSubscribers;
  if (state.users.of(request.guest?.id ?? caller.userId) >= perUser)
    throw tooManyRequests(1, 'too many listeners of this user');
  if (state.networks.of(networkOf(request.address)) >= perAddress) {
    throw tooManyRequests(1, 'too many listeners at this address');
  }
  const listener = createSubscriber(request, caller);
  // A change during authentication may have been applied before the subscriber was registered.
  listener.outdated = state.changeCount !== changesBefore;
  state.all.add(listener);
  state.users.add(listener.countedAs);
  state.networks.add(listener.network);
  try {
    const untilMs = clock.steadyMs() + LIMITS.rightsDeliveryMs;
    do await prepare(state, listener, untilMs);
    while (listener.outdated && !listener.gone);
    if (listener.gone) throw await toEndError(state, request);
  } catch (error) {
    remove(state, listener);
    throw error;
  }
  // It may have been identified before, and registered with its names after that.
  if (state.renameCount !== renamesBefore) listener.isRenamed = true;
  listener.authenticated = true;
  return listener;
}

/** Finds its rooms, for permissions that the feed has delivered. Throws 401, or 503 at `untilMs`. */
async function prepare(state: State, listener: Subscriber, untilMs: number): Promise<void> {
  if (listener.outdated) {
    listener.outdated = false;
    const caller = await identifyOf(state, listener.request);
    if (caller === null) throw unauthorized();
    listener.caller = caller;
  }
  await state.delivered.wait(listener, untilMs);
  await applyFilter(state, listener, listener.request.filter);
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
  if (store === 'users' || store === 'roles') state.delivered.note(change);
  const isTree = store === 'groups' && mayHaveChanged(change, ['branch']);
  if (isTree) markNaming(state, change);
  if (kind === 'created') return;
  // Packets, of which there are many, would be decoded for it.
  const { id } = change;
  if (AUTHENTICATING.has(store)) state.changeCount++;
  const lookups = createLookups(state.options);
  const listenersOf = (isAffected: (caller: Caller) => boolean): Subscriber[] =>
    [...state.all].filter(({ caller }) => isAffected(caller));
  if (kind === 'removed' && (store === 'sessions' || store === 'tokens')) {
    for (const listener of listenersOf(({ session, token }) => (store === 'sessions' ? session : token)?.id === id))
      end(state, listener, false);
  }
  if (isTree) {
    const named = [...state.all].filter(({ filter }) => filter.groups?.includes(id));
    const again = (listener: Subscriber) => applyFilter(state, listener, listener.filter, lookups);
    await Promise.all(named.map((listener) => recheck(state, listener, again)));
  }
  if (store === 'users' || store === 'roles') {
    const affected = listenersOf(({ userId, roleId }) => (store === 'users' ? userId : roleId) === id);
    await Promise.all(
      affected.map(async (listener) => {
        const { groupId } = listener.caller;
        await recheck(state, listener, () => renew(state, listener, change, lookups));
        if (listener.gone || !listener.authenticated || listener.caller.groupId === groupId) return;
        // Of what it has read, it sees less now, and more of which it has heard nothing.
        state.fanOut.flush(listener.member);
        listener.sink.gap({ reason: 'user moved', from: change.position });
      }),
    );
  }
}

/** Marks the subscribers for whom something else may be found after this change of an object or a group. */
function markNaming({ lookedUp }: State, change: Change): void {
  for (const listener of lookedUp.namedBy(change)) listener.hasChanged = true;
}

/** The fields of an object that decide who finds it, and by which name. */
const FINDING: readonly string[] = ['id', ...ACCESS_FIELDS];

/** Rechecks subscribers whose credentials name an object by an own id that this object has got or lost. */
async function recheckNamed(state: State, change: Change): Promise<void> {
  if (!mayHaveChanged(change, FINDING)) return;
  markNaming(state, change);
  if (!mayHaveChanged(change, ['id'])) return;
  if (change.kind !== 'created') state.renameCount++;
  for (const listener of state.lookedUp.namedBy(change)) listener.isRenamed = true;
  const affected = [...state.naming.namedBy(change)];
  const lookups = createLookups(state.options);
  await Promise.all(affected.map((listener) => recheck(state, listener, () => renew(state, listener, null, lookups))));
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

/** Finds the rooms of a subscriber again, after a change that may concern them. */
async function recheck(
  state: State,
  listener: Subscriber,
  again: (listener: Subscriber) => Promise<unknown>,
): Promise<void> {
  if (!listener.authenticated) {
    listener.outdated = true;
    return;
  }
  try {
    await runSerially(listener, () => again(listener));
  } catch (error) {
    // The client reconnects and is then checked again.
    state.options.log.warn({ err: error }, 'failed to recheck a subscriber');
    end(state, listener, true);
  }
}

/**
 * Updates a subscriber to its permissions after a change of its user or role, or of an object that they name (null). Ends it only if its
 * session, token or user is no longer valid, or if it has to come back; one that may see nothing stays connected and receives nothing.
 */
async function renew(state: State, listener: Subscriber, change: Change | null, lookups: Lookups): Promise<void> {
  const { request, caller: before } = listener;
  // Of a guest, the link decides. Without a read, many changes of a role cost the others nothing.
  const known = change === null || request.guest !== undefined ? null : callerAfter(before, change, listener.isRenamed);
  const caller = known ?? (await identifyOf(state, request));
  if (caller === null) return end(state, listener, false);
  // It waits for the rest when it comes back.
  if (known === null && !state.delivered.has(caller)) return end(state, listener, true);
  listener.caller = caller;
  // The feed, which waits for this, delivers no other name meanwhile.
  if (known === null) listener.isRenamed = false;
  await applyFilter(state, listener, listener.filter, lookups);
}

function end(state: State, listener: Subscriber, mayReturn: boolean): void {
  if (listener.gone) return;
  state.fanOut.flush(listener.member);
  remove(state, listener);
  if (listener.authenticated) listener.sink.end(mayReturn);
}

function remove(state: State, listener: Subscriber): void {
  const { fanOut, all, users, networks, naming, lookedUp } = state;
  if (listener.gone) return;
  listener.gone = true;
  naming.set(listener, []);
  lookedUp.set(listener, []);
  clock.clearTimer(listener.expiry);
  fanOut.setRooms(listener.member, { rooms: new Set(), permitted: null });
  all.delete(listener);
  users.subtract(listener.countedAs);
  networks.subtract(listener.network);
}

/** Without `lookups`, it keeps nothing that was found before. */
async function lookUp(
  state: State,
  listener: Subscriber,
  wanted: WantedNames,
  lookups: Lookups | null,
): Promise<Found> {
  const kept = lookups === null || listener.hasChanged ? null : listener.found;
  if (kept !== null && isDeepStrictEqual(kept.wanted, wanted)) return kept;
  listener.found = null;
  listener.hasChanged = false;
  if (!listener.gone) state.lookedUp.set(listener, namesIn(wanted));
  return (lookups ?? createLookups(state.options)).find(listener.caller, wanted, kept);
}

/**
 * Sets the rooms of its permissions and the filter. All rooms change in the same turn. `lookups` are those after a change; there are none
 * for a filter that a client sends: it may name what the feed does not know yet.
 */
async function applyFilter(
  state: State,
  listener: Subscriber,
  filter: EventFilter,
  lookups: Lookups | null = null,
): Promise<EventFilter> {
  const { caller } = listener;
  const wanted = wantedBy(caller, filter);
  // Before they are resolved: of what is renamed meanwhile, it hears.
  if (!listener.gone) state.naming.set(listener, wanted.permitted === null ? [] : ownIdsIn(caller));
  const found = await lookUp(state, listener, wanted, lookups);
  const { groups, objects, permitted } = found;
  const restricted = restrictFilter({ groups, objects, events: permittedEvents(caller, filter.events) }, permitted);
  const basis: RoomBasis = { addresses: addressesOf(scopeOf(caller)), restricted };
  listener.found = found;
  listener.filter = filter;
  if (isDeepStrictEqual(basis, listener.basis)) return restricted;
  listener.basis = basis;
  listener.rooms = new Set(roomsOf(basis.addresses, restricted));
  listener.permitted = groups && new Set(basis.addresses);
  if (listener.live) join(state, listener);
  return restricted;
}
