/**
 * Checks the properties of MQTT 5 (section 2.2.2) before the parser of mqtt-packet reads them: it accepts properties of other
 * packets, repeated ones, and lengths beyond the packet.
 */
import { LIMITS } from '../../core/limits.js';
import { malformed, ProtocolError } from './reason-codes.js';

export type PropertyOwner =
  | 'connect'
  | 'will'
  | 'publish'
  | 'subscribe'
  | 'unsubscribe'
  | 'ack'
  | 'disconnect'
  | 'auth';

type Form = 'flag' | 'u16' | 'u32' | 'varint' | 'text' | 'bytes' | 'pair';

interface Property {
  readonly form: Form;
  /** The packets of clients that may have it. */
  readonly owners: readonly PropertyOwner[];
  /** [MQTT-3.1.2.11.3] and others: 0 is a protocol error. */
  readonly isPositive?: boolean;
}

const USER_PROPERTY = 0x26;
const EVERY: readonly PropertyOwner[] = [
  'connect',
  'will',
  'publish',
  'subscribe',
  'unsubscribe',
  'ack',
  'disconnect',
  'auth',
];

/** Table 2-4, without the properties that only servers send. */
const PROPERTIES: ReadonlyMap<number, Property> = new Map<number, Property>([
  [0x01, { form: 'flag', owners: ['publish', 'will'] }],
  [0x02, { form: 'u32', owners: ['publish', 'will'] }],
  [0x03, { form: 'text', owners: ['publish', 'will'] }],
  [0x08, { form: 'text', owners: ['publish', 'will'] }],
  [0x09, { form: 'bytes', owners: ['publish', 'will'] }],
  // [MQTT-3.3.4-6]: a PUBLISH of a client has no Subscription Identifier.
  [0x0b, { form: 'varint', owners: ['subscribe'], isPositive: true }],
  [0x11, { form: 'u32', owners: ['connect', 'disconnect'] }],
  [0x15, { form: 'text', owners: ['connect', 'auth'] }],
  [0x16, { form: 'bytes', owners: ['connect', 'auth'] }],
  [0x17, { form: 'flag', owners: ['connect'] }],
  [0x18, { form: 'u32', owners: ['will'] }],
  [0x19, { form: 'flag', owners: ['connect'] }],
  [0x1f, { form: 'text', owners: ['ack', 'disconnect', 'auth'] }],
  [0x21, { form: 'u16', owners: ['connect'], isPositive: true }],
  [0x22, { form: 'u16', owners: ['connect'] }],
  // The value 0 has a reason code of its own (publish.ts).
  [0x23, { form: 'u16', owners: ['publish'] }],
  [USER_PROPERTY, { form: 'pair', owners: EVERY }],
  [0x27, { form: 'u32', owners: ['connect'], isPositive: true }],
]);

/** Checks the properties that begin with their length at `at`. Returns where they end. Throws ProtocolError. */
export function checkProperties(bytes: Buffer, at: number, owner: PropertyOwner): number {
  const length = readVarint(bytes, at, bytes.length);
  const end = length.end + length.value;
  if (end > bytes.length) throw malformed('properties longer than their packet');
  const seen = new Set<number>();
  let userProperties: number = 0;
  for (let index = length.end; index < end; ) {
    const id = bytes[index] as number;
    const property = PROPERTIES.get(id);
    if (property?.owners.includes(owner) !== true)
      throw malformed(`a property 0x${id.toString(16)}, which the packet cannot have`);
    if (id !== USER_PROPERTY && seen.has(id)) throw new ProtocolError(`the property 0x${id.toString(16)} twice`);
    seen.add(id);
    if (id === USER_PROPERTY && ++userProperties > LIMITS.mqttUserProperties)
      throw new ProtocolError(`more than ${LIMITS.mqttUserProperties} user properties`);
    const { end: next, value } = readValue(bytes, index + 1, end, property.form);
    if (property.isPositive === true && value === 0) throw new ProtocolError(`0 as the property 0x${id.toString(16)}`);
    index = next;
  }
  return end;
}

interface Value {
  readonly end: number;
  /** The number; -1 for a text. */
  readonly value: number;
}

function readValue(bytes: Buffer, at: number, end: number, form: Form): Value {
  if (form === 'varint') return readVarint(bytes, at, end);
  if (form === 'pair') return skipText(bytes, skipText(bytes, at, end).end, end);
  if (form === 'text' || form === 'bytes') return skipText(bytes, at, end);
  const size = { flag: 1, u16: 2, u32: 4 }[form];
  if (at + size > end) throw malformed('a property that is cut off');
  const value = bytes.readUIntBE(at, size);
  if (form === 'flag' && value > 1) throw new ProtocolError('a property that is neither 0 nor 1');
  return { end: at + size, value };
}

function skipText(bytes: Buffer, at: number, end: number): Value {
  const next = at + 2 > end ? Number.POSITIVE_INFINITY : at + 2 + bytes.readUInt16BE(at);
  if (next > end) throw malformed('a property that is cut off');
  return { end: next, value: -1 };
}

// Section 1.5.5: seven bits per byte, the lowest first, at most four bytes.
function readVarint(bytes: Buffer, at: number, end: number): Value {
  let value = 0;
  for (let count = 0; count < 4 && at + count < end; count++) {
    const byte = bytes[at + count] as number;
    value += (byte & 127) * 128 ** count;
    if (byte < 128) return { end: at + count + 1, value };
  }
  throw malformed('a length that is cut off');
}
