/** Past alarms as events: when they were raised, and when they were cleared. */
import { type Document, type Filter, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { alarmPayload } from '../core/payload.js';
import { builtInStore } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { toEntity } from '../platform/mongo/schema/mapping.js';
import type { PastEventName, PastQuery } from './past-event.js';
import { mergeParts, type PastEvent, type PastPart, readInParts, timesWithin, toPastEvent } from './past-parts.js';

const ALARMS = builtInStore('alarms');

/** The times of an alarm that are events. Each has an index that begins with the object. */
const TIMES: readonly (readonly [time: 'raised' | 'cleared', name: PastEventName])[] = [
  ['raised', 'alarm-raised'],
  ['cleared', 'alarm-cleared'],
];

/** Reads when alarms were raised and cleared, each ordered by its own time. */
export async function readAlarmEvents(
  database: Database,
  ids: readonly ObjectId[],
  query: PastQuery,
): Promise<PastPart> {
  const wanted = TIMES.filter(([, name]) => query.names.has(name));
  const read = ([time, name]: (typeof TIMES)[number]): Promise<PastPart> =>
    readInParts(ids, query, async (objects, left) => {
      const found = await findByTime(database, objects, time, left);
      return { events: found.map((alarm) => toAlarmEvent(name, time, alarm)), readTo: null };
    });
  return mergeParts(await Promise.all(wanted.map(read)));
}

function findByTime(database: Database, objects: unknown, time: string, query: PastQuery): Promise<Document[]> {
  const filter = { object: objects, [time]: timesWithin(query), ...afterFilter(time, query) } as Filter<Document>;
  const sort = { [time]: 1, _id: 1 } as const;
  const options = { sort, hint: { object: 1, ...sort }, limit: query.limit + 1, maxTimeMS: LIMITS.databaseOperationMs };
  const find = () => collectionOf(database, ALARMS).find(filter, options).toArray();
  return mapDriverErrors(find, LIMITS.databaseOperationMs);
}

/** Only alarms after the previous page: many can have the same time. */
function afterFilter(time: string, { after }: PastQuery): Filter<Document> {
  if (after === null || after.stampUs < stampOf(time, after.timeMs)) return {};
  const later = { [time]: { $gt: after.timeMs } };
  if (after.stampUs > stampOf(time, after.timeMs)) return { $or: [later] };
  return { $or: [later, { _id: { $gt: new ObjectId(after.id) } }] };
}

/** An alarm is raised before it is cleared, even within one millisecond. */
const stampOf = (time: string, timeMs: number): number => timeMs * 1_000 + (time === 'raised' ? 0 : 1);

function toAlarmEvent(name: PastEventName, time: 'raised' | 'cleared', alarm: Document): PastEvent {
  const entity = toEntity(ALARMS, alarm);
  const timeMs = Number(alarm[time]);
  return toPastEvent(name, alarmPayload(String(entity.object), entity), {
    timeMs,
    stampUs: stampOf(time, timeMs),
    id: entity._id,
  });
}
