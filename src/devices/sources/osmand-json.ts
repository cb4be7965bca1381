/** The JSON of Traccar Client 9, as its location library writes it: `location.coords`, `speed` in m/s (https://www.traccar.org/osmand/). */
import { badRequest } from '../../core/errors.js';
import { isObject, type Json, type JsonObject } from '../../core/json.js';
import { parseDeviceTime } from '../../core/time.js';
import type { Zone } from '../../core/zone.js';
import {
  asObject,
  fromMetresPerSecond,
  type Item,
  identifiers,
  inZone,
  known,
  percent,
  present,
  readEach,
  toDegrees,
  toList,
  toNumber,
  without,
} from './kind.js';

/** What becomes a field of ours, says nothing, or is one of the others below. */
const TAKEN_OF_LOCATION: ReadonlySet<string> = new Set(
  ['timestamp', 'coords', 'battery', 'activity', 'extras', 'is_moving', 'odometer', '_'].concat(
    '_id',
    'time',
    'id',
    'online',
  ),
);

const TAKEN_OF_COORDS: ReadonlySet<string> = new Set(
  ['latitude', 'longitude', 'accuracy', 'speed', 'heading', 'altitude'].concat('time', 'id', 'online', '_id'),
);

const OF_PACKETS: ReadonlySet<string> = new Set(['time', 'id', 'online', '_id']);

/** The samples of a body; its library can send several locations at once. Throws a 400. */
export function readLocations(body: JsonObject, zone: Zone | null): Iterable<Item> {
  const devices = identifiers(body.device_id, body.deviceid, body.id);
  if (devices.length === 0) throw badRequest('device_id: required, the identifier of the device');
  return readEach(toList(body.location), (location) => ({ devices, packet: toPacket(asObject(location), zone) }));
}

/** Throws a 400. */
function toPacket(location: JsonObject, zone: Zone | null): JsonObject {
  const coords = asObject(location.coords);
  const battery = asObject(location.battery);
  const packet = {
    time: timeOf(location.timestamp, zone),
    lat: toDegrees('latitude', coords.latitude, 90),
    lon: toDegrees('longitude', coords.longitude, 180),
    speed: fromMetresPerSecond(coords.speed),
    angle: known(coords.heading),
    height: toNumber(coords.altitude),
    accuracy: known(coords.accuracy),
    battery: percent(battery.level),
    charge: battery.is_charging,
    activity: asObject(location.activity).type,
    odometer: known(location.odometer),
    motion: location.is_moving,
  };
  // What an app adds by itself: `heartbeat`, `alarm`, values of sensors.
  const extras = without(asObject(location.extras), OF_PACKETS);
  // `speed_accuracy` and others, which are -1 if they are unknown.
  const others = Object.entries(without(coords, TAKEN_OF_COORDS)).filter(([, value]) => value !== -1);
  const kept = { ...present(Object.fromEntries(others)), ...extras, ...without(location, TAKEN_OF_LOCATION) };
  return { ...kept, ...present(packet) };
}

/** Whether a parsed body is this JSON. */
export function isLocation(body: unknown): body is JsonObject {
  const { location } = asObject(body as Json);
  return isObject(asObject(Array.isArray(location) ? location[0] : location).coords);
}

/** In ms. Throws a 400 for what is no time. */
export function timeOf(timestamp: Json | undefined, zone: Zone | null): Json | undefined {
  if (timestamp === undefined || timestamp === '') return undefined;
  const timeMs = parseDeviceTime(inZone(timestamp, zone));
  if (timeMs === null) throw badRequest('timestamp: expected seconds or milliseconds since the epoch, or ISO 8601');
  return timeMs;
}
