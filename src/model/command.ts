/** A command to an object, and the states it goes through; it never disappears. */
import { badRequest, notFound } from '../errors.js';
import { isObject, type JsonObject, readObject } from './json.js';
import { COMMAND_NAME, type Declarations } from './model.js';

export const COMMAND_STATUSES = ['queued', 'sent', 'delivered', 'done', 'failed', 'expired'] as const;
export type CommandStatus = (typeof COMMAND_STATUSES)[number];

/** What an entry of the store `commands` holds beside the common fields. `times`: when each status was reached, ms. */
export type Command = JsonObject & {
  object: string;
  command: string;
  params: JsonObject;
  status: CommandStatus;
  times: { [status in CommandStatus]?: number } & JsonObject;
};

/**
 * A command as it is sent: the body's parameters over the defaults of the model's action. A name that the model does
 * not declare is a 404 when it declares any; a body that is no object a 400. No body at all is no parameters.
 */
export function readCommand(name: string, body: unknown, declared: Declarations): Pick<Command, 'command' | 'params'> {
  const defaults = declared.actions.get(name);
  if (defaults === undefined && declared.actions.size > 0) throw notFound();
  if (!COMMAND_NAME.test(name)) throw badRequest(`the command's name: expected ${COMMAND_NAME.source}`);
  const given = body === undefined ? {} : readObject(body);
  return { command: name, params: { ...(isObject(defaults) ? defaults : {}), ...given } };
}

export function newCommand(
  objectId: string,
  { command, params }: Pick<Command, 'command' | 'params'>,
  nowMs: number,
): Command {
  return { object: objectId, command, params, status: 'queued', times: { queued: nowMs } };
}
