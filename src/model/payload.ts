/** What events tell, live and later. Pure. */
import type { Change } from './change.js';
import type { EventName } from './feed.js';
import type { JsonObject } from './json.js';

/** Bookkeeping: no news of the object itself. */
const SILENT: ReadonlySet<string> = new Set(['_at']);
const COMMAND_FIELDS = ['_id', 'command', 'params', 'status', 'times', 'expires', 'result'];

/** The event that the end of a command is, by its status. */
export const COMMAND_ENDS: Readonly<Record<string, EventName>> = {
  done: 'object-command-res',
  failed: 'object-command-err',
  expired: 'object-command-err',
};

const pick = (image: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(names.filter((name) => Object.hasOwn(image, name)).map((name) => [name, image[name] ?? null]));

export const commandPayload = (objectId: string, command: JsonObject): JsonObject => ({
  id: objectId,
  command: pick(command, COMMAND_FIELDS),
});

/** Which fields of an object changed, top level; none where that is no news. */
export const changedFields = ({ changed }: Pick<Change, 'changed'>): readonly string[] =>
  changed?.filter((name) => !SILENT.has(name)) ?? [];

/** interface, "Event kinds": these fields, before and after. */
export const updatePayload = (
  change: Pick<Change, 'id' | 'before' | 'after'>,
  fields: readonly string[],
): JsonObject => ({
  id: change.id,
  before: pick(change.before ?? {}, fields),
  after: pick(change.after ?? {}, fields),
});
