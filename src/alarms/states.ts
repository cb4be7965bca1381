/**
 * The states of rules as they are stored: a row for each rule and object that is not as at the beginning; one for each object that says how
 * far its packets were evaluated; and one for each partition that was refilled.
 */
import { type AnyBulkWriteOperation, type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { parseDocuments } from '../platform/mongo/bson/document-batch.js';
import { rawBatches } from '../platform/mongo/bson/raw-batches.js';
import type { Database } from '../platform/mongo/driver/client.js';
import type { WaitingStep } from './escalation.js';
import type { Reading } from './evaluate.js';
import type { RuleState } from './machine.js';
import type { EvaluatedTo } from './packet-reader.js';

export const ALARM_STATES = 'alarmStates';

export interface StoredState {
  readonly ruleId: string;
  readonly objectId: string;
  /** Which conditions the readings belong to. */
  readonly key: string;
  readonly state: RuleState;
  readonly waiting: readonly WaitingStep[] | null;
}

const idOf = (ruleId: string, objectId: string): string => `${ruleId}:${objectId}`;

/** `dueMs`: when time alone changes the state, by the service's clock. */
export function toStateWrite(partition: number, stored: StoredState, dueMs: number | null): AnyBulkWriteOperation {
  const { ruleId, objectId, key, state, waiting } = stored;
  const { phase, sinceMs, begunBy, alarmId, heardMs, startedMs } = state;
  const readings = state.readings.map(({ truth, sinceMs: since, value }) => ({ truth, since, value }));
  const replacement: Document = {
    partition,
    rule: new ObjectId(ruleId),
    object: new ObjectId(objectId),
    key,
    due: dueMs,
    state: { phase, sinceMs, begunBy, alarmId, heardMs, startedMs, readings },
    waiting,
  };
  const filter = { _id: idOf(ruleId, objectId) as never };
  return { replaceOne: { filter, replacement, upsert: true } };
}

export const toStateRemoval = (ruleId: string, objectId: string): AnyBulkWriteOperation => ({
  deleteOne: { filter: { _id: idOf(ruleId, objectId) as never } },
});

/** What is remembered of an object begins with it, whoever takes the partition. */
export const toEvaluatedWrite = (
  partition: number,
  objectId: string,
  { dataMs, newestMs, receivedMs, aheadMs }: EvaluatedTo,
): AnyBulkWriteOperation => {
  const replacement: Document = { partition, dataMs, newestMs, receivedMs, aheadMs };
  return { replaceOne: { filter: { _id: objectId as never }, replacement, upsert: true } };
};

export const toEvaluatedRemoval = (objectId: string): AnyBulkWriteOperation => ({
  deleteOne: { filter: { _id: objectId as never } },
});

/** The `_id` of the row that says up to when packets of a partition may come again. */
const refillIdOf = (partition: number): string => `refill ${partition}`;

export const toRefilledWrite = (partition: number, refilledToMs: number): AnyBulkWriteOperation => ({
  replaceOne: {
    filter: { _id: refillIdOf(partition) as never },
    replacement: { partition, refilledToMs },
    upsert: true,
  },
});

/** A row as it is stored. */
export type StoredRow =
  | { readonly kind: 'state'; readonly stored: StoredState }
  | { readonly kind: 'evaluated'; readonly objectId: string; readonly to: EvaluatedTo }
  | { readonly kind: 'refilled'; readonly toMs: number };

const UNREAD_FIELDS = { partition: 0, due: 0 };

/** What is stored of a partition, some rows at a time: all of them may be many. Throws 503. */
export async function* readStates(database: Database, partition: number): AsyncGenerator<readonly StoredRow[]> {
  const command = {
    find: ALARM_STATES,
    filter: { partition },
    projection: UNREAD_FIELDS,
    batchSize: LIMITS.historyPage,
  };
  // Rows of one partition name the same rules, objects, packets and conditions again and again: each is kept once.
  const known = new Map<string, string>();
  const once = (text: string): string => {
    const same = known.get(text);
    if (same === undefined) known.set(text, text);
    return same ?? text;
  };
  for await (const batch of rawBatches(database, command, { readsAhead: true }))
    yield parseDocuments(batch).map((row) => toRow(row, once));
}

/** JSON has no infinity: an object that has sent no data has no time of data. */
const toMs = (value: number | null): number => value ?? -Infinity;

function toRow(row: Document, once: (text: string) => string): StoredRow {
  const { _id, rule, object, key, state, waiting, refilledToMs } = row;
  if (refilledToMs !== undefined) return { kind: 'refilled', toMs: refilledToMs };
  if (state === undefined) {
    const { dataMs, newestMs, receivedMs, aheadMs } = row;
    const to = { dataMs: toMs(dataMs), newestMs: toMs(newestMs), receivedMs: toMs(receivedMs), aheadMs };
    return { kind: 'evaluated', objectId: once(_id), to };
  }
  const ids = { ruleId: once(rule), objectId: once(object), key: once(key) };
  return { kind: 'state', stored: { ...ids, state: toState(state, once), waiting: waiting ?? null } };
}

function toState(stored: Document, once: (text: string) => string): RuleState {
  const { phase, sinceMs, begunBy, alarmId, heardMs, startedMs, readings } = stored;
  return {
    phase,
    sinceMs,
    begunBy: once(begunBy),
    readings: (readings as Document[]).map(({ truth, since, value }): Reading => ({ truth, sinceMs: since, value })),
    alarmId,
    heardMs,
    startedMs: startedMs ?? null,
  };
}
