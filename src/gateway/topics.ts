/** What a device's topics mean: which message is a packet and which an answer to a command, and what it may listen to. Pure. */
import { isUtf8 } from 'node:buffer';
import { badRequest } from '../errors.js';
import { isObject, type Json, type JsonObject } from '../model/json.js';
import { type DataType, type Declarations, memberAt, type Reference, toType } from '../model/model.js';

/** What MQTT's text becomes where it is not UTF-8: who reads packets does not tell. */
export const REPLACEMENT = '\ufffd';
export const STATE_TOPIC = 'base/state';
export const COMMANDS_TOPIC = 'base/commands';

/** What a device published, by its topic: a packet's body as HTTP takes it too, or how a command ended. */
export type Meant =
  | { readonly kind: 'packet'; readonly body: unknown }
  | { readonly kind: 'result'; readonly commandId: string; readonly body: unknown };

/**
 * Reads a published message. Topics are compared as a whole: `base/state`, `base/state/<parameter>`,
 * `base/commands/<_id>/result`, and those that the model's references name; any, where packets say which message they come
 * from. Throws a 400 that says what is wrong.
 */
export function readPublished(topic: string, payload: Buffer, declared: Declarations): Meant {
  if (topic.includes(REPLACEMENT)) throw badRequest('the topic is not UTF-8');
  const references = declared.references.get(topic);
  if (references !== undefined) return { kind: 'packet', body: fromReferences(references, payload, declared) };
  if (topic === STATE_TOPIC) return { kind: 'packet', body: readJson(payload) };
  const [first, second, third, fourth, ...more] = topic.split('/');
  if (first === 'base' && more.length === 0) {
    if (second === 'state' && third !== undefined && fourth === undefined) {
      return { kind: 'packet', body: readParameter(third, payload, declared) };
    }
    if (second === 'commands' && third !== undefined && fourth === 'result') {
      return { kind: 'result', commandId: third, body: readJson(payload) };
    }
  }
  if (declared.keepsLastMessage) return { kind: 'packet', body: {} };
  throw badRequest('the topic is none of the device');
}

/**
 * Whether a device may subscribe to a filter: its commands' topics, all or one of them (`base/commands/#`,
 * `base/commands/+`, `base/commands/<command>`), and those that actions of its model have of their own; of these also a
 * part that begins with a whole level. Never `#`, `+/…`, `$…`.
 */
export function isOwnFilter(filter: string, declared: Declarations): boolean {
  if (/^[$+#]/.test(filter)) return false;
  const levels = filter.split('/');
  if (levels.length === 3 && filter.startsWith(`${COMMANDS_TOPIC}/`)) return true;
  return [...declared.actions.values()].some(
    ({ topic }) => typeof topic === 'string' && matches(levels, topic.split('/')),
  );
}

function matches(filter: readonly string[], topic: readonly string[]): boolean {
  const open = filter.at(-1) === '#';
  const fixed = open ? filter.slice(0, -1) : filter;
  if (open ? topic.length < fixed.length : topic.length !== fixed.length) return false;
  return fixed.every((level, at) => level === '+' || level === topic[at]);
}

function readParameter(name: string, payload: Buffer, declared: Declarations): JsonObject {
  if (name === '' || name.startsWith('_') || ['time', 'id', 'success'].includes(name)) {
    throw badRequest(`${JSON.stringify(name.slice(0, 64))} is no parameter's name`);
  }
  return put({}, name, readValue(payload, declared.parameters.get(name)));
}

/** The body with this value of the parameter: `in1.voltage` is the member `voltage` of `in1`. */
function put(body: JsonObject, parameter: string, value: Json): JsonObject {
  const names = parameter.split('.');
  let at = body;
  for (const name of names.slice(0, -1)) {
    const inner = Object.hasOwn(at, name) ? at[name] : undefined;
    const next = isObject(inner) ? inner : {};
    set(at, name, next);
    at = next;
  }
  set(at, names.at(-1) as string, value);
  return body;
}

// Whatever it is called, `__proto__` among it: what may not be is found with all that a packet may not hold.
function set(object: JsonObject, name: string, value: Json): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function fromReferences(references: readonly Reference[], payload: Buffer, declared: Declarations): JsonObject {
  const body: JsonObject = {};
  // Read once for all that look into it.
  let json: unknown;
  for (const { parameter, path } of references) {
    const type = declared.parameters.get(parameter);
    if (path.length === 0) {
      put(body, parameter, readValue(payload, type));
      continue;
    }
    json ??= readJson(payload);
    const value = memberAt(json, path) as Json | undefined;
    if (value !== undefined) put(body, parameter, understood(value, type));
  }
  if (Object.keys(body).length === 0)
    throw badRequest('the message holds none of the parameters that the model looks for');
  return body;
}

function toText(payload: Buffer): string {
  if (!isUtf8(payload)) throw badRequest('the payload is not UTF-8');
  return payload.toString('utf8');
}

function readJson(payload: Buffer): unknown {
  const text = toText(payload);
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest('the payload is not valid JSON');
  }
}

/** One value: JSON, or plain text; as the model's type where it declares one. */
function readValue(payload: Buffer, type: DataType | undefined): Json {
  const text = toText(payload);
  if (type === 'string') return unquoted(text);
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch {
    value = text;
  }
  return understood(value, type);
}

const unquoted = (text: string): string => (/^".*"$/s.test(text) ? String(parsedOr(text)) : text);

function parsedOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const SWITCH: ReadonlyMap<string, boolean> = new Map([
  ['on', true],
  ['true', true],
  ['1', true],
  ['off', false],
  ['false', false],
  ['0', false],
]);

// Devices say ON where a model says boolean; what is neither that nor of the type is told by the check that follows.
function understood(value: Json, type: DataType | undefined): Json {
  if (type === undefined) return value;
  const typed = toType(value, type);
  if (typed !== undefined) return typed;
  if (type !== 'boolean' || typeof value === 'object') return value;
  return SWITCH.get(String(value).toLowerCase()) ?? value;
}
