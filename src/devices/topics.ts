/** Parses the MQTT messages of devices into packets and command results, and checks their subscriptions. Pure. */
import { isUtf8 } from 'node:buffer';
import { ApiError, badRequest } from '../core/errors.js';
import { parseExactJson, parseTypedValue } from '../core/exact-json.js';
import { isObject, type Json, type JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { type DataType, type Declarations, memberAt, type Reference, toType } from '../core/model.js';
import { isOwnTracks, toOwnTracksPacket } from './sources/owntracks.js';
import { ownTracksBaseOf } from './sources/owntracks-topics.js';
import { toShellyPacket } from './sources/shelly.js';

/** The MQTT parser replaces invalid UTF-8 with this character and reports no error. */
export const REPLACEMENT = '\ufffd';
const STATE_TOPIC = 'base/state';
export const COMMANDS_TOPIC = 'base/commands';
/** Where the device publishes the result of a command. */
export const resultTopicOf = (commandId: string): string => `${COMMANDS_TOPIC}/${commandId}/result`;

/** A published message: the body of a packet, in the same form as over HTTP, or the result of a command. */
export type ParsedMessage =
  | { readonly kind: 'packet'; readonly body: unknown }
  | { readonly kind: 'result'; readonly commandId: string; readonly body: unknown };

/** A topic that the device does not have, or that is not valid. */
export class TopicError extends ApiError {
  constructor(why: string) {
    super(400, why);
  }
}

/**
 * Parses a published message. Accepts the exact topics `base/state`, `base/state/<parameter>`, `base/commands/<_id>/result` and
 * the topics of the model's references, of OwnTracks and of Shelly; any topic if the model keeps the last message. Throws 400.
 */
export function parseMessage(topic: string, payload: Buffer, declared: Declarations): ParsedMessage {
  if (topic.includes(REPLACEMENT)) throw new TopicError('the topic is not UTF-8');
  const references = declared.references.get(topic);
  if (references !== undefined) return { kind: 'packet', body: fromReferences(references, payload, declared) };
  if (topic === STATE_TOPIC) return { kind: 'packet', body: parsePayloadJson(payload) };
  if (topic.length > LIMITS.mqttTopicCharacters) {
    throw new TopicError(`a topic of ${topic.length} characters; at most ${LIMITS.mqttTopicCharacters} are permitted`);
  }
  const [first, second, third, fourth, ...more] = topic.split('/');
  if (first === 'base' && more.length === 0) {
    if (second === 'state' && third !== undefined && fourth === undefined) {
      return { kind: 'packet', body: parseParameter(third, payload, declared) };
    }
    if (second === 'commands' && third !== undefined && fourth === 'result') {
      return { kind: 'result', commandId: third, body: parsePayloadJson(payload) };
    }
  }
  const body = parseForeign(topic, payload);
  if (body !== null) return { kind: 'packet', body };
  if (declared.keepsLastMessage) return { kind: 'packet', body: {} };
  throw new TopicError('the topic is not a topic of this device');
}

/**
 * `owntracks/jane/phone` and the topics below it, payloads of OwnTracks on any other topic, and `<prefix>/events/rpc` of Shelly; null for
 * anything else.
 */
function parseForeign(topic: string, payload: Buffer): unknown {
  if (/^owntracks\/[^/]+\/[^/]+(?:\/[^/]+)?$/.test(topic)) return fromOwnTracks(payload);
  if (/^.+\/events\/rpc$/.test(topic)) return toShellyPacket(parsePayloadJson(payload));
  // The connection itself says so.
  if (/^shelly[\w-]*\/online$/.test(topic)) return [];
  // The base of its topics is a setting of the app.
  return isOwnTracks(parsedOrNull(payload)) ? fromOwnTracks(payload) : null;
}

function parsedOrNull(payload: Buffer): unknown {
  try {
    const mayBe = payload.length <= LIMITS.mqttPacketBytes && payload.includes('"_type"');
    return mayBe ? parsePayloadJson(payload) : null;
  } catch {
    return null;
  }
}

/** An empty payload tells that a friend was removed. */
function fromOwnTracks(payload: Buffer): unknown {
  if (payload.length === 0) return [];
  const body = parsePayloadJson(payload);
  if (!isObject(body)) throw badRequest('the payload: expected a JSON object, as OwnTracks sends it');
  return toOwnTracksPacket(body) ?? [];
}

/**
 * Whether a device may subscribe to a filter: the topics of its commands (`base/commands/#`, `base/commands/+`,
 * `base/commands/<command>`), that of OwnTracks, and filters that match the topic of an action of its model. The first level must be
 * literal: `#`, `+/…` and `$…` are refused.
 */
export function isOwnFilter(filter: string, declared: Declarations): boolean {
  if (/^[$+#]/.test(filter)) return false;
  if (isOwnTracksCommands(filter)) return true;
  const levels = filter.split('/');
  if (levels.length === 3 && filter.startsWith(`${COMMANDS_TOPIC}/`)) return true;
  return [...declared.actions.values()].some(
    ({ topic }) => typeof topic === 'string' && matches(levels, topic.split('/')),
  );
}

const COMMANDS_OF_OWNTRACKS = /^(?!base\/)\/?(?:[^/+#]+\/)+cmd$/;

/**
 * Whether OwnTracks may expect its commands there (https://owntracks.org/booklet/tech/json/#_typecmd): `cmd` below the base of its
 * topics, which is `owntracks/jane/phone` unless its user has chosen another one.
 */
export const isOwnTracksCommands = (filter: string): boolean => COMMANDS_OF_OWNTRACKS.test(filter);

/** Where a device that publishes to this topic expects its commands, if it is OwnTracks. */
export const ownTracksCommandsOf = (topic: string): string => `${ownTracksBaseOf(topic)}/cmd`;

/** The type of a message of OwnTracks, or of a command for it (`cmd`); null for any other. */
export function ownTracksTypeOf(payload: Buffer): string | null {
  const body = parsedOrNull(payload);
  return isOwnTracks(body) ? String(body._type) : null;
}

function matches(filter: readonly string[], topic: readonly string[]): boolean {
  const isOpen = filter.at(-1) === '#';
  const fixed = isOpen ? filter.slice(0, -1) : filter;
  if (isOpen ? topic.length < fixed.length : topic.length !== fixed.length) return false;
  return fixed.every((level, index) => level === '+' || level === topic[index]);
}

function parseParameter(name: string, payload: Buffer, declared: Declarations): JsonObject {
  if (name === '' || name.startsWith('_') || ['time', 'id', 'success'].includes(name)) {
    throw new TopicError(`${JSON.stringify(name.slice(0, 64))} is not a valid parameter name`);
  }
  return put({}, name, parseValue(payload, declared.parameters.get(name)));
}

/** Sets the value of a parameter in the body: `in1.voltage` is the member `voltage` of `in1`. */
function put(body: JsonObject, parameter: string, value: Json): JsonObject {
  const names = parameter.split('.');
  let object = body;
  for (const name of names.slice(0, -1)) {
    const member = Object.hasOwn(object, name) ? object[name] : undefined;
    const next = isObject(member) ? member : {};
    set(object, name, next);
    object = next;
  }
  set(object, names.at(-1) as string, value);
  return body;
}

// Defines any name as an own property, also `__proto__`, so that the check of packets sees it and refuses it.
function set(object: JsonObject, name: string, value: Json): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function fromReferences(references: readonly Reference[], payload: Buffer, declared: Declarations): JsonObject {
  const body: JsonObject = {};
  // Parsed once for all references.
  let json: unknown;
  for (const { parameter, path } of references) {
    const type = declared.parameters.get(parameter);
    if (path.length === 0) {
      put(body, parameter, parseValue(payload, type));
      continue;
    }
    json ??= parsePayloadJson(payload, `${parameter}: `);
    const value = memberAt(json, path) as Json | undefined;
    if (value !== undefined) put(body, parameter, typed(value, type));
  }
  if (Object.keys(body).length === 0)
    throw badRequest('the message contains none of the parameters that the model references');
  return body;
}

function toText(payload: Buffer): string {
  if (!isUtf8(payload)) throw badRequest('the payload is not UTF-8');
  return payload.toString('utf8');
}

/** `place` precedes the reason of an error. */
function parsePayloadJson(payload: Buffer, place = ''): unknown {
  const text = toText(payload);
  try {
    return parseExactJson(text);
  } catch {
    throw badRequest(`${place}the payload is not valid JSON`);
  }
}

/** Parses a value from JSON or plain text, and converts it to the type that the model declares. */
function parseValue(payload: Buffer, type: DataType | undefined): Json {
  const text = toText(payload);
  if (type === 'string') return unquoted(text);
  return typed(parseTypedValue(text), type);
}

const unquoted = (text: string): string => (/^".*"$/s.test(text) ? String(parsedOr(text)) : text);

function parsedOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Values of a wrong type are refused by the check of packets. */
const typed = (value: Json, type: DataType | undefined): Json =>
  type === undefined ? value : (toType(value, type) ?? value);
