/**
 * Positions and events that a Traccar server forwards (`forward.type=json`, https://www.traccar.org/forward/): `{position, device}` and
 * `{event, position, device}`. Its ids restart with its database, so that they identify nothing.
 */
import { badRequest } from '../../core/errors.js';
import { isObject, type JsonObject } from '../../core/json.js';
import {
  asObject,
  fromKnots,
  identifiers,
  known,
  parseBody,
  parseOrNull,
  present,
  type Sample,
  type SourceKind,
  toDegrees,
  toNumber,
  toTime,
} from './kind.js';

const matches = (body: unknown): body is JsonObject =>
  isObject(body) && (isObject(body.position) || isObject(body.event)) && isObject(body.device);

function readBody(body: unknown): Sample {
  if (!matches(body))
    throw badRequest('the body: expected {position, device} or {event, device}, as Traccar forwards it');
  const device = asObject(body.device);
  const devices = identifiers(device.uniqueId, device.name);
  const position = isObject(body.position) ? toPosition(body.position) : {};
  const [commandAddress] = identifiers(device.id);
  const packet = isObject(body.event) ? withEvent(position, body.event, body) : position;
  return { devices, packet, commandAddress };
}

function toPosition(position: JsonObject): JsonObject {
  const { attributes, protocol, outdated, geofenceIds } = position;
  // The one of Traccar is in volts.
  const { battery: batteryVoltage, ...given } = asObject(attributes);
  const common = { battery: known(given.batteryLevel), batteryVoltage, protocol, outdated, geofenceIds };
  const fix = outdated === true ? { time: toTime(position.deviceTime ?? position.serverTime) } : toFix(position);
  return { ...toAttributes(given), ...present({ ...common, ...fix }) };
}

/** Of a device without a fix, Traccar repeats the last one, and its time, and calls it outdated; the first one is of 1970. */
function toFix(position: JsonObject) {
  const accuracy = known(position.accuracy);
  return {
    time: toTime(position.fixTime ?? position.deviceTime ?? position.serverTime),
    lat: toDegrees('latitude', position.latitude, 90),
    lon: toDegrees('longitude', position.longitude, 180),
    speed: fromKnots(position.speed),
    angle: known(position.course),
    height: toNumber(position.altitude),
    // Traccar has 0 for an unknown one.
    accuracy: accuracy === 0 ? undefined : accuracy,
    valid: position.valid,
    address: position.address,
  };
}

/** The server makes the last two where a device has sent nothing for some time. */
const ONLINE: ReadonlyMap<unknown, boolean> = new Map([
  ['deviceOnline', true],
  ['deviceOffline', false],
  ['deviceUnknown', false],
  ['deviceInactive', false],
]);

/** What the position says counts, where the event repeats it: the `speed` of `deviceOverspeed`. */
function withEvent(position: JsonObject, event: JsonObject, body: JsonObject): JsonObject {
  const fields = {
    time: toTime(event.eventTime ?? event.serverTime),
    event: event.type,
    geofence: event.geofenceId === 0 ? undefined : event.geofenceId,
    geofenceName: asObject(body.geofence).name,
    maintenance: asObject(body.maintenance).name,
    // Of several alarms of a position, each has an event.
    alarm: asObject(event.attributes).alarm,
    online: ONLINE.get(event.type),
  };
  return { ...toAttributes(asObject(event.attributes)), ...position, ...present(fields) };
}

/** Attributes must not be taken for fields of packets. Traccar has all speeds but that of OBD in knots. */
function toAttributes({ time: _, id: __, online: ___, speed, speedLimit, ...attributes }: JsonObject): JsonObject {
  return { ...attributes, ...present({ speed: fromKnots(speed), speedLimit: fromKnots(speedLimit) }) };
}

export const traccar: SourceKind = {
  read: (request) => ({ items: [readBody(parseBody(request))], answer: null, resends: true }),
  matches,
  endless: { answer: null, isMeant: (request) => matches(parseOrNull(request)) },
};
