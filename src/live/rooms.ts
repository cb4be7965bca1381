/** In which rooms a socket listens and to which an event goes: rights and narrowing become one set lookup. Pure. */
import { badRequest } from '../errors.js';
import { isObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { EVENT_NAMES, type EventName, type LiveEvent } from './events.js';

/** What a client asked to hear, of what it may; null for everything. */
export interface Narrowing {
  readonly objects: readonly string[] | null;
  readonly events: readonly EventName[] | null;
}

export const EVERYTHING: Narrowing = { objects: null, events: null };

// A room is an address of readers, an object and an event's name; `*` where the socket did not narrow.
const room = (address: string, object: string, event: string): string => `${address}|${object}|${event}`;

/** The rooms of a socket that listens at these addresses. */
export function roomsOf(addresses: readonly string[], { objects, events }: Narrowing): string[] {
  return addresses.flatMap((address) =>
    (objects ?? ['*']).flatMap((object) => (events ?? ['*']).map((event) => room(address, object, event))),
  );
}

/** The rooms an event goes to: a socket is in at least one of them just when its readers and its narrowing agree. */
export function roomsFor({ name, objectId, readers }: Pick<LiveEvent, 'name' | 'objectId' | 'readers'>): string[] {
  return readers.flatMap((address) => [
    room(address, '*', '*'),
    room(address, objectId, '*'),
    room(address, '*', name),
    room(address, objectId, name),
  ]);
}

/** What `subscribe` asks for: `{objects?: […], events?: […]}`. Throws a 400 that names the field. */
export function readNarrowing(request: unknown): Narrowing {
  if (!isObject(request)) throw badRequest('subscribe: expected {objects?: […], events?: […]}');
  const { objects = null, events = null } = request;
  if (objects !== null && !isTextList(objects)) {
    throw badRequest(`objects: expected a list of at most ${LIMITS.subscribedObjects} ids`);
  }
  const isEvent = (name: string): name is EventName => (EVENT_NAMES as readonly string[]).includes(name);
  if (events !== null && !(isTextList(events) && events.every(isEvent))) {
    throw badRequest(`events: expected a list of ${EVENT_NAMES.join(', ')}`);
  }
  return { objects, events: events as EventName[] | null };
}

const isTextList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length <= LIMITS.subscribedObjects && value.every((item) => typeof item === 'string');

/** The narrowing held to the objects that the caller's credentials permit; null permits every one. */
export function narrow(wanted: Narrowing, permitted: readonly string[] | null): Narrowing {
  if (permitted === null) return wanted;
  return { ...wanted, objects: wanted.objects?.filter((id) => permitted.includes(id)) ?? permitted };
}
