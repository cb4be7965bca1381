/** The payloads of events, live and past. */
import type { Change } from './change.js';
import type { EventName } from './feed.js';
import type { JsonObject } from './json.js';

/** Bookkeeping fields, whose changes are not published. */
const SILENT: ReadonlySet<string> = new Set(['_at']);
const COMMAND_FIELDS = ['_id', 'command', 'params', 'status', 'times', 'expires', 'result'];

const ALARM_FIELDS = [
  '_id',
  'rule',
  'revision',
  'object',
  'name',
  'severity',
  'status',
  'raised',
  'cleared',
  'clearReason',
  'clearedBy',
  'acknowledged',
  'values',
  'position',
  'packet',
  'why',
  'notes',
  'reminders',
  'late',
  'webhooks',
  'actions',
  'time',
];

/** The event of each final status of a command. */
export const COMMAND_ENDS: Readonly<Record<string, EventName>> = {
  done: 'object-command-res',
  failed: 'object-command-err',
  expired: 'object-command-err',
};

const pick = (image: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(names.filter((name) => Object.hasOwn(image, name)).map((name) => [name, image[name] ?? null]));

/** An object that is new, or that became visible to the client. */
export const createdPayload = ({ id, after }: Pick<Change, 'id' | 'after'>): JsonObject => ({ id, object: after });

/** An object that the client no longer sees: only its `_id`, which the client knows. */
export const removedPayload = ({ id }: Pick<Change, 'id'>): JsonObject => ({ id });

export const commandPayload = (objectId: string, command: JsonObject): JsonObject => ({
  id: objectId,
  command: pick(command, COMMAND_FIELDS),
});

export const alarmPayload = (objectId: string, alarm: JsonObject): JsonObject => ({
  id: objectId,
  alarm: pick(alarm, ALARM_FIELDS),
});

/** The changed top-level fields of an object, without bookkeeping fields. */
export const changedFields = ({ changed }: Pick<Change, 'changed'>): readonly string[] =>
  changed?.filter((name) => !SILENT.has(name)) ?? [];

/** The values of these fields before and after the change. */
export const updatePayload = (
  change: Pick<Change, 'id' | 'before' | 'after'>,
  fields: readonly string[],
): JsonObject => ({
  id: change.id,
  before: pick(change.before ?? {}, fields),
  after: pick(change.after ?? {}, fields),
});
