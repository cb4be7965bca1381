/** What a system takes as a command for one of its devices, and what its answer means. Pure. */
import { COMMAND_PREFIX } from '../core/command.js';
import type { JsonObject } from '../core/json.js';
import type { SourceKindName } from '../core/source-kinds.js';

export interface CommandRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
}

interface Given {
  readonly url: string;
  readonly key: string | null;
  readonly address: string;
}

interface Named {
  readonly _id: string;
  readonly command: string;
  readonly params: JsonObject;
}

/** The request; text why there can be none. */
export function toCommandRequest(kind: SourceKindName, given: Given, command: Named): CommandRequest | string {
  const base = given.url.replace(/\/{1,20}$/, '');
  const address = encodeURIComponent(given.address);
  const bearer: Record<string, string> = given.key === null ? {} : { authorization: `Bearer ${given.key}` };
  if (kind === 'traccar') {
    const deviceId = /^\d{1,15}$/.test(given.address) ? Number(given.address) : null;
    if (deviceId === null) return 'the id of the device in Traccar is not known: it is in forwarded positions';
    return { url: `${base}/api/commands/send`, headers: bearer, body: toTraccar(deviceId, command) };
  }
  const downlink = toDownlink(command);
  if (typeof downlink === 'string') return downlink;
  const { fPort, confirmed, data, fields } = downlink;
  if (kind === 'ttn') {
    const payload: JsonObject = data === null ? { decoded_payload: fields } : { frm_payload: data };
    const ids = [`${COMMAND_PREFIX}${command._id}`];
    const message = { f_port: fPort, confirmed, priority: 'NORMAL', ...payload, correlation_ids: ids };
    return { url: `${base}/devices/${address}/down/push`, headers: bearer, body: { downlinks: [message] } };
  }
  const queueItem: JsonObject = { confirmed, fPort, ...(data === null ? { object: fields } : { data }) };
  const headers: Record<string, string> =
    given.key === null ? {} : { 'grpc-metadata-authorization': `Bearer ${given.key}` };
  return { url: `${base}/api/devices/${address}/queue`, headers, body: { queueItem } };
}

/** https://www.traccar.org/api-reference/#tag/Commands: `type` is the name of the command. */
const toTraccar = (deviceId: number, { command, params }: Named): JsonObject => ({
  deviceId,
  type: command,
  attributes: params,
});

const DEFAULT_PORT = 1;
const MOST_PORT = 223;

function toDownlink({ params }: Named) {
  const { fPort = DEFAULT_PORT, confirmed = false, data = null, ...fields } = params;
  if (!Number.isInteger(fPort) || Number(fPort) < 1 || Number(fPort) > MOST_PORT)
    return `fPort: expected 1 to ${MOST_PORT}`;
  if (typeof confirmed !== 'boolean') return 'confirmed: expected true or false';
  if (data !== null && (typeof data !== 'string' || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)))
    return 'data: expected base64';
  if (data === null && Object.keys(fields).length === 0) {
    return 'nothing to send: expected data in base64, or fields for the encoder of the network';
  }
  return { fPort, confirmed, data, fields };
}

const ACCEPTED = 202;
/** Answers after which the same request may succeed. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 423, 425, 429]);

/** Traccar says with 202 that the device is away. LoRaWAN networks only ever queue. */
export const networkStateOf = (kind: SourceKindName, status: number): 'sent' | 'queued' =>
  kind === 'traccar' && status !== ACCEPTED ? 'sent' : 'queued';

/** What the system calls the command in its events; null if it uses our id, or reports nothing. */
export function downlinkIdOf(kind: SourceKindName, answer: string): string | null {
  if (kind !== 'chirpstack') return null;
  try {
    const { id } = JSON.parse(answer);
    return typeof id === 'string' && id.length <= LONGEST_ID ? id : null;
  } catch {
    return null;
  }
}

/** A UUID in text. */
const LONGEST_ID = 36;

export const isTaken = (status: number | null): status is number => status !== null && status >= 200 && status < 300;

export const isFinal = (status: number | null): boolean =>
  status !== null && status >= 300 && status < 500 && !TEMPORARY.has(status);
