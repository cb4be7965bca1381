/**
 * Traccar Client and OsmAnd. Both send a query or a form (https://www.traccar.org/osmand/): `id`, `lat`, `lon`, `timestamp`, `speed` in
 * knots. Traccar Client 9 sends JSON.
 */
import { parse } from 'node:querystring';
import { badRequest, tooLarge } from '../../core/errors.js';
import type { Json, JsonObject } from '../../core/json.js';
import { LIMITS } from '../../core/limits.js';
import { KIB } from '../../core/units.js';
import type { Zone } from '../../core/zone.js';
import {
  fromKnots,
  identifiers,
  isText,
  known,
  lastOf,
  parseBody,
  parseOrNull,
  present,
  type Readout,
  type Sample,
  type SourceKind,
  type SourceRequest,
  toDegrees,
  toNumber,
  without,
} from './kind.js';
import { isLocation, readLocations, timeOf } from './osmand-json.js';

const EMPTY = { type: 'text/plain; charset=utf-8', body: '' };

/** What becomes a field of ours, or says nothing. */
const TAKEN: ReadonlySet<string> = new Set(
  [
    'id',
    'deviceid',
    'device_id',
    'device',
    'lat',
    'lon',
    'location',
    'timestamp',
    'speed',
    'bearing',
    'heading',
  ].concat(['altitude', 'accuracy', 'batt', 'charge', 'valid', 'driverUniqueId', 'key']),
);

function readParameters(given: JsonObject, zone: Zone | null): Sample {
  const devices = identifiers(given.id, given.deviceid, given.device_id, given.device);
  if (devices.length === 0) throw badRequest('id: required, the identifier of the device');
  const [lat, lon] = typeof given.location === 'string' ? given.location.split(',') : [given.lat, given.lon];
  const packet = {
    time: timeOf(given.timestamp, zone),
    lat: toDegrees('lat', lat, 90),
    lon: toDegrees('lon', lon, 180),
    speed: fromKnots(given.speed),
    angle: known(given.bearing ?? given.heading),
    height: toNumber(given.altitude),
    accuracy: known(given.accuracy),
    battery: known(given.batt),
    charge: toBoolean(given.charge),
    valid: toBoolean(given.valid),
    driver: given.driverUniqueId,
  };
  const others = Object.entries(without(given, TAKEN)).map(([name, value]) => [name, typed(value)]);
  return { devices, packet: { ...Object.fromEntries(others), ...present(packet) } };
}

const toBoolean = (value: Json | undefined): Json | undefined => {
  if (typeof value !== 'string') return value;
  return /^(?:true|1)$/i.test(value) ? true : /^(?:false|0)$/i.test(value) ? false : value;
};

/** Sensors are numbers: a form has only text. Each cell and each access point has a parameter of the same name. */
const typed = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(typed);
  const number = typeof value === 'string' && /^-?(?:0|[1-9]\d{0,14})(?:\.\d+)?$/.test(value) ? Number(value) : null;
  return number ?? toBoolean(value) ?? value;
};

function read(request: SourceRequest): Readout {
  const type = String(request.headers['content-type'] ?? '');
  const text = request.body.toString('latin1', 0, 1).trim();
  // Without a body, the measurements are in the query, whatever the type says.
  if ((/json/i.test(type) && request.body.length > 0) || text === '{' || text === '[') {
    const body = parseBody(request);
    if (!isLocation(body))
      throw badRequest('the body: expected {location: {coords, …}, device_id}, as Traccar Client sends it');
    return { items: readLocations(body, request.zone), answer: EMPTY, resends: true };
  }
  if (request.body.length > LIMITS.packetBytes) throw tooLarge(`a form of more than ${LIMITS.packetBytes / KIB} KiB`);
  const parameters = { ...request.query, ...parse(request.body.toString()) };
  // Only what has a name of its own may be a list.
  const named = Object.entries(parameters).map(([name, value]) => [name, TAKEN.has(name) ? lastOf(value) : value]);
  // Apps leave empty what they do not know.
  const given = named.filter(([, value]) => value !== '');
  return { items: [readParameters(Object.fromEntries(given), request.zone)], answer: EMPTY, resends: true };
}

const endless: SourceKind['endless'] = {
  answer: EMPTY,
  isMeant(request) {
    const { id, deviceid, device_id, device } = {
      ...request.query,
      ...parse(request.body.toString('utf8', 0, LIMITS.packetBytes)),
    };
    return isLocation(parseOrNull(request)) || [id, deviceid, device_id, device].some((one) => isText(lastOf(one)));
  },
};

export const osmand: SourceKind = { read, matches: isLocation, isQuery: true, endless };
