/** JSON of any form: the `map` of the source says where the values are. Without one, the body is a packet of ours. */
import { badRequest } from '../../core/errors.js';
import { isObject, type Json, type JsonObject } from '../../core/json.js';
import { valueAt } from '../../core/json-path.js';
import { type MappedField, scale } from '../../core/source.js';
import { parseDeviceTime } from '../../core/time.js';
import type { Zone } from '../../core/zone.js';
import {
  type Item,
  identifiers,
  parseBody,
  readEach,
  type SourceKind,
  type SourceRequest,
  toList,
  toNumber,
} from './kind.js';

const HAS_ZONE = /(?:Z|UTC?|GMT|[+-]\d\d(?::?\d\d)?)(?: \([^()]*\))?$/i;

/** A time without a zone is one of the source's zone. */
function toTime(value: Json, zone: Zone | null): Json {
  if (zone === null || typeof value !== 'string' || HAS_ZONE.test(value.replace(/^\d{4}-\d\d-\d\d/, ''))) return value;
  const isDigits = /^[\d.+-]+$/.test(value.trim()) && !/^\d{4}-/.test(value.trim());
  const localMs = isDigits ? null : parseDeviceTime(value);
  return localMs === null ? value : zone.toInstant(localMs);
}

function mapped(value: Json, field: MappedField): Json {
  if (field.factor === 1 && field.offset === 0) return value;
  const number = toNumber(value);
  return number === undefined ? value : scale(number, field);
}

function readMapped(body: unknown, { map, zone }: SourceRequest): Item {
  const packet: JsonObject = {};
  let devices: string[] = [];
  for (const [name, field] of map.fields) {
    const found = valueAt(body, field.path);
    if (found === undefined) continue;
    if (name === 'object') devices = identifiers(found);
    else if (name === 'time') packet.time = toTime(field.factor === 1 ? found : mappedTime(found, field), zone);
    else packet[name] = mapped(found, field);
  }
  if (Object.keys(packet).every((name) => name === 'time')) {
    throw badRequest('the body has none of the values that the map of the source names');
  }
  return { devices, packet };
}

/** Milliseconds. */
function mappedTime(value: Json, { factor, offset }: MappedField): Json {
  const number = toNumber(value);
  return number === undefined ? value : Math.round(number * factor + offset);
}

function readPlain(body: unknown, { zone }: SourceRequest): Item {
  if (!isObject(body)) throw badRequest('expected a JSON object');
  const { object, id, deviceId, device_id, device, time } = body;
  const devices = identifiers(object, id, deviceId, device_id, device);
  return { devices, packet: time === undefined ? body : { ...body, time: toTime(time, zone) } };
}

export const json: SourceKind = {
  read(request) {
    const body = parseBody(request);
    const readOne = request.map.fields.size === 0 ? readPlain : readMapped;
    const items = readEach(toList(body), (item) => readOne(item, request));
    return { items, answer: null, resends: false };
  },
  // Everything is.
  matches: () => false,
};
