/** Commands to objects: their states, their outcome, and their form on the way to the device. */

import { explainSeconds, parseDuration } from './duration.js';
import { badRequest, notFound } from './errors.js';
import { isObject, type Json, type JsonObject, parseObject } from './json.js';
import { LIMITS } from './limits.js';
import { COMMAND_NAME, type Declarations } from './model.js';

export const COMMAND_STATUSES = ['queued', 'sent', 'delivered', 'done', 'failed', 'expired'] as const;
export type CommandStatus = (typeof COMMAND_STATUSES)[number];

/**
 * The transitions of a command; a final status has none. From `sent` back to `queued`: the connection closed before the device
 * confirmed. From `sent` to `sent`: another connection took over. From `queued` to a final status: the device polls over HTTP.
 */
const NEXT: Readonly<Record<CommandStatus, readonly CommandStatus[]>> = {
  queued: ['sent', 'done', 'failed', 'expired'],
  sent: ['queued', 'sent', 'delivered', 'done', 'failed', 'expired'],
  delivered: ['done', 'failed', 'expired'],
  done: [],
  failed: [],
  expired: [],
};

/** Begins the name of a command among the correlation ids of another system; its `_id` follows. */
export const COMMAND_PREFIX = 'vigil:';

/** The statuses that are not final. */
export const OPEN_STATUSES: readonly CommandStatus[] = COMMAND_STATUSES.filter((status) => NEXT[status].length > 0);

/** The statuses from which a command may change to this one. */
export function statusesBefore(status: CommandStatus): CommandStatus[] {
  return COMMAND_STATUSES.filter((before) => NEXT[before].includes(status));
}

/**
 * The fields of a command beside the common ones. `times`: when each status was last reached, in ms. `expires`: when the
 * command expires unless it ends earlier, in ms. `result`: the device's answer, if there is one.
 */
export type Command = JsonObject & {
  object: string;
  command: string;
  params: JsonObject;
  status: CommandStatus;
  times: { [status in CommandStatus]?: number } & JsonObject;
  expires: number;
  result?: Json;
  /** What the network of the device says of a command that it has taken. */
  network?: 'sent' | 'queued';
};

/**
 * Merges the body's parameters over the defaults of the model's action. Throws a 404 for an undeclared name when the model
 * declares any actions, and a 400 for a body that is not an object. A missing body means no parameters.
 */
export function parseCommand(name: string, body: unknown, declared: Declarations): Pick<Command, 'command' | 'params'> {
  const defaults = declared.actions.get(name);
  if (defaults === undefined && declared.actions.size > 0) throw notFound();
  if (defaults === undefined && !COMMAND_NAME.test(name))
    throw badRequest(`the name of the command: expected ${COMMAND_NAME.source}`);
  const given = body === undefined ? {} : parseObject(body);
  return { command: name, params: { ...(isObject(defaults) ? defaults : {}), ...given } };
}

/** Parses the statuses of a list filter, separated by commas; null for all. Throws a 400 that names the parameter. */
export function parseStatuses(text: string | null): CommandStatus[] | null {
  if (text === null) return null;
  const isStatus = (part: string): part is CommandStatus => (COMMAND_STATUSES as readonly string[]).includes(part);
  const parts = text.split(',');
  if (parts.every(isStatus)) return parts;
  throw badRequest(`status: expected some of ${COMMAND_STATUSES.join(', ')}, separated by commas`);
}

/** Parses the lifetime of a command: a duration such as `10 min`, or ms. Throws a 400 that names the field. */
export function parseTtl(text: string | null): number {
  if (text === null) return LIMITS.commandLifetimeMs;
  const fault = explainSeconds(text);
  if (fault !== null) throw badRequest(`ttl: ${fault}`);
  const ttlMs = parseDuration(text);
  if (ttlMs !== null && ttlMs >= LIMITS.commandLifetimeMinMs && ttlMs <= LIMITS.commandLifetimeMaxMs) return ttlMs;
  const maxDays = LIMITS.commandLifetimeMaxMs / 86_400_000;
  throw badRequest(`ttl: expected a duration from 1 s to ${maxDays} days, such as "10 min", or milliseconds`);
}

export function newCommand(
  objectId: string,
  { command, params, ttlMs }: Pick<Command, 'command' | 'params'> & { ttlMs: number },
  nowMs: number,
): Command {
  return { object: objectId, command, params, status: 'queued', times: { queued: nowMs }, expires: nowMs + ttlMs };
}

/** The final status of a command, as the device reports it. */
export interface CommandOutcome {
  readonly status: 'done' | 'failed';
  /** The device's answer; undefined when there is none. */
  readonly result: Json | undefined;
}

/** Parses `{"status": "done" | "failed", "result": …}` and ignores other fields. Throws a 400 that names the field. */
export function parseOutcome(body: unknown): CommandOutcome {
  const { status, result } = parseObject(body);
  if (status !== 'done' && status !== 'failed') throw badRequest('status: expected "done" or "failed"');
  if (result !== undefined && JSON.stringify(result).length > LIMITS.commandResultCharacters) {
    throw badRequest(`result: longer than ${LIMITS.commandResultCharacters} characters of JSON`);
  }
  return { status, result };
}

/** Whether a command already has this outcome: devices may report an outcome twice. */
export function hasOutcome(command: Pick<Command, 'status' | 'result'>, { status, result }: CommandOutcome): boolean {
  return command.status === status && JSON.stringify(command.result) === JSON.stringify(result);
}

/** A command in its form for the device. */
export interface Delivery {
  /** The topic that the model's action defines; null for the default topic of commands. */
  readonly topic: string | null;
  readonly payload: string;
}

// No wildcards, and none of the broker's own `$` topics.
const TOPIC = /^(?!\$)[^+#]{1,256}$/;
// MQTT 3.1.1, 1.5.3: a receiver may close the connection on control characters, surrogates and non-characters.
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]/u;

/** Whether the text is valid as a topic or a part of one, so that no broker closes the connection because of it. */
export const isTopic = (text: string): boolean => TOPIC.test(text) && !FORBIDDEN.test(text);

/**
 * Sends `{"_id", "command", "params"}` by default. A `topic` or `payload` among the `params` of the model's action replaces the
 * default. The sender of a command may override the payload, but not the topic. `action` holds the action's `params`;
 * undefined when the model does not declare the command.
 */
export function toDelivery(
  { _id, command, params }: { _id: string; command: string; params: JsonObject },
  action: JsonObject | undefined,
): Delivery {
  const { topic, payload } = action ?? {};
  const content = payload === undefined ? { _id, command, params } : (params.payload ?? payload ?? '');
  return {
    topic: typeof topic === 'string' && isTopic(topic) ? topic : null,
    payload: typeof content === 'string' ? content : JSON.stringify(content),
  };
}
