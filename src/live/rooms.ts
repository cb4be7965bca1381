/** In which rooms a listener is and to which an event goes: rights and narrowing become one set lookup. Pure. */
import type { Narrowing } from '../model/feed.js';
import type { LiveEvent } from './events.js';

// A room is an address of readers, an object and an event's name; `*` where the listener did not narrow.
const room = (address: string, object: string, event: string): string => `${address}|${object}|${event}`;

/** The rooms of a listener at these addresses. */
export function roomsOf(addresses: readonly string[], { objects, events }: Narrowing): string[] {
  return addresses.flatMap((address) =>
    (objects ?? ['*']).flatMap((object) => (events ?? ['*']).map((event) => room(address, object, event))),
  );
}

/** The rooms an event goes to: a listener is in at least one of them just when its readers and its narrowing agree. */
export function roomsFor({ name, objectId, readers }: Pick<LiveEvent, 'name' | 'objectId' | 'readers'>): string[] {
  return readers.flatMap((address) => [
    room(address, '*', '*'),
    room(address, objectId, '*'),
    room(address, '*', name),
    room(address, objectId, name),
  ]);
}

/** The narrowing held to the objects that the caller's credentials permit; null permits every one. */
export function narrow(wanted: Narrowing, permitted: readonly string[] | null): Narrowing {
  if (permitted === null) return wanted;
  return { ...wanted, objects: wanted.objects?.filter((id) => permitted.includes(id)) ?? permitted };
}
