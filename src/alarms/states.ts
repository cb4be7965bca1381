/**
 * The states of rules as they are stored: a row for each rule and object that is not as at the beginning; one for each object that says how
 * far its packets were evaluated; and one for each partition that was refilled.
 */
import { type AnyBulkWriteOperation, type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
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

export interface StoredPartition {
  readonly states: readonly StoredState[];
  /** By object. */
  readonly evaluated: ReadonlyMap<string, EvaluatedTo>;
  readonly refilledToMs: number;
}

/** What is stored of a partition. Throws 503. */
export async function loadStates({ db }: Database, partition: number): Promise<StoredPartition> {
  const find = () => db.collection(ALARM_STATES).find({ partition }).toArray();
  const found = await mapDriverErrors(find, LIMITS.databaseOperationMs);
  const evaluated = found.filter(({ dataMs }) => dataMs !== undefined);
  return {
    states: found.filter(({ rule }) => rule !== undefined).map(toState),
    evaluated: new Map(evaluated.map((row) => [String(row._id), row as unknown as EvaluatedTo])),
    refilledToMs: found.find((row) => String(row._id) === refillIdOf(partition))?.refilledToMs ?? -Infinity,
  };
}

function toState({ rule, object, key, state, waiting }: Document): StoredState {
  const readings = (state.readings as Document[]).map(
    ({ truth, since, value }): Reading => ({ truth, sinceMs: since, value }),
  );
  return {
    ruleId: String(rule),
    objectId: String(object),
    key: String(key),
    state: { ...state, startedMs: state.startedMs ?? null, readings } as RuleState,
    waiting: waiting ?? null,
  };
}
