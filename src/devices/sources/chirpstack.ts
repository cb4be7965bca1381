/**
 * Events of ChirpStack v4 (https://www.chirpstack.io/docs/chirpstack/integrations/events.html) in JSON: the query names the event. What is
 * no measurement, such as a join, becomes a packet only if the `map` of the source has `events`; what became of a command is noted there.
 */
import { badRequest } from '../../core/errors.js';
import { isObject, type JsonObject } from '../../core/json.js';
import { findPosition, isPosition } from '../../core/position-fields.js';
import {
  asObject,
  type DeviceReceipt,
  hasMembers,
  identifiers,
  isText,
  known,
  parameter,
  parseBody,
  present,
  type Readout,
  type SourceKind,
  type SourceRequest,
  toDegrees,
  toNumber,
  toReason,
  toTime,
  without,
} from './kind.js';

const matches = (body: unknown): body is JsonObject =>
  isObject(body) && typeof asObject(body.deviceInfo).devEui === 'string';

const MEASURING: ReadonlySet<string> = new Set(['up', 'status', 'location']);
/** What every event has, and what a packet says in its own way. */
const COMMON: ReadonlySet<string> = new Set([
  'deduplicationId',
  'time',
  'deviceInfo',
  'location',
  'object',
  'rxInfo',
  'txInfo',
]);
const OF_PACKETS: ReadonlySet<string> = new Set(['time', 'id', 'online', '_id']);

function read(request: SourceRequest): Readout {
  const body = parseBody(request);
  if (!matches(body)) throw badRequest('deviceInfo.devEui: required, as ChirpStack v4 sends it in JSON');
  const event = parameter(request, 'event') ?? eventOf(body);
  const isWanted = MEASURING.has(event) || request.map.takesEvents;
  const { devEui, deviceName } = asObject(body.deviceInfo);
  const devices = identifiers(devEui, String(devEui).toUpperCase(), deviceName);
  const [commandAddress] = identifiers(devEui);
  const items = isWanted ? [{ devices, packet: toPacket(event, body), commandAddress }] : [];
  return { items, receipt: toReceipt(devices, event, body), answer: null, resends: false };
}

/** https://www.chirpstack.io/docs/chirpstack/integrations/events.html: a `log` names the command that was thrown away. */
function toReceipt(devices: readonly string[], event: string, body: JsonObject): DeviceReceipt | null {
  const { queue_item_id: discarded } = asObject(body.context);
  const id = event === 'log' && body.level === 'ERROR' ? discarded : body.queueItemId;
  const status = statusOf(event, body);
  if (!isText(id) || status === null) return null;
  const reason = event === 'log' ? toReason(body.description) : 'the device did not acknowledge it in time';
  return { devices, command: { downlinkId: id }, status, reason: status === 'failed' ? reason : null };
}

function statusOf(event: string, body: JsonObject): DeviceReceipt['status'] | null {
  if (event === 'txack') return 'sent';
  if (event === 'log') return 'failed';
  // False is omitted.
  if (event === 'ack') return body.acknowledged === true ? 'delivered' : 'failed';
  return null;
}

/** Of a sender that leaves the query out. */
function eventOf(body: JsonObject): string {
  if (body.queueItemId !== undefined) return body.downlinkId === undefined ? 'ack' : 'txack';
  if (isObject(body.location)) return 'location';
  if (body.batteryLevel !== undefined || body.margin !== undefined) return 'status';
  return body.rxInfo === undefined && body.data === undefined ? 'unknown' : 'up';
}

function toPacket(event: string, body: JsonObject): JsonObject {
  const common = present({ _id: body.deduplicationId, time: toTime(body.time) });
  if (event === 'up') return { ...toUplink(body), ...common };
  if (event === 'location') return { ...toLocation(asObject(body.location)), ...common };
  if (event !== 'status') return { ...without(body, COMMON), event, ...common };
  const { batteryLevel, margin = 0, externalPowerSource, batteryLevelUnavailable } = body;
  // The level of a device that has no battery, or cannot measure it, is 0, which may be omitted.
  const isUnknown = externalPowerSource === true || batteryLevelUnavailable === true;
  const battery = isUnknown ? undefined : known(batteryLevel);
  return present({ ...common, battery, margin: toNumber(margin), externalPowerSource });
}

function toUplink(body: JsonObject): JsonObject {
  const { fPort, fCnt = 0, dr = 0, data, confirmed } = body;
  const object = hasMembers(body.object) ? without(body.object, OF_PACKETS) : null;
  const best = bestOf(Array.isArray(body.rxInfo) ? body.rxInfo.map(asObject) : []);
  const isLora = isObject(asObject(asObject(body.txInfo).modulation).lora);
  const radio = { ...signalOf(best, isLora), fPort, fCnt, dr, confirmed };
  // Without a decoder, or where it found nothing, the bytes are all that there is.
  const place = object === null || findPosition(object) !== null ? null : cayennePlaceOf(object);
  return { ...present({ ...radio, data: object === null ? data : undefined }), ...place, ...object };
}

/** What the gateway with the strongest signal has measured. */
export function bestOf(gateways: readonly JsonObject[]): JsonObject {
  const rssiOf = (gateway: JsonObject): number => toNumber(gateway.rssi) ?? Number.NEGATIVE_INFINITY;
  return gateways.reduce((best, one) => (rssiOf(one) > rssiOf(best) ? one : best), gateways[0] ?? {});
}

/** 0 dB is omitted, as all zeros are; of other modulations than LoRa, there is no ratio. */
export const signalOf = (gateway: JsonObject, isLora: boolean) => ({
  rssi: toNumber(gateway.rssi),
  snr: toNumber(gateway.snr) ?? (isLora && gateway.rssi !== undefined ? 0 : undefined),
});

/** Of a network server that has located the device. */
export const toLocation = (location: JsonObject): JsonObject =>
  present({
    lat: toDegrees('latitude', location.latitude, 90),
    lon: toDegrees('longitude', location.longitude, 180),
    height: toNumber(location.altitude),
    accuracy: known(location.accuracy),
    source: location.source,
  });

/** The place that the decoder of CayenneLPP writes: `gps_1` in The Things Stack, and `gpsLocation` with a channel in ChirpStack. */
export function cayennePlaceOf(decoded: JsonObject): JsonObject | null {
  const named = Object.entries(decoded).flatMap(([name, value]) => (/^gps_\d{1,3}$/.test(name) ? [value] : []));
  const places = [...named, ...Object.values(asObject(decoded.gpsLocation))].map(asObject);
  const first = places.find(({ latitude, longitude }) => isPosition(toNumber(latitude), toNumber(longitude)));
  return first === undefined ? null : toLocation(first);
}

export const chirpstack: SourceKind = { read, matches };
