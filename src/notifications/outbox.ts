/** The outbox of notifications: a row for each message, user and channel, from when it is due until the receiver has it or it was given up. */
import { createHash } from 'node:crypto';
import { type AnyBulkWriteOperation, type ClientSession, type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import type { Channel, ChannelKind } from '../core/notification.js';
import type { Severity } from '../core/rule/severity.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { partitionOf } from '../processing/processor.js';

const NOTIFICATIONS = 'notifications';

/** `held`: part of a digest. `dropped`: nobody is to be told any more. */
export type NotificationState = 'pending' | 'sent' | 'failed' | 'dropped' | 'held';

/** A message that waits. */
export interface Notification {
  /** The same for each attempt. */
  readonly id: string;
  readonly userId: string;
  /** Tells the channels of a user apart without their addresses. */
  readonly channel: string;
  /** Null for a digest and for a report. */
  readonly alarmId: string | null;
  /** The mail of a report; null for the others. */
  readonly mailId: string | null;
  /** What it tells: `raised`, `cleared`, `reminder-1`, `escalated-1`, `digest` or `report`. */
  readonly step: string;
  readonly severity: Severity;
  /** The rule's text; null for what the condition read. */
  readonly text: string | null;
  readonly timeMs: number;
  readonly attempts: number;
}

/** A user's channel: its messages are sent one after the other. */
export interface Lane {
  readonly userId: string;
  readonly channel: string;
}

const rowsOf = ({ db }: Database) => db.collection<Document & { _id: string }>(NOTIFICATIONS);
const digestOf = (...parts: readonly string[]): string =>
  createHash('sha256').update(parts.join('|')).digest('hex').slice(0, 32);

export const channelKey = ({ kind, address }: Channel): string => `${kind}:${digestOf(kind, address).slice(0, 12)}`;

/** Reports wait in a lane of their own: a mail server that refuses a large file keeps no alarm waiting. */
export const toReportLane = (channel: Channel): string => `${channelKey(channel)}:report`;
/** Whether the messages of the lane go over the channel. */
export const isOver = (lane: string, channel: Channel): boolean =>
  lane === channelKey(channel) || lane === toReportLane(channel);
export const kindOf = (channel: string): ChannelKind => channel.split(':', 1)[0] as ChannelKind;

export const notificationPartition = (userId: string): number => partitionOf(userId, LIMITS.partitions);

export const toId = (alarmId: string, step: string, { userId, channel }: Lane): string =>
  digestOf('notification', alarmId, step, userId, channel);

/** A report to one address. */
export const toReportRow = (mailId: string, lane: Lane, timeMs: number): Notification => ({
  ...lane,
  id: digestOf('report', mailId, lane.userId, lane.channel),
  alarmId: null,
  mailId,
  step: 'report',
  severity: 'info',
  text: null,
  timeMs,
  attempts: 0,
});

/** Rows that may be stored already stay as they are. Throws 503; within a transaction the errors of the driver. */
export async function addNotifications(
  database: Database,
  added: readonly Notification[],
  session?: ClientSession,
): Promise<void> {
  if (added.length === 0) return;
  const operations = added.map((one) => ({
    updateOne: { filter: { _id: one.id }, update: { $setOnInsert: toDocument(one, one.timeMs) }, upsert: true },
  }));
  const write = () => rowsOf(database).bulkWrite(operations as never, { ordered: false, ...(session && { session }) });
  await (session === undefined ? mapDriverErrors(write) : write());
}

/** Rows of messages that are not sent, which say why. Within a transaction, which sees the errors of the driver as they are. */
export async function addRefused(
  database: Database,
  refused: readonly Notification[],
  error: string,
  session: ClientSession,
): Promise<void> {
  if (refused.length === 0) return;
  const operations = refused.map((one) => {
    const _expires = new Date(one.timeMs + LIMITS.notificationKeptMs);
    const row = Object.assign(toDocument(one, one.timeMs), { state: 'failed', error, _expires });
    return { updateOne: { filter: { _id: one.id }, update: { $setOnInsert: row }, upsert: true } };
  });
  await rowsOf(database).bulkWrite(operations as never, { ordered: false, session });
}

/** How many messages each of the lanes has had since then, and will have. Throws 503. */
export async function countOfLanes(
  database: Database,
  lanes: readonly Lane[],
  sinceMs: number,
): Promise<readonly number[]> {
  const of = (more: Document): Document => ({ $or: lanes.map((lane) => ({ ...inLane(lane), ...more })) });
  const group = { $group: { _id: { user: '$user', channel: '$channel' }, count: { $sum: 1 } } };
  const options = { maxTimeMS: LIMITS.databaseOperationMs };
  const counts = new Map<string, number>();
  const key = (userId: string, channel: string): string => `${userId} ${channel}`;
  for (const match of [of({ sent: { $gt: sinceMs } }), of({ state: 'pending' })]) {
    const read = () =>
      rowsOf(database)
        .aggregate([{ $match: match }, group], options)
        .toArray();
    for (const { _id, count } of await mapDriverErrors(read)) {
      const lane = key(String(_id.user), _id.channel);
      counts.set(lane, (counts.get(lane) ?? 0) + count);
    }
  }
  return lanes.map(({ userId, channel }) => counts.get(key(userId, channel)) ?? 0);
}

function toDocument({ userId, channel, alarmId, mailId, ...rest }: Notification, nextMs: number): Document {
  return {
    partition: notificationPartition(userId),
    user: new ObjectId(userId),
    channel,
    alarm: alarmId === null ? null : new ObjectId(alarmId),
    ...(mailId !== null && { mail: mailId }),
    state: 'pending',
    step: rest.step,
    severity: rest.severity,
    text: rest.text,
    time: rest.timeMs,
    attempts: rest.attempts,
    next: nextMs,
  };
}

const toNotification = (found: Document): Notification => ({
  id: String(found._id),
  userId: String(found.user),
  channel: found.channel,
  alarmId: found.alarm === null ? null : String(found.alarm),
  mailId: found.mail ?? null,
  step: found.step,
  severity: found.severity,
  text: found.text,
  timeMs: found.time,
  attempts: found.attempts,
});

/** The channels that have something due, those that wait longest first. Throws 503. */
export async function findDueLanes(database: Database, partitions: readonly number[], nowMs: number): Promise<Lane[]> {
  const due = { partition: { $in: partitions }, state: 'pending', next: { $lte: nowMs } };
  const group = { $group: { _id: { user: '$user', channel: '$channel' }, next: { $min: '$next' } } };
  const pipeline = [{ $match: due }, group, { $sort: { next: 1 } }, { $limit: LIMITS.notificationLanes }];
  const found = await mapDriverErrors(() =>
    rowsOf(database).aggregate(pipeline, { maxTimeMS: LIMITS.databaseOperationMs }).toArray(),
  );
  return found.map(({ _id }) => ({ userId: String(_id.user), channel: _id.channel }));
}

const inLane = ({ userId, channel }: Lane): Document => ({ user: new ObjectId(userId), channel });

/** What is due in a lane, in the order in which it came. Throws 503. */
export async function loadLane(database: Database, lane: Lane, nowMs: number): Promise<Notification[]> {
  const filter = { ...inLane(lane), state: 'pending', next: { $lte: nowMs } };
  const options = { sort: { time: 1, _id: 1 } as const, limit: LIMITS.notificationBatch };
  return (await mapDriverErrors(() => rowsOf(database).find(filter, options).toArray())).map(toNotification);
}

export interface SentRow {
  readonly channel: string;
  readonly sentMs: number;
  readonly isDigest: boolean;
  readonly severity: Severity;
}

/** The end of an alarm is never urgent. */
export const severityOf = (severity: Severity, saysCleared: boolean): Severity => (saysCleared ? 'info' : severity);

/** What was sent to a person over these channels since then. Throws 503. */
export async function loadSent(
  database: Database,
  userId: string,
  channels: readonly string[],
  sinceMs: number,
): Promise<SentRow[]> {
  const filter = { user: new ObjectId(userId), channel: { $in: channels }, sent: { $gt: sinceMs } };
  const options = {
    projection: { channel: 1, sent: 1, step: 1, severity: 1, saysCleared: 1 },
    limit: LIMITS.notificationBatch,
  };
  const found = await mapDriverErrors(() => rowsOf(database).find(filter, options).toArray());
  return found.map(({ channel, sent, step, severity, saysCleared }) => ({
    channel,
    sentMs: sent,
    isDigest: step === 'digest',
    severity: severityOf(severity, saysCleared === true),
  }));
}

/** Those who were told of each of these alarms, or will be. Throws 503. */
export async function loadTold(
  database: Database,
  alarmIds: readonly string[],
): Promise<(Lane & { alarmId: string })[]> {
  if (alarmIds.length === 0) return [];
  const alarm = { $in: alarmIds.map((id) => new ObjectId(id)) };
  const told = { alarm, state: { $in: ['pending', 'sent'] } };
  const group = { $group: { _id: { alarm: '$alarm', user: '$user', channel: '$channel' } } };
  const found = await mapDriverErrors(() =>
    rowsOf(database)
      .aggregate([{ $match: told }, group], { maxTimeMS: LIMITS.databaseOperationMs })
      .toArray(),
  );
  return found.map(({ _id }) => ({ alarmId: String(_id.alarm), userId: String(_id.user), channel: _id.channel }));
}

/** Whether something of the alarm was sent over the channel that does not say already that it is over. Throws 503. */
export async function wasTold(database: Database, alarmId: string, lane: Lane): Promise<boolean> {
  const filter = { alarm: new ObjectId(alarmId), ...inLane(lane), state: 'sent', saysCleared: { $ne: true } };
  return (await mapDriverErrors(() => rowsOf(database).findOne(filter, { projection: { _id: 1 } }))) !== null;
}

/** A rule may remind every second: its reminders are kept for a shorter time. */
export const isReminder = (step: string): boolean => step.startsWith('reminder-');

export interface Ended {
  readonly state: Exclude<NotificationState, 'pending'>;
  readonly attempts: number;
  readonly error: string | null;
  /** When it was sent. */
  readonly sentMs: number | null;
  /** Whether the message said that the alarm is over. */
  readonly saysCleared: boolean;
}

/** Throws 503. */
export async function storeEnded(
  database: Database,
  { id, step }: Pick<Notification, 'id' | 'step'>,
  ended: Ended,
  nowMs: number,
): Promise<void> {
  const $set: Document = {
    state: ended.state,
    attempts: ended.attempts,
    error: ended.error,
    saysCleared: ended.saysCleared,
    _expires: new Date(nowMs + (isReminder(step) ? LIMITS.reminderKeptMs : LIMITS.notificationKeptMs)),
    ...(ended.sentMs !== null && { sent: ended.sentMs }),
  };
  await mapDriverErrors(() => rowsOf(database).updateOne({ _id: id }, { $set }));
}

/** What is known of a receiver that has failed. */
export interface LaneFailures {
  /** In a row, by the message that was tried most often. */
  readonly failures: number;
  /** Until when the lane rests; null where nothing failed. */
  readonly restsUntilMs: number | null;
}

/** Throws 503. */
export async function loadFailures(database: Database, lane: Lane): Promise<LaneFailures> {
  const waiting = { $match: { ...inLane(lane), state: 'pending', rests: { $exists: true } } };
  const group = { $group: { _id: null, failures: { $max: '$attempts' }, restsUntilMs: { $max: '$rests' } } };
  const [found] = await mapDriverErrors(() =>
    rowsOf(database)
      .aggregate<LaneFailures & Document>([waiting, group], { maxTimeMS: LIMITS.databaseOperationMs })
      .toArray(),
  );
  return found ?? { failures: 0, restsUntilMs: null };
}

/** A failed attempt: all messages of the channel wait for the next one, and those that come wait until `restsUntilMs`. Throws 503. */
export async function postponeLane(
  database: Database,
  { id, attempts, ...lane }: Notification,
  { error, nextMs, restsUntilMs }: { error: string; nextMs: number; restsUntilMs: number },
): Promise<void> {
  const waiting = { ...inLane(lane), state: 'pending', next: { $lt: nextMs } };
  const $set = { next: nextMs, rests: restsUntilMs };
  const operations: AnyBulkWriteOperation<Document & { _id: string }>[] = [
    { updateOne: { filter: { _id: id }, update: { $set: { ...$set, attempts, error } } } },
    { updateMany: { filter: waiting, update: { $set } } },
  ];
  await mapDriverErrors(() => rowsOf(database).bulkWrite(operations));
}

/** What is due in a lane that rests waits until its end. Throws 503. */
export async function restLane(database: Database, lane: Lane, untilMs: number): Promise<void> {
  const due = { ...inLane(lane), state: 'pending', next: { $lt: untilMs } };
  await mapDriverErrors(() => rowsOf(database).updateMany(due, { $set: { next: untilMs, rests: untilMs } }));
}

/** The receiver is back: what waited for it is due. Throws 503. */
export async function resumeLane(database: Database, lane: Lane, nowMs: number): Promise<void> {
  const waiting = { ...inLane(lane), state: 'pending', rests: { $exists: true } };
  const update = { $set: { next: nowMs }, $unset: { rests: '' } };
  await mapDriverErrors(() => rowsOf(database).updateMany(waiting, update));
}

/** Waits for the end of the quiet hours, for example. Throws 503. */
export async function postpone(database: Database, ids: readonly string[], nextMs: number): Promise<void> {
  if (ids.length === 0) return;
  await mapDriverErrors(() =>
    rowsOf(database).updateMany({ _id: { $in: [...ids] }, state: 'pending' }, { $set: { next: nextMs } }),
  );
}

/** Nothing of the channel is sent any more: its user has removed it, for example. Throws 503. */
export async function dropLane(database: Database, lane: Lane, error: string, nowMs: number): Promise<void> {
  const $set = { state: 'dropped', error, _expires: new Date(nowMs + LIMITS.notificationKeptMs) };
  await mapDriverErrors(() => rowsOf(database).updateMany({ ...inLane(lane), state: 'pending' }, { $set }));
}

/** Whether a digest waits, and which. Throws 503. */
async function findDigest(database: Database, lane: Lane): Promise<string | null> {
  const filter = { ...inLane(lane), step: 'digest', state: 'pending' };
  return (await mapDriverErrors(() => rowsOf(database).findOne(filter, { projection: { _id: 1 } })))?._id ?? null;
}

/** Makes messages part of a digest, which is sent then unless it waits already. Throws 503. */
export async function hold(
  database: Database,
  lane: Lane,
  { held, severity, dueMs, nowMs }: { held: readonly string[]; severity: Severity; dueMs: number; nowMs: number },
): Promise<void> {
  const [first] = held;
  if (first === undefined) return;
  const present = await findDigest(database, lane);
  const id = present ?? digestOf('digest', first);
  if (present === null) {
    const digest = {
      ...lane,
      id,
      alarmId: null,
      mailId: null,
      step: 'digest',
      severity,
      text: null,
      timeMs: nowMs,
      attempts: 0,
    };
    const update = { $setOnInsert: toDocument(digest, dueMs) };
    await mapDriverErrors(() => rowsOf(database).updateOne({ _id: id }, update, { upsert: true }));
  } else if (severity === 'critical') {
    await mapDriverErrors(() => rowsOf(database).updateOne({ _id: id }, { $set: { severity } }));
  }
  const $set = { state: 'held', digest: id, _expires: new Date(nowMs + LIMITS.reminderKeptMs) };
  await mapDriverErrors(() => rowsOf(database).updateMany({ _id: { $in: [...held] }, state: 'pending' }, { $set }));
}

/** How many messages a digest stands for, by severity, and how many of them tell the end of an alarm. Throws 503. */
export async function countHeld(
  database: Database,
  id: string,
): Promise<{ severity: Severity; isEnd: boolean; count: number }[]> {
  const group = {
    $group: { _id: { severity: '$severity', isEnd: { $eq: ['$step', 'cleared'] } }, count: { $sum: 1 } },
  };
  const found = await mapDriverErrors(() =>
    rowsOf(database)
      .aggregate([{ $match: { digest: id } }, group])
      .toArray(),
  );
  return found.map(({ _id, count }) => ({ severity: _id.severity, isEnd: _id.isEnd, count }));
}

/** How many mails of a report wait, were sent, and were given up; and why one of these was, or still waits. Throws 503. */
export async function countStates(
  database: Database,
  mailId: string,
): Promise<{ pending: number; sent: number; failed: number; error: string | null }> {
  const group = { $group: { _id: '$state', count: { $sum: 1 }, error: { $max: '$error' } } };
  const found = await mapDriverErrors(() =>
    rowsOf(database)
      .aggregate([{ $match: { mail: mailId } }, group])
      .toArray(),
  );
  const count = (...states: NotificationState[]): number =>
    found.filter(({ _id }) => states.includes(_id)).reduce((sum, one) => sum + one.count, 0);
  const failed = count('failed', 'dropped');
  const told = found.find(({ _id, error }) => error && (failed === 0 ? _id === 'pending' : _id !== 'pending'));
  return { pending: count('pending'), sent: count('sent'), failed, error: told?.error ?? null };
}
