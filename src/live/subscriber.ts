/** One subscriber of the feed: what it asked for, and what it has. */

import type { Caller } from '../core/access.js';
import type { EventFilter, ListenRequest, Sink } from '../core/feed.js';
import { networkOf } from '../core/network.js';
import type { Timer } from '../platform/clock.js';
import { createMember, type Member } from './fanout.js';
import type { Found } from './lookups.js';

export interface Subscriber {
  readonly request: ListenRequest;
  /** The network for the limit per address. */
  readonly network: string;
  /** The key for the limit per user. */
  readonly countedAs: string;
  readonly sink: Sink;
  readonly member: Member;
  caller: Caller;
  /** Whether the objects that it names may have other names by now than its caller has. */
  isRenamed: boolean;
  filter: EventFilter;
  /** The rooms of its permissions and its filter. */
  rooms: ReadonlySet<string>;
  /** The addresses of its permissions, if its rooms are at other addresses; otherwise null. */
  permitted: ReadonlySet<string> | null;
  /** What its rooms were made of; null before that. */
  basis: RoomBasis | null;
  /** What its permissions and its filter name, as last found; null before that. */
  found: Found | null;
  /** Whether something that they name may have changed since it was looked up. */
  hasChanged: boolean;
  /** Whether it is in its rooms; false until it has received the missed events. */
  live: boolean;
  /** The position up to which missed events were sent. */
  upTo: string | null;
  /** False until `authenticate` succeeds: errors before that are thrown instead of sent to the sink. */
  authenticated: boolean;
  /** Until then: whether a change may have made what was read for it outdated. */
  outdated: boolean;
  /** The count of unacknowledged changes of its filter. */
  pendingFilters: number;
  gone: boolean;
  expiry: Timer | undefined;
  /** The last change of its rooms: changes run one after the other. */
  lastChange: Promise<unknown>;
}

export interface RoomBasis {
  readonly addresses: readonly string[];
  readonly restricted: EventFilter;
}

/** A subscriber that is not authenticated yet. */
export function createSubscriber(request: ListenRequest, caller: Caller): Subscriber {
  const { sink, filter } = request;
  return {
    request,
    sink,
    caller,
    isRenamed: false,
    filter,
    rooms: new Set(),
    permitted: null,
    basis: null,
    found: null,
    hasChanged: false,
    upTo: null,
    live: false,
    expiry: undefined,
    authenticated: false,
    outdated: false,
    gone: false,
    pendingFilters: 0,
    network: networkOf(request.address),
    countedAs: request.guest?.id ?? caller.userId,
    member: createMember((batch) => sink.write(batch)),
    lastChange: Promise.resolve(),
  };
}

/** Runs changes one after the other: rooms of former permissions must not replace those of current ones. */
export function runSerially<T>(listener: Subscriber, work: () => Promise<T>): Promise<T> {
  const done = listener.lastChange.then(work);
  listener.lastChange = done.catch(() => undefined);
  return done;
}
