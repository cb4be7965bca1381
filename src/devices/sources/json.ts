/** JSON of any form: the `map` of the source says where the values are. Without one, the body is a packet of ours. */
import { badRequest, tooLarge } from '../../core/errors.js';
import { isObject, type Json, type JsonObject } from '../../core/json.js';
import { valueAt } from '../../core/json-path.js';
import { LIMITS } from '../../core/limits.js';
import { type MappedField, scale } from '../../core/source.js';
import { MIB } from '../../core/units.js';
import {
  type Item,
  identifiers,
  inZone,
  parseBody,
  readEach,
  type SourceKind,
  type SourceRequest,
  toList,
  toNumber,
} from './kind.js';

function mapped(value: Json, field: MappedField): Json {
  if (field.factor === 1 && field.offset === 0) return value;
  const number = toNumber(value);
  return number === undefined ? value : scale(number, field);
}

/** Counts what a map makes of a request: many fields may have the same large value. Throws a 413. */
function createCounter(): (name: string, field: MappedField, found: Json | undefined) => void {
  let left: number = LIMITS.sourceMappedBytes;
  return (name, { path }, found) => {
    left -= path.length + (found === undefined ? 0 : name.length + sizeOf(found, left));
    if (left >= 0) return;
    const most = LIMITS.sourceMappedBytes / MIB;
    throw tooLarge(`the map of the source makes more than ${most} MiB of the body: send fewer measurements at once`);
  };
}

/** About how many characters of JSON a value has; counting ends beyond `most`. */
function sizeOf(value: Json, most: number): number {
  let size = 0;
  const rest: Json[] = [value];
  for (let next = rest.pop(); next !== undefined && size <= most; next = rest.pop()) {
    size += (typeof next === 'string' ? next.length : 0) + OVERHEAD;
    if (Array.isArray(next)) for (const item of next) rest.push(item);
    else if (isObject(next)) {
      for (const [name, member] of Object.entries(next)) {
        size += name.length + OVERHEAD;
        rest.push(member);
      }
    }
  }
  return size;
}

/** Quotation marks and a comma; a number has about as many digits. */
const OVERHEAD = 3;

function readMapped(body: unknown, { map, zone }: SourceRequest, count: ReturnType<typeof createCounter>): Item {
  const packet: JsonObject = {};
  let devices: string[] = [];
  for (const [name, field] of map.fields) {
    const found = valueAt(body, field.path);
    count(name, field, found);
    if (found === undefined) continue;
    if (name === 'object') devices = identifiers(found);
    else if (name === 'time') packet.time = inZone(field.factor === 1 ? found : mappedTime(found, field), zone);
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
  return { devices, packet: time === undefined ? body : { ...body, time: inZone(time, zone) } };
}

export const json: SourceKind = {
  read(request) {
    const body = parseBody(request);
    const isPlain = request.map.fields.size === 0;
    const count = createCounter();
    const readOne = (item: unknown): Item => (isPlain ? readPlain(item, request) : readMapped(item, request, count));
    return { items: readEach(toList(body), readOne), answer: null, resends: false };
  },
  // Everything is.
  matches: () => false,
};
