/**
 * Notifications of Shelly devices of the second generation and later (https://shelly-api-docs.shelly.cloud/gen2/General/Notifications), over
 * HTTP from a script, and in the same form over MQTT in `<prefix>/events/rpc`.
 */
import { badRequest } from '../../core/errors.js';
import { isObject, type JsonObject } from '../../core/json.js';
import { asObject, identifiers, parseBody, present, type SourceKind, toTime, without } from './kind.js';

const METHODS: ReadonlySet<unknown> = new Set(['NotifyStatus', 'NotifyFullStatus', 'NotifyEvent']);

const isNotification = (body: unknown): body is JsonObject =>
  isObject(body) && METHODS.has(body.method) && isObject(body.params);

const TAKEN: ReadonlySet<string> = new Set(['ts', 'time', 'id', 'online']);

/** The status of each component is a member: `switch:0.apower`. */
export function toShellyPacket(body: unknown): JsonObject {
  if (!isNotification(body))
    throw badRequest('method: expected NotifyStatus, NotifyFullStatus or NotifyEvent, as Shelly sends it');
  const params = asObject(body.params);
  return { ...without(params, TAKEN), ...present({ time: toTime(params.ts) }) };
}

export const shelly: SourceKind = {
  read(request) {
    const body = parseBody(request);
    const packet = toShellyPacket(body);
    return { items: [{ devices: identifiers(asObject(body).src), packet }], answer: null, resends: false };
  },
  matches: isNotification,
};
