/**
 * Webhooks of The Things Stack v3 (https://www.thethingsindustries.com/docs/integrations/data-formats/): uplinks and locations. Its
 * messages omit fields that are 0, false or "".
 */
import { badRequest } from '../../core/errors.js';
import { isObject, type JsonObject } from '../../core/json.js';
import { findPosition } from '../../core/position-fields.js';
import { bestOf, toLocation } from './chirpstack.js';
import {
  asObject,
  identifiers,
  parseBody,
  present,
  type Readout,
  type SourceKind,
  type SourceRequest,
  toNumber,
  toTime,
  without,
} from './kind.js';

const matches = (body: unknown): body is JsonObject => isObject(body) && isObject(body.end_device_ids);

const OF_PACKETS: ReadonlySet<string> = new Set(['time', 'id', 'online', '_id']);

function read(request: SourceRequest): Readout {
  const body = parseBody(request);
  if (!matches(body)) throw badRequest('end_device_ids: required, as The Things Stack sends it');
  const { device_id, dev_eui } = asObject(body.end_device_ids);
  const eui = typeof dev_eui === 'string' ? dev_eui.toLowerCase() : undefined;
  const devices = identifiers(device_id, dev_eui, eui);
  const packet = toPacket(body);
  // Joins and downlinks say nothing of the device.
  const [commandAddress] = identifiers(device_id);
  const omitsZeros = isObject(body.uplink_message);
  const items = packet === null ? [] : [{ devices, packet, omitsZeros, commandAddress }];
  return { items, answer: null, resends: false };
}

function toPacket(body: JsonObject): JsonObject | null {
  const uplink = isObject(body.uplink_message) ? body.uplink_message : null;
  const normalized = isObject(body.uplink_normalized) ? body.uplink_normalized : null;
  const time = toTime(body.received_at ?? uplink?.received_at ?? normalized?.received_at);
  const common = present({ _id: messageIdOf(body), time, simulated: body.simulated });
  if (uplink !== null) return { ...toUplink(uplink, uplink.decoded_payload), ...common };
  if (normalized !== null) return { ...toUplink(normalized, normalized.normalized_payload), ...common };
  if (!isObject(body.location_solved)) return null;
  return { ...toLocation(asObject(body.location_solved.location)), ...common };
}

/** The identifier of the message at the application server, which is the same when it is sent again. */
function messageIdOf({ correlation_ids: ids }: JsonObject): string | undefined {
  const found = Array.isArray(ids) ? ids.find((id) => typeof id === 'string' && id.startsWith('as:up:')) : undefined;
  return found as string | undefined;
}

function toUplink(uplink: JsonObject, payload: unknown): JsonObject {
  const decoded = isObject(payload) ? without(payload, OF_PACKETS) : null;
  const best = bestOf(Array.isArray(uplink.rx_metadata) ? uplink.rx_metadata.map(asObject) : []);
  const radio = { rssi: toNumber(best.rssi), snr: toNumber(best.snr), fPort: uplink.f_port, fCnt: uplink.f_cnt };
  // Without a formatter, the bytes are all that there is.
  const data = decoded === null ? uplink.frm_payload : undefined;
  return { ...present({ ...radio, data }), ...placeOf(uplink, decoded), ...decoded };
}

/** Where the network takes the device to be, if the device does not say it. */
function placeOf({ locations }: JsonObject, decoded: JsonObject | null): JsonObject {
  if (decoded !== null && findPosition(decoded) !== null) return {};
  const known = asObject(locations);
  const [first] = Object.values(known);
  return toLocation(asObject(known['frm-payload'] ?? known.user ?? first));
}

export const ttn: SourceKind = { read, matches };
