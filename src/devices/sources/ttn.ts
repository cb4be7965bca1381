/**
 * Webhooks of The Things Stack v3 (https://www.thethingsindustries.com/docs/integrations/data-formats/): uplinks, locations, and what became
 * of downlinks. Its messages omit fields that are 0, false or "".
 */
import { COMMAND_PREFIX } from '../../core/command.js';
import { badRequest } from '../../core/errors.js';
import { isObject, type JsonObject } from '../../core/json.js';
import { findPosition } from '../../core/position-fields.js';
import { bestOf, cayennePlaceOf, signalOf, toLocation } from './chirpstack.js';
import {
  asObject,
  type DeviceReceipt,
  hasMembers,
  identifiers,
  isText,
  known,
  parseBody,
  present,
  type Readout,
  type SourceKind,
  type SourceRequest,
  toReason,
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
  // Joins and downlinks measure nothing.
  const [commandAddress] = identifiers(device_id);
  // A formatter that failed, or found nothing, has measured no zero.
  const omitsZeros = hasMembers(asObject(body.uplink_message).decoded_payload);
  const items = packet === null ? [] : [{ devices, packet, omitsZeros, commandAddress }];
  return { items, receipt: toReceipt(devices, body), answer: null, resends: false };
}

/** A downlink that was not acknowledged (`downlink_nack`) is sent again: nothing has become of it yet. */
const DOWNLINK_ENDS = [
  ['downlink_sent', 'sent'],
  ['downlink_ack', 'delivered'],
  ['downlink_failed', 'failed'],
] as const;

function toReceipt(devices: readonly string[], body: JsonObject): DeviceReceipt | null {
  const end = DOWNLINK_ENDS.find(([name]) => isObject(body[name]));
  if (end === undefined) return null;
  const [name, status] = end;
  const { downlink, error, correlation_ids } = asObject(body[name]);
  const ids = [body.correlation_ids, correlation_ids, asObject(downlink).correlation_ids].flat();
  const ours = ids.find((id): id is string => typeof id === 'string' && id.startsWith(COMMAND_PREFIX));
  if (ours === undefined) return null;
  const { message_format, name: errorName } = asObject(error);
  const reason = status === 'failed' ? toReason([message_format, errorName].find(isText)) : null;
  return { devices, command: { id: ours.slice(COMMAND_PREFIX.length) }, status, reason };
}

function toPacket(body: JsonObject): JsonObject | null {
  const uplink = isObject(body.uplink_message) ? body.uplink_message : null;
  const normalized = isObject(body.uplink_normalized) ? body.uplink_normalized : null;
  const time = toTime(body.received_at ?? uplink?.received_at ?? normalized?.received_at);
  const timed = present({ time, simulated: body.simulated });
  // Each measurement of an uplink is a message of its own, with the correlation ids of the uplink.
  if (normalized !== null) {
    const { time: measured } = asObject(normalized.normalized_payload);
    const own = present({ time: isText(measured) ? toTime(measured) : undefined });
    return { ...toUplink(normalized, normalized.normalized_payload), ...timed, ...own };
  }
  const common = { ...present({ _id: messageIdOf(body) }), ...timed };
  if (uplink !== null) return { ...toUplink(uplink, uplink.decoded_payload), ...common };
  if (!isObject(body.location_solved)) return null;
  return { ...toLocation(asObject(body.location_solved.location)), ...common };
}

/** The identifier of the message at the application server, which is the same when it is sent again. */
function messageIdOf({ correlation_ids: ids }: JsonObject): string | undefined {
  const found = Array.isArray(ids) ? ids.find((id) => typeof id === 'string' && id.startsWith('as:up:')) : undefined;
  return found as string | undefined;
}

const isLora = ({ settings }: JsonObject): boolean => isObject(asObject(asObject(settings).data_rate).lora);

function toUplink(uplink: JsonObject, payload: unknown): JsonObject {
  const decoded = hasMembers(payload) ? without(payload, OF_PACKETS) : null;
  const best = bestOf(Array.isArray(uplink.rx_metadata) ? uplink.rx_metadata.map(asObject) : []);
  // The level of the last status that the device has sent to the network.
  const battery = known(asObject(uplink.last_battery_percentage).value);
  const radio = { ...signalOf(best, isLora(uplink)), fPort: uplink.f_port, fCnt: uplink.f_cnt ?? 0, battery };
  // Without a formatter, or where it found nothing, the bytes are all that there is.
  const data = decoded === null ? uplink.frm_payload : undefined;
  return { ...present({ ...radio, data }), ...placeOf(uplink, decoded), ...decoded };
}

/** Where the network takes the device to be, if the device does not say it. */
function placeOf({ locations }: JsonObject, decoded: JsonObject | null): JsonObject {
  if (decoded !== null && findPosition(decoded) !== null) return {};
  const own = decoded === null ? null : cayennePlaceOf(decoded);
  if (own !== null) return own;
  const places = asObject(locations);
  const [first] = Object.values(places);
  return toLocation(asObject(places['frm-payload'] ?? places.user ?? first));
}

export const ttn: SourceKind = { read, matches };
