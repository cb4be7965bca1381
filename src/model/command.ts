/** A command to an object, and the states it goes through; it never disappears. What it says when it goes to the device. */
import { badRequest, notFound } from '../errors.js';
import { isObject, type Json, type JsonObject, readObject } from './json.js';
import { LIMITS } from './limits.js';
import { COMMAND_NAME, type Declarations } from './model.js';
import { readDuration } from './time.js';

export const COMMAND_STATUSES = ['queued', 'sent', 'delivered', 'done', 'failed', 'expired'] as const;
export type CommandStatus = (typeof COMMAND_STATUSES)[number];

/**
 * Where each status may lead; an end leads nowhere. From `sent` back to `queued`: the connection went before the device
 * confirmed; to `sent` again: another connection took over. From `queued` to an end: a device that fetches is sent nothing.
 */
const NEXT: Readonly<Record<CommandStatus, readonly CommandStatus[]>> = {
  queued: ['sent', 'done', 'failed', 'expired'],
  sent: ['queued', 'sent', 'delivered', 'done', 'failed', 'expired'],
  delivered: ['done', 'failed', 'expired'],
  done: [],
  failed: [],
  expired: [],
};

/** The statuses of a command that has not ended. */
export const OPEN_STATUSES: readonly CommandStatus[] = COMMAND_STATUSES.filter((status) => NEXT[status].length > 0);

/** The statuses from which a command may come to this one. */
export function statusesBefore(status: CommandStatus): CommandStatus[] {
  return COMMAND_STATUSES.filter((before) => NEXT[before].includes(status));
}

/**
 * What an entry of the store `commands` holds beside the common fields. `times`: when each status was last reached, ms.
 * `expires`: until when it may end otherwise, ms. `result`: what the device answered, if it said anything.
 */
export type Command = JsonObject & {
  object: string;
  command: string;
  params: JsonObject;
  status: CommandStatus;
  times: { [status in CommandStatus]?: number } & JsonObject;
  expires: number;
  result?: Json;
};

/**
 * A command as it is sent: the body's parameters over the defaults of the model's action. A name that the model does
 * not declare is a 404 when it declares any; a body that is no object a 400. No body at all is no parameters.
 */
export function readCommand(name: string, body: unknown, declared: Declarations): Pick<Command, 'command' | 'params'> {
  const defaults = declared.actions.get(name);
  if (defaults === undefined && declared.actions.size > 0) throw notFound();
  if (defaults === undefined && !COMMAND_NAME.test(name))
    throw badRequest(`the command's name: expected ${COMMAND_NAME.source}`);
  const given = body === undefined ? {} : readObject(body);
  return { command: name, params: { ...(isObject(defaults) ? defaults : {}), ...given } };
}

/** Statuses that a list is narrowed to, divided by commas; null for all. A 400 names the parameter. */
export function readStatuses(text: string | null): CommandStatus[] | null {
  if (text === null) return null;
  const isStatus = (part: string): part is CommandStatus => (COMMAND_STATUSES as readonly string[]).includes(part);
  const parts = text.split(',');
  if (parts.every(isStatus)) return parts;
  throw badRequest(`status: expected some of ${COMMAND_STATUSES.join(', ')}, divided by commas`);
}

/** How long a command may take, in ms: a duration such as `10 min`, or ms. A 400 names the field. */
export function readTtl(text: string | null): number {
  if (text === null) return LIMITS.commandLifetimeMs;
  const ttlMs = readDuration(text);
  if (ttlMs !== null && ttlMs >= LIMITS.commandLifetimeMinMs && ttlMs <= LIMITS.commandLifetimeMaxMs) return ttlMs;
  const mostDays = LIMITS.commandLifetimeMaxMs / 86_400_000;
  throw badRequest(`ttl: expected a duration from 1 s to ${mostDays} days, such as "10 min", or milliseconds`);
}

export function newCommand(
  objectId: string,
  { command, params, ttlMs }: Pick<Command, 'command' | 'params'> & { ttlMs: number },
  nowMs: number,
): Command {
  return { object: objectId, command, params, status: 'queued', times: { queued: nowMs }, expires: nowMs + ttlMs };
}

/** How a device says that a command ended. */
export interface Outcome {
  readonly status: 'done' | 'failed';
  /** Its answer; undefined where it gave none. */
  readonly result: Json | undefined;
}

/** A device's `{"status": "done" | "failed", "result": …}`; a 400 names the field. Anything beside that is ignored. */
export function readOutcome(body: unknown): Outcome {
  const { status, result } = readObject(body);
  if (status !== 'done' && status !== 'failed') throw badRequest('status: expected "done" or "failed"');
  if (result !== undefined && JSON.stringify(result).length > LIMITS.commandResultCharacters) {
    throw badRequest(`result: longer than ${LIMITS.commandResultCharacters} characters of JSON`);
  }
  return { status, result };
}

/** Whether a command that has ended ended just so: a device that says it again is right. */
export function endedSo(command: Pick<Command, 'status' | 'result'>, { status, result }: Outcome): boolean {
  return command.status === status && JSON.stringify(command.result) === JSON.stringify(result);
}

/** A command as it goes to the device. */
export interface Delivery {
  /** The topic that the model's action has of its own; null for the one that every command goes to. */
  readonly topic: string | null;
  readonly payload: string;
}

// No wildcard, none of a broker's own topics.
const TOPIC = /^(?!\$)[^+#]{1,256}$/;
// MQTT 3.1.1, 1.5.3: a receiver may end the connection on which these come, control characters and what is no character.
const UNFIT = /[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]/u;

/** Whether text may be a topic, or a part of one: no broker ends a connection because of it. */
export const isTopic = (text: string): boolean => TOPIC.test(text) && !UNFIT.test(text);

/**
 * `{"_id", "command", "params"}`; or, where the model's action has a `topic` or a `payload` among its `params`, exactly
 * that. Whoever sends the command may give another payload, never another topic. `action`: the action's `params`, as
 * `Declarations` has them; undefined where the model declares no such command.
 */
export function toDelivery(
  { _id, command, params }: { _id: string; command: string; params: JsonObject },
  action: JsonObject | undefined,
): Delivery {
  const { topic, payload } = action ?? {};
  const own = payload === undefined ? { _id, command, params } : (params.payload ?? payload ?? '');
  return {
    topic: typeof topic === 'string' && isTopic(topic) ? topic : null,
    payload: typeof own === 'string' ? own : JSON.stringify(own),
  };
}
