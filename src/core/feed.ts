/** The interface between the live feed and its transports: subscribers, batches of events, encodings. */

import type { Caller } from './access.js';
import { isId } from './entity.js';
import { badRequest } from './errors.js';
import { EVENT_NAMES, type EventName } from './event-names.js';
import { isObject, type JsonObject } from './json.js';
import { LIMITS } from './limits.js';
import { splitList } from './list.js';

export { EVENT_NAMES, type EventName };

/** The path of Socket.IO. */
export const SOCKETS_PATH = '/socket.io/';

/** The filter of a client; null means everything it may see. Objects by `_id` or own id, or groups with all groups below them. */
export interface EventFilter {
  readonly groups: readonly string[] | null;
  readonly objects: readonly string[] | null;
  readonly events: readonly EventName[] | null;
}

export const NO_FILTER: EventFilter = { groups: null, objects: null, events: null };

/** A WebSocket frame of Socket.IO, its packet as ASCII text (long polling), a server-sent event, or an item of a JSON page. */
export type Encoding = 'frame' | 'packet' | 'sse' | 'item';

/** Events in order, written together. */
export interface EventBatch {
  /** The position of the last event. */
  readonly position: string;
  /** The events as separate pieces. */
  pieces(form: Encoding): readonly { readonly position: string; readonly bytes: Buffer }[];
  /** The concatenated events; encoded once for all clients with the same events. */
  bytes(form: Encoding): Buffer;
}

/** `from` is the position that cannot be resumed. */
export interface Gap {
  readonly reason: 'unknown position' | 'history gone' | 'user moved';
  readonly from: string;
}

/** The destination of one client's events. */
export interface Sink {
  write(batch: EventBatch): void;
  /** Whether the network has accepted all written bytes. */
  isDrained(): boolean;
  /** Missed events are unavailable; current events follow. */
  gap(gap: Gap): void;
  /** All events up to `position` are written; current events follow. */
  joined(position: string): void;
  /** The feed ends the subscription. `mayReturn`: the client should reconnect with its position; else its access has ended. */
  end(mayReturn: boolean): void;
}

/** Who listens without an account, such as with a share link. Its subscriptions are counted by its `id`. */
export interface Guest {
  readonly id: string;
  /** Called again when permissions change; null ends the subscription. */
  identify(): Promise<Caller | null>;
}

/** The credentials are checked again when permissions change. */
export interface ListenRequest {
  readonly credentials: { readonly authorization?: string | undefined; readonly cookie?: string | undefined };
  /** In place of credentials. */
  readonly guest?: Guest;
  readonly address: string;
  readonly filter: EventFilter;
  /** The position to resume from; null for current events only. */
  readonly since: string | null;
  readonly sink: Sink;
}

export interface Listening {
  readonly userId: string;
  /** The position up to which all events are delivered. */
  position(): string;
  /** Starts with missed events, then continues with current ones. */
  start(): void;
  /** Changes the filter from the next event on; resolves with the permitted part of it. */
  setFilter(wanted: EventFilter): Promise<EventFilter>;
  /** Writes pending events now. */
  flush(): void;
  /** Ends the subscription. */
  close(): void;
}

/** Subscribes a client. Throws 401 without valid credentials, 429 at the limit, 503 when the credentials cannot be checked. */
export type Listen = (request: ListenRequest) => Promise<Listening>;

/** Parses a filter: `{objects?: […], groups?: […], events?: […]}`. Throws a 400 that names the field. */
export function parseEventFilter(request: unknown): EventFilter {
  if (!isObject(request)) throw badRequest('subscribe: expected {objects?: […], groups?: […], events?: […]}');
  const { objects = null, events = null } = request;
  const groups = parseGroups(request);
  if (objects !== null && !isTextList(objects)) {
    throw badRequest(`objects: expected a list of at most ${LIMITS.subscribedObjects} ids`);
  }
  if (events !== null && !(isTextList(events) && events.every(isEvent))) {
    throw badRequest(`events: expected a list of ${EVENT_NAMES.join(', ')}`);
  }
  // Duplicates count once.
  return { groups, objects: objects && [...new Set(objects)], events: events && ([...new Set(events)] as EventName[]) };
}

function parseGroups({ groups = null, objects = null }: JsonObject): string[] | null {
  if (groups === null) return null;
  if (!isTextList(groups) || groups.length > LIMITS.subscribedGroups || !groups.every(isId)) {
    throw badRequest(`groups: expected a list of at most ${LIMITS.subscribedGroups} _ids`);
  }
  if (objects !== null) throw badRequest('groups: expected without objects');
  return [...new Set(groups.map((id) => id.toLowerCase()))];
}

const isEvent = (name: string): name is EventName => (EVENT_NAMES as readonly string[]).includes(name);

const isTextList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length <= LIMITS.subscribedObjects && value.every((item) => typeof item === 'string');

/**
 * Parses a filter from query parameters (`?objects=a,b&events=object-packet`) or lists; an absent one means no restriction.
 * Ignores unknown names of events, because clients of other platforms use theirs.
 */
export function parseEventFilterQuery(asked: { objects?: unknown; groups?: unknown; events?: unknown }): EventFilter {
  const toList = (value: unknown): unknown => (typeof value === 'string' ? toItems(value) : value);
  const [objects, groups, names] = [asked.objects, asked.groups, asked.events].map(toList);
  return parseEventFilter({ objects, groups, events: isTextList(names) ? names.filter(isEvent) : names });
}

const toItems = (text: string): string[] => (text === '' ? [] : splitList(text));
