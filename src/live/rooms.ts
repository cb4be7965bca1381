/** Computes the rooms of subscribers and events: permissions and filters become one set lookup. Pure. */
import { addressOfGroup, type Caller, mayCall } from '../core/access.js';
import { EVENT_NAMES, isAlarmEvent } from '../core/event-names.js';
import type { EventFilter } from '../core/feed.js';
import type { LiveEvent } from './events.js';

// A room combines an address, an object and an event name; `*` if the filter does not restrict it.
const room = (address: string, object: string, event: string): string => `${address}|${object}|${event}`;

/**
 * The rooms of a subscriber with these addresses and this filter. A filter by groups uses the addresses of these groups instead, since
 * the groups above an object are addresses of its events.
 */
export function roomsOf(addresses: readonly string[], { groups, objects, events }: EventFilter): string[] {
  return (groups?.map(addressOfGroup) ?? addresses).flatMap((address) =>
    (objects ?? ['*']).flatMap((object) => (events ?? ['*']).map((event) => room(address, object, event))),
  );
}

/** The rooms of an event: a subscriber is in at least one of them exactly if its permissions and its filter match. */
export function roomsFor({ name, objectId, audience }: Pick<LiveEvent, 'name' | 'objectId' | 'audience'>): string[] {
  return audience.flatMap((address) => [
    room(address, '*', '*'),
    room(address, objectId, '*'),
    room(address, '*', name),
    room(address, objectId, name),
  ]);
}

/** The rooms of a client. */
export interface Membership {
  readonly rooms: ReadonlySet<string>;
  /** The addresses of its permissions, if its rooms are at other addresses; otherwise null. */
  readonly permitted: ReadonlySet<string> | null;
}

/** Returns a test whether a client receives the event. */
export function createAudienceTest(event: LiveEvent): (client: Membership) => boolean {
  const { name, objectId, limits } = event;
  const roomsAt = (audience: readonly string[]): string[] => roomsFor({ name, objectId, audience });
  const isIn = (client: Membership, rooms: readonly string[]): boolean => rooms.some((one) => client.rooms.has(one));
  const maySee = ({ permitted }: Membership): boolean =>
    permitted === null || event.viewers.some((address) => permitted.has(address));
  const rooms = roomsFor(event);
  if (limits === null) return (client) => isIn(client, rooms) && maySee(client);
  // A client has the same objects and events at each of its addresses, so comparing rooms compares addresses.
  const except = roomsAt(limits.except);
  const within = limits.within.map(roomsAt);
  return (client) =>
    isIn(client, rooms) && !isIn(client, except) && within.every((some) => isIn(client, some)) && maySee(client);
}

/** Restricts a filter to the objects that the credentials permit; null permits all objects. */
export function restrictFilter(wanted: EventFilter, permitted: readonly string[] | null): EventFilter {
  if (permitted === null) return wanted;
  return { ...wanted, objects: wanted.objects?.filter((id) => permitted.includes(id)) ?? permitted };
}

/** Events of alarms are for those who may read alarms. */
export function permittedEvents(caller: Caller, events: EventFilter['events']): EventFilter['events'] {
  if (mayCall(caller, 'GET', ['alarms'])) return events;
  return (events ?? EVENT_NAMES).filter((name) => !isAlarmEvent(name));
}
