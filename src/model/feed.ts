/** The live feed as its doors see it: who listens, what is told, in which forms. The feed itself knows no transport. */
import { badRequest } from '../errors.js';
import { isObject } from './json.js';
import { LIMITS } from './limits.js';

/** Where Socket.IO is; interface, "WebSocket endpoint". */
export const SOCKETS_PATH = '/socket.io/';

export const EVENT_NAMES = [
  'object-packet',
  'object-update',
  'object-command-req',
  'object-command-res',
  'object-command-err',
] as const;
export type EventName = (typeof EVENT_NAMES)[number];

/** What a client asked to hear, of what it may; null for everything. Objects by `_id` or own id. */
export interface Narrowing {
  readonly objects: readonly string[] | null;
  readonly events: readonly EventName[] | null;
}

export const EVERYTHING: Narrowing = { objects: null, events: null };

/** A WebSocket frame of Socket.IO's; its packet as ASCII text (long polling); a server-sent event; an item of a JSON page. */
export type Form = 'frame' | 'packet' | 'sse' | 'item';

/** Some events in order, told in one go. */
export interface Batch {
  /** The position of the last of them. */
  readonly position: string;
  /** Each by itself. */
  pieces(form: Form): readonly { readonly position: string; readonly bytes: Buffer }[];
  /** All of them one after the other; made once for all who were told the same. */
  bytes(form: Form): Buffer;
}

/** `from` is the position that cannot be continued from. */
export interface Gap {
  readonly reason: 'unknown position' | 'history gone';
  readonly from: string;
}

/** Where the events of one listener go. */
export interface Sink {
  write(batch: Batch): void;
  /** Whether everything written was taken by the network. */
  isDrained(): boolean;
  /** What it missed cannot be told; what comes after this is the present. */
  gap(gap: Gap): void;
  /** Everything up to `position` was written: from now on it hears the present. */
  joined(position: string): void;
  /** The feed lets go of it: it should come back with its position, or what let it in has ended. */
  end(mayReturn: boolean): void;
}

/** Headers that prove who listens; asked again when rights change. */
export interface ListenRequest {
  readonly proof: { readonly authorization?: string | undefined; readonly cookie?: string | undefined };
  readonly address: string;
  readonly wanted: Narrowing;
  /** The position it comes back with; null to hear the present only. */
  readonly since: string | null;
  readonly sink: Sink;
}

export interface Listening {
  readonly userId: string;
  /** Up to where it was told everything. */
  position(): string;
  /** Begins: tells what was missed, then the present. */
  start(): void;
  /** What it hears from the next event on; resolves with what it may hear of that. */
  narrow(wanted: Narrowing): Promise<Narrowing>;
  /** Writes what it was told already, now. */
  flush(): void;
  /** Nobody listens any more. */
  close(): void;
}

/** Takes a listener in. Throws 401 for nobody, 429 for one too many, 503 when that cannot be told. */
export type Listen = (request: ListenRequest) => Promise<Listening>;

/** What a client asks to hear: `{objects?: […], events?: […]}`. Throws a 400 that names the field. */
export function readNarrowing(request: unknown): Narrowing {
  if (!isObject(request)) throw badRequest('subscribe: expected {objects?: […], events?: […]}');
  const { objects = null, events = null } = request;
  if (objects !== null && !isTextList(objects)) {
    throw badRequest(`objects: expected a list of at most ${LIMITS.subscribedObjects} ids`);
  }
  if (events !== null && !(isTextList(events) && events.every(isEvent))) {
    throw badRequest(`events: expected a list of ${EVENT_NAMES.join(', ')}`);
  }
  // Named twice it is heard once, and counted once.
  return { objects: objects && [...new Set(objects)], events: events && ([...new Set(events)] as EventName[]) };
}

const isEvent = (name: string): name is EventName => (EVENT_NAMES as readonly string[]).includes(name);

const isTextList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length <= LIMITS.subscribedObjects && value.every((item) => typeof item === 'string');

/**
 * The same as parameters of a query (`?objects=a,b&events=object-packet`), or as lists; what is absent narrows nothing. Names
 * of events that we do not have are ignored: clients of other platforms ask for theirs.
 */
export function readNarrowingQuery({ objects, events }: { objects?: unknown; events?: unknown }): Narrowing {
  const toList = (value: unknown): unknown => (typeof value === 'string' ? split(value) : value);
  const names = toList(events);
  return readNarrowing({ objects: toList(objects), events: isTextList(names) ? names.filter(isEvent) : names });
}

const split = (text: string): string[] => (text === '' ? [] : text.split(',').map((part) => part.trim()));
