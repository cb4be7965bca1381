/** Sensor Measurement Lists in JSON (RFC 8428): records are resolved with their base fields; those of one time become one packet. */
import { badRequest } from '../../core/errors.js';
import { isObject, type JsonObject } from '../../core/json.js';
import {
  asObject,
  type Item,
  identifiers,
  parseBody,
  type Readout,
  type SourceKind,
  type SourceRequest,
  toList,
  toNumber,
} from './kind.js';
import { endsPack, explainRecord, measuredIn, NO_BASE, splitName, textOf, toBase } from './senml-record.js';

/** Times below 2^28 s are relative to now (RFC 8428, 4.5.3). */
const RELATIVE_S = 2 ** 28;

const isRecord = (value: unknown): boolean =>
  isObject(value) && ['n', 'bn', 'v', 'vs', 'vb', 'vd', 's'].filter((label) => label in value).length >= 2;

const BASES: ReadonlySet<string> = new Set(['bn', 'bt', 'bu', 'bv', 'bs', 'bver']);

/** A record that only says what the next ones have in common (RFC 8428, 5.1.6). */
const isBase = (value: unknown): boolean =>
  isObject(value) && typeof value.bn === 'string' && Object.keys(value).every((label) => BASES.has(label));

const matches = (body: unknown): boolean => Array.isArray(body) && (isRecord(body[0]) || isBase(body[0]));

/** RFC 8428, and with the units of RFC 8798 (RFC 9100). What has another version may mean something else (RFC 8428, 4.4). */
const VERSION = 10;
const VERSIONS_ABOVE: ReadonlySet<unknown> = new Set([26]);

function read(request: SourceRequest): Readout {
  const records = toList(parseBody(request));
  if (!matches(records)) throw badRequest('the body: expected a list of SenML records (RFC 8428)');
  const version = records.map((record) => asObject(record).bver).find((one) => (toNumber(one) ?? VERSION) > VERSION);
  if (version !== undefined && !VERSIONS_ABOVE.has(version))
    throw badRequest('bver: a version of SenML that is not known');
  const packets = new Map<string, { readonly devices: string[]; readonly packet: JsonObject }>();
  const faults: Item[] = [];
  let base = NO_BASE;
  for (const [index, given] of records.entries()) {
    const fault = explainRecord(given);
    if (fault !== null) faults.push({ reason: `record ${index}: ${fault}` });
    if (fault !== null && endsPack(fault)) break;
    if (!isObject(given)) continue;
    // A value that cannot be read costs none of the others their name and time.
    base = toBase(base, given);
    if (fault !== null) continue;
    const record: JsonObject = given;
    const { device, parameter } = splitName(base.name, textOf(record.n) ?? '');
    const measured = measuredIn(record, base, parameter);
    if (Object.keys(measured).length === 0) continue;
    const timeS = base.timeS + (toNumber(record.t) ?? 0);
    const key = `${device}\n${timeS}`;
    const short = /[^:/]+$/.exec(device)?.[0];
    const same = packets.get(key) ?? { devices: identifiers(device, short), packet: toTimed(timeS, request.nowMs) };
    Object.assign(same.packet, measured);
    packets.set(key, same);
  }
  return { items: [...packets.values(), ...faults], answer: null, resends: false };
}

/** A packet without a time has that of its arrival. */
function toTimed(timeS: number, nowMs: number): JsonObject {
  if (timeS === 0) return {};
  // Seconds as doubles have microseconds, in which binary fractions show.
  const ms = Math.floor(Math.round(timeS * 1_000_000) / 1_000);
  return { time: timeS < RELATIVE_S ? nowMs + ms : ms };
}

export const senml: SourceKind = { read, matches };
