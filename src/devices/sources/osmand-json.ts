/** The JSON of Traccar Client 9, as its location library writes it: `location.coords`, `speed` in m/s (https://www.traccar.org/osmand/). */
import { badRequest } from '../../core/errors.js';
import { isObject, type Json, type JsonObject } from '../../core/json.js';
import { parseDeviceTime } from '../../core/time.js';
import type { Zone } from '../../core/zone.js';
import {
  asObject,
  fromMetresPerSecond,
  identifiers,
  inZone,
  known,
  percent,
  present,
  type Sample,
  toDegrees,
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

/** Throws a 400. */
export function readLocation(body: JsonObject, zone: Zone | null): Sample {
  const devices = identifiers(body.device_id, body.deviceid, body.id);
  if (devices.length === 0) throw badRequest('device_id: required, the identifier of the device');
  const location = asObject(body.location);
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
  return { devices, packet: { ...kept, ...present(packet) } };
}

/** Whether a parsed body is this JSON. */
export const isLocation = (body: unknown): body is JsonObject =>
  isObject(body) && isObject(body.location) && isObject(asObject(body.location).coords);

/** In ms. Throws a 400 for what is no time. */
export function timeOf(timestamp: Json | undefined, zone: Zone | null): Json | undefined {
  if (timestamp === undefined || timestamp === '') return undefined;
  const timeMs = parseDeviceTime(inZone(timestamp, zone));
  if (timeMs === null) throw badRequest('timestamp: expected seconds or milliseconds since the epoch, or ISO 8601');
  return timeMs;
}
