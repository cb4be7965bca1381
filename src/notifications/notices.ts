/** What is to be told of an alarm, and when: a row for each raised alarm, stored together with it, until it is cleared. */
import { type AnyBulkWriteOperation, type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import type { Notify } from '../core/rule/notifying.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

export const NOTICES = 'alarmNotices';

/** Who is told if nobody has acknowledged the alarm by then. */
export interface NoticeStep {
  readonly afterMs: number;
  readonly notify: readonly Notify[];
}

export interface Notice {
  readonly alarmId: string;
  /** That of the object. */
  readonly partition: number;
  readonly notify: readonly Notify[];
  readonly escalation: readonly NoticeStep[];
  readonly remindMs: number | null;
  /** When it was recorded, by the service's clock: reminders and escalations count from then. */
  readonly recordedMs: number;
  /** What has been told. */
  readonly isRaisedTold: boolean;
  readonly escalated: number;
  readonly reminders: number;
  /** The object that the alarm waits for: nobody is told while it is offline, nor of what ends then. */
  readonly gateway: string | null;
}

export type NewNotice = Omit<Notice, 'isRaisedTold' | 'escalated' | 'reminders'>;

/** A replay finds it stored. */
export function toNoticeWrite({ alarmId, ...notice }: NewNotice): AnyBulkWriteOperation {
  // The packet that says that a gateway is offline may come after those of its objects.
  const due = notice.recordedMs + (notice.gateway === null ? 0 : LIMITS.gatewayWaitMs);
  const fields = { ...notice, due, isRaisedTold: false, escalated: 0, reminders: 0 };
  const filter = { _id: new ObjectId(alarmId) };
  return { updateOne: { filter, update: { $setOnInsert: fields }, upsert: true } };
}

/** The alarm was cleared: whoever was told is told that too. */
export const toClearedNotice = (alarmId: string, nowMs: number): AnyBulkWriteOperation => ({
  updateOne: { filter: { _id: new ObjectId(alarmId) }, update: { $set: { due: nowMs, isCleared: true } } },
});

/** Something to be told: its name is part of the id of its messages. */
export interface Step {
  readonly name: string;
  /** Null: to those who were told before. */
  readonly notify: readonly Notify[] | null;
}

export interface Plan {
  readonly steps: readonly Step[];
  readonly after: Pick<Notice, 'isRaisedTold' | 'escalated' | 'reminders'>;
  /** When the next step is due; null: when the alarm is cleared. */
  readonly dueMs: number | null;
  readonly isOver: boolean;
}

/** What is due now. Reminders that were missed are one. Pure. */
export function planSteps(
  notice: Notice,
  alarm: { readonly isCleared: boolean; readonly isAcknowledged: boolean },
  nowMs: number,
): Plan {
  const { notify, escalation, remindMs, recordedMs, isRaisedTold } = notice;
  let { escalated, reminders } = notice;
  const steps: Step[] = isRaisedTold || notify.length === 0 ? [] : [{ name: 'raised', notify }];
  const end = (dueMs: number | null, isOver: boolean): Plan => {
    return { steps, after: { isRaisedTold: true, escalated, reminders }, dueMs, isOver };
  };
  if (alarm.isCleared) {
    // Whoever is told only now is told at once that it is over.
    if (isRaisedTold) steps.push({ name: 'cleared', notify: null });
    return end(null, true);
  }
  if (alarm.isAcknowledged) return end(null, false);
  for (; escalated < escalation.length; escalated++) {
    const step = escalation[escalated] as NoticeStep;
    if (recordedMs + step.afterMs > nowMs) break;
    if (step.notify.length > 0) steps.push({ name: `escalated-${escalated + 1}`, notify: step.notify });
  }
  const due: number[] = [];
  const next = escalation[escalated];
  if (next !== undefined) due.push(recordedMs + next.afterMs);
  if (remindMs !== null) {
    const count = Math.floor((nowMs - recordedMs) / remindMs);
    if (count > reminders) {
      reminders = count;
      const told = [...notify, ...escalation.slice(0, notice.escalated).flatMap((one) => one.notify)];
      if (told.length > 0) steps.push({ name: `reminder-${count}`, notify: told });
    }
    due.push(recordedMs + (reminders + 1) * remindMs);
  }
  return end(due.length === 0 ? null : Math.min(...due), false);
}

const noticesOf = ({ db }: Database) => db.collection(NOTICES);

/** Those that are due in these partitions, the oldest first. Throws 503. */
export async function loadDue(database: Database, partitions: readonly number[], nowMs: number): Promise<Notice[]> {
  const filter = { partition: { $in: partitions as number[] }, due: { $lte: nowMs } };
  const options = { sort: { due: 1 as const }, limit: LIMITS.noticesAtOnce, maxTimeMS: LIMITS.databaseOperationMs };
  const found = await mapDriverErrors(() => noticesOf(database).find(filter, options).toArray());
  return found.map(toNotice);
}

const toNotice = ({ _id, due: _, ...fields }: Document): Notice => ({
  ...(fields as Omit<Notice, 'alarmId'>),
  alarmId: String(_id),
});

/** Stores what was told. An alarm that was cleared meanwhile is due at once. Throws 503. */
export async function storeTold(
  database: Database,
  told: readonly { readonly notice: Notice; readonly plan: Plan }[],
  nowMs: number,
): Promise<void> {
  const operations = told.map(({ notice, plan }): AnyBulkWriteOperation => {
    const filter = { _id: new ObjectId(notice.alarmId) };
    if (plan.isOver) return { deleteOne: { filter } };
    const due = { $cond: [{ $eq: ['$isCleared', true] }, nowMs, plan.dueMs] };
    return { updateOne: { filter, update: [{ $set: { ...plan.after, due } }] } };
  });
  await mapDriverErrors(() => noticesOf(database).bulkWrite(operations, { ordered: false }));
}

/** Looks again later; null: nothing keeps the alarm back any more, and everything counts from then. Throws 503. */
export async function storeWaiting(
  database: Database,
  { alarmId }: Notice,
  { gateway, dueMs }: { gateway: string | null; dueMs: number },
): Promise<void> {
  const $set = { due: dueMs, gateway, ...(gateway === null && { recordedMs: dueMs }) };
  await mapDriverErrors(() => noticesOf(database).updateOne({ _id: new ObjectId(alarmId) }, { $set }));
}

/** Looks at it again later. Throws 503. */
export async function postponeNotice(database: Database, { alarmId }: Notice, dueMs: number): Promise<void> {
  await mapDriverErrors(() => noticesOf(database).updateOne({ _id: new ObjectId(alarmId) }, { $set: { due: dueMs } }));
}

export async function removeNotice(database: Database, alarmId: string): Promise<void> {
  await mapDriverErrors(() => noticesOf(database).deleteOne({ _id: new ObjectId(alarmId) }));
}
