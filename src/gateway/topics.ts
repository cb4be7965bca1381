/** What a device's topics mean: which message is a packet and which an answer to a command, and what it may listen to. Pure. */
import { isUtf8 } from 'node:buffer';
import { badRequest } from '../errors.js';
import { isObject, type Json, type JsonObject } from '../model/json.js';
import { type DataType, type Declarations, isOfType, type Reference } from '../model/model.js';

export const STATE_TOPIC = 'base/state';
export const COMMANDS_TOPIC = 'base/commands';

/** What a device published, by its topic: a packet's body as HTTP takes it too, or how a command ended. */
export type Meant =
  | { readonly kind: 'packet'; readonly body: unknown }
  | { readonly kind: 'result'; readonly commandId: string; readonly body: unknown };

/**
 * Reads a published message. Topics are compared as a whole: `base/state`, `base/state/<parameter>`,
 * `base/commands/<_id>/result`, and those that the model's references name. Throws a 400 that says what is wrong.
 */
export function readPublished(topic: string, payload: Buffer, declared: Declarations): Meant {
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
  return { [name]: readValue(payload, declared.parameters.get(name)) };
}

function fromReferences(references: readonly Reference[], payload: Buffer, declared: Declarations): JsonObject {
  const body: JsonObject = {};
  // Read once for all that look into it.
  let json: unknown;
  for (const { parameter, path } of references) {
    const type = declared.parameters.get(parameter);
    if (path.length === 0) {
      body[parameter] = readValue(payload, type);
      continue;
    }
    json ??= readJson(payload);
    const value = path.reduce<unknown>(memberOf, json);
    if (value !== undefined) body[parameter] = toType(value as Json, type);
  }
  if (Object.keys(body).length === 0)
    throw badRequest('the message holds none of the parameters that the model looks for');
  return body;
}

function memberOf(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return /^\d+$/.test(name) ? value[Number(name)] : undefined;
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function toText(payload: Buffer): string {
  if (!isUtf8(payload)) throw badRequest('the payload is not UTF-8');
  return payload.toString('utf8');
}

function readJson(payload: Buffer): unknown {
  try {
    return JSON.parse(toText(payload));
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
  return toType(value, type);
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

// Devices say ON where a model says boolean, and numbers in quotes; anything else is told by the check that follows.
function toType(value: Json, type: DataType | undefined): Json {
  if (type === undefined || isOfType(value, type)) return value;
  if (type === 'boolean') return SWITCH.get(String(value).toLowerCase()) ?? value;
  if (type === 'number' && typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value))) {
    return Number(value);
  }
  return value;
}
