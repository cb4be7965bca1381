/** Past commands as events: their creation and their outcomes. */
import { type Document, type Filter, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { COMMAND_ENDS, commandPayload } from '../core/payload.js';
import { builtInStore } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { toEntity } from '../platform/mongo/schema/mapping.js';
import type { PastEventName, PastQuery } from './past-event.js';
import { mergeParts, type PastEvent, type PastPart, readInParts, timesWithin, toPastEvent } from './past-parts.js';

const COMMANDS = builtInStore('commands');

const CREATED = 'time';
/** The times of a command that are events. Each has an index that begins with the object. */
const TIMES: ReadonlyMap<string, PastEventName> = new Map([
  [CREATED, 'object-command-req'],
  ...Object.entries(COMMAND_ENDS).map(([status, name]) => [`times.${status}`, name] as const),
]);

/** Reads the creation and the outcomes of commands, each ordered by its own time. */
export async function readCommandEvents(
  database: Database,
  ids: readonly ObjectId[],
  query: PastQuery,
): Promise<PastPart> {
  const wanted = [...TIMES].filter(([, name]) => query.names.has(name));
  const read = ([time, name]: [string, PastEventName]): Promise<PastPart> =>
    readInParts(ids, query, async (objects, left) => {
      const found = await findByTime(database, objects, time, left);
      return { events: found.map((command) => toCommandEvent(name, time, command)), readTo: null };
    });
  return mergeParts(await Promise.all(wanted.map(read)));
}

function findByTime(database: Database, objects: unknown, time: string, query: PastQuery): Promise<Document[]> {
  const filter = { object: objects, [time]: timesWithin(query), ...afterFilter(time, query) } as Filter<Document>;
  const sort = { [time]: 1, _id: 1 } as const;
  // The other indexes that begin with the object would need a sort.
  const options = { sort, hint: { object: 1, ...sort }, limit: query.limit + 1, maxTimeMS: LIMITS.databaseOperationMs };
  const find = () => collectionOf(database, COMMANDS).find(filter, options).toArray();
  return mapDriverErrors(find, LIMITS.databaseOperationMs);
}

/** Only commands after the previous page: many can have the same time. */
function afterFilter(time: string, { after }: PastQuery): Filter<Document> {
  if (after === null || after.stampUs < stampOf(time, after.timeMs)) return {};
  const later = { [time]: { $gt: after.timeMs } };
  if (after.stampUs > stampOf(time, after.timeMs)) return { $or: [later] };
  return { $or: [later, { _id: { $gt: new ObjectId(after.id) } }] };
}

/** A command is created before it ends, even within one millisecond. */
const stampOf = (time: string, timeMs: number): number => timeMs * 1_000 + (time === CREATED ? 0 : 1);

function toCommandEvent(name: PastEventName, time: string, command: Document): PastEvent {
  const timeMs = Number(time === CREATED ? command.time : command.times[time.slice('times.'.length)]);
  const entity = toEntity(COMMANDS, command);
  const place = { timeMs, stampUs: stampOf(time, timeMs), id: entity._id };
  return toPastEvent(name, commandPayload(String(entity.object), entity), place);
}
