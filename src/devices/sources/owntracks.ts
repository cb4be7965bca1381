/**
 * OwnTracks (https://owntracks.org/booklet/tech/json/), over HTTP and in the same form over MQTT. Its apps send again until the answer is
 * a list in JSON.
 */
import { badRequest } from '../../core/errors.js';
import { isObject, type Json, type JsonObject } from '../../core/json.js';
import {
  type Answer,
  type Item,
  identifiers,
  JSON_TYPE,
  known,
  parameter,
  parseBody,
  parseOrNull,
  present,
  type Readout,
  type SourceKind,
  type SourceRequest,
  toDegrees,
  toNumber,
  toTime,
  without,
} from './kind.js';
import { namesIn } from './owntracks-topics.js';

const DONE = { type: JSON_TYPE, body: '[]' };

/** What becomes a field of ours, or says nothing of the device. */
const TAKEN: ReadonlySet<string> = new Set(
  ['_type', '_id', 'tst', 'lat', 'lon', 'vel', 'cog', 'alt', 'batt', 'acc', 'topic', 'created_at'].concat('time', 'id'),
);

/** What says nothing of a beacon, or of a status. */
const OF_MESSAGE: ReadonlySet<string> = new Set(['_type', '_id', 'tst', 'topic', 'created_at', 'time', 'id']);

const OF_NO_INTEREST: ReadonlySet<unknown> = new Set(['card', 'cmd', 'configuration', 'waypoints', 'request', 'dump']);

const OF_INTEREST: ReadonlySet<unknown> = new Set([
  'location',
  'transition',
  'waypoint',
  'status',
  'beacon',
  'steps',
  'lwt',
  'encrypted',
]);

/** Whether a parsed payload is one of OwnTracks. */
export const isOwnTracks = (body: unknown): body is JsonObject =>
  isObject(body) && (OF_INTEREST.has(body._type) || OF_NO_INTEREST.has(body._type));

/** The packet of a payload; null for one that says nothing of the device. Throws a 400. */
export function toOwnTracksPacket(body: JsonObject): JsonObject | null {
  const { _type: type } = body;
  if (OF_NO_INTEREST.has(type)) return null;
  if (type === 'encrypted')
    throw badRequest('the payload is encrypted: OwnTracks must send it without an encryption key');
  // The time in a last will is that of the connection which it ends.
  if (type === 'lwt') return { online: false };
  const common = { ...present({ _id: body._id }), ...present({ time: toTime(body.tst) }) };
  if (type === 'location') {
    for (const name of ['lat', 'lon']) if (body[name] === undefined) throw badRequest(`${name}: required`);
  }
  // One of a beacon may have no place.
  if (type === 'location' || type === 'transition') return { ...common, ...toPosition(body) };
  // Of a place, not of the device.
  if (type === 'waypoint') return { ...common, waypoint: without(body, new Set(['_type', '_id', 'topic'])) };
  if (type === 'status' || type === 'beacon') return { ...common, [type]: without(body, OF_MESSAGE) };
  if (type === 'steps') return { ...common, ...without(body, TAKEN) };
  if (typeof type !== 'string') throw badRequest('_type: expected text');
  throw badRequest(`_type: ${JSON.stringify(type.slice(0, 40))} is none of OwnTracks`);
}

/** A command as the app takes it: `reportLocation`, `setWaypoints` with `waypoints`, and so on. */
export const toOwnTracksCommand = (action: string, params: JsonObject): JsonObject => ({
  ...params,
  _type: 'cmd',
  action,
});

/** What the app gets besides that its payload is stored. */
export const toOwnTracksAnswer = (
  commands: readonly { readonly command: string; readonly params: JsonObject }[],
): Answer => ({
  type: JSON_TYPE,
  body: JSON.stringify(commands.map(({ command, params }) => toOwnTracksCommand(command, params))),
});

function toPosition(body: JsonObject): JsonObject {
  const fields = {
    lat: toDegrees('lat', body.lat, 90),
    lon: toDegrees('lon', body.lon, 180),
    // Already in km/h.
    speed: known(body.vel),
    angle: known(body.cog),
    height: toNumber(body.alt),
    accuracy: known(body.acc),
    battery: known(body.batt),
  };
  return { ...without(body, TAKEN), ...present(fields) };
}

/** `owntracks/jane/phone` names the device: by both names, by its own, by its tracker id, by its user. */
function devicesOf(topic: Json | undefined, headers: SourceRequest['headers'], tid: Json | undefined): string[] {
  const named = typeof topic === 'string' ? namesIn(topic) : { user: undefined, device: undefined };
  const text = (value: string | string[] | undefined): string | undefined =>
    typeof value === 'string' ? value : undefined;
  const user = text(headers['x-limit-u']) ?? named.user;
  const device = text(headers['x-limit-d']) ?? named.device;
  const both = user && device ? `${user}-${device}` : undefined;
  return identifiers(both, device, tid, user);
}

const matches = (body: unknown): boolean => isObject(body) && typeof body._type === 'string';

function read(request: SourceRequest): Readout {
  const done = (items: readonly Item[]): Readout => ({ items, answer: DONE, resends: true });
  // That a friend was removed.
  if (request.body.length === 0) return done([]);
  const body = parseBody(request);
  if (!isObject(body) || !matches(body)) throw badRequest('_type: required, as OwnTracks sends it');
  const headers = { 'x-limit-u': parameter(request, 'u'), 'x-limit-d': parameter(request, 'd'), ...request.headers };
  const devices = devicesOf(body.topic, headers, body.tid);
  const packet = toOwnTracksPacket(body);
  return done(packet === null ? [] : [{ devices, packet }]);
}

const endless = { answer: DONE, isMeant: (request: SourceRequest): boolean => matches(parseOrNull(request)) };

export const owntracks: SourceKind = { read, matches, endless };
