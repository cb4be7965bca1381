/** Sends what is due over one channel of a user: in order, as far as the user may know it and wants to, and not too much at once. */
import { ObjectId } from 'mongodb';
import type { Account } from '../accounts/accounts.js';
import { backoffMs } from '../core/backoff.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { Channel } from '../core/notification.js';
import { findClosing, isOpen } from '../core/rule/schedule.js';
import { isAtLeast, type Severity } from '../core/rule/severity.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import type { Channels } from './channels.js';
import type { Message } from './message.js';
import {
  channelKey,
  countHeld,
  dropLane,
  hold,
  isOver,
  isReminder,
  kindOf,
  type Lane,
  type LaneFailures,
  loadFailures,
  loadLane,
  loadSent,
  type Notification,
  postpone,
  postponeLane,
  restLane,
  resumeLane,
  type SentRow,
  severityOf,
  storeEnded,
  wasTold,
} from './outbox.js';
import { loadPerson, type Person, removeChannel } from './person.js';
import { loadReadable, loadSeenObject } from './recipients.js';
import { loadReportMessage, showReportMail } from './report-mails.js';
import type { SentMessages } from './sent-messages.js';
import { toDigest, toMessage } from './text.js';

export interface LaneParts {
  readonly database: Database;
  readonly findAccount: (userId: string) => Promise<Account | null>;
  readonly send: Channels['send'];
  readonly publicUrl: string | null;
  /** A message was given up. */
  readonly onFailed: (notification: Notification, error: string) => void;
  readonly now: () => number;
  readonly sentMessages: SentMessages;
}

interface Run extends LaneParts {
  readonly lane: Lane;
  readonly account: Account;
  readonly person: Person;
  readonly channel: Channel;
  readonly alarms: ReadonlyMap<string, JsonObject>;
  /** What was sent to the person in the time in which storms are counted, and what is on its way. */
  readonly sent: SentRow[];
  known: LaneFailures;
  readonly signal: AbortSignal;
}

/** Whether more may be due. Throws 503. */
export async function runLane(parts: LaneParts, lane: Lane, signal: AbortSignal): Promise<boolean> {
  const { database, now } = parts;
  const rows = await loadLane(database, lane, now());
  if (rows.length === 0) return false;
  const [account, person] = await Promise.all([parts.findAccount(lane.userId), loadPerson(database, lane.userId)]);
  if (account === null || person === null) {
    await drop(parts, lane, rows, 'the user is not active');
    return false;
  }
  const channel = person.channels.find((one) => isOver(lane.channel, one));
  if (channel === undefined) {
    await drop(parts, lane, rows, 'the user has removed the channel');
    return false;
  }
  if (!channel.isConfirmed) {
    await dropUnconfirmed(parts, lane, rows);
    return false;
  }
  const known = await loadFailures(database, lane);
  if (known.restsUntilMs !== null && known.restsUntilMs > now()) {
    await restLane(database, lane, known.restsUntilMs);
    return false;
  }
  const alarms = await loadReadable(
    database,
    account,
    rows.flatMap(({ alarmId }) => alarmId ?? []),
  );
  const keys = person.channels.map(channelKey);
  const load = () => loadSent(database, lane.userId, keys, now() - LIMITS.stormMs);
  await parts.sentMessages.share(lane.userId, load, (sent) =>
    runRows({ ...parts, lane, account, person, channel, alarms, sent, known, signal }, rows),
  );
  return rows.length === LIMITS.notificationBatch && !signal.aborted;
}

/** Sends what is due, until something fails. */
async function runRows(run: Run, rows: readonly Notification[]): Promise<void> {
  const newest = new Map(rows.filter(({ step }) => isReminder(step)).map(({ alarmId, id }) => [alarmId, id]));
  const held: Notification[] = [];
  for (const row of rows) {
    if (run.signal.aborted) break;
    const isOutdated = isReminder(row.step) && newest.get(row.alarmId) !== row.id;
    const outcome = await (isOutdated ? dropOne(run, row, 'a later reminder follows') : runOne(run, row));
    if (outcome === 'failed') break;
    if (outcome === 'held') held.push(row);
  }
  await holdBack(run, held);
}

/** The alarms say it: their readers wonder why the user was not told. */
async function dropUnconfirmed(parts: LaneParts, lane: Lane, rows: readonly Notification[]): Promise<void> {
  const error = 'the address is not confirmed';
  for (const row of rows) if (!isReminder(row.step)) await showAtAlarm({ ...parts, lane }, row, error);
  await drop(parts, lane, rows, error);
}

/** Nothing of the lane is sent any more. */
async function drop(
  { database, now }: LaneParts,
  lane: Lane,
  rows: readonly Notification[],
  error: string,
): Promise<void> {
  await dropLane(database, lane, error, now());
  for (const { mailId } of rows) if (mailId !== null) await showReportMail(database, mailId);
}

type RowOutcome = 'sent' | 'done' | 'held' | 'failed';

async function runOne(run: Run, row: Notification): Promise<RowOutcome> {
  const { database, person, now } = run;
  if (row.mailId !== null) return runReport(run, row, row.mailId);
  const nowMs = now();
  const waitsMs = quietUntil(person, row.severity, nowMs);
  if (waitsMs !== null) {
    await postpone(database, [row.id], waitsMs);
    return 'done';
  }
  if (row.alarmId === null) {
    return counted(run, row, false, async () =>
      attempt(run, row, toDigest(row, await countHeld(database, row.id), run.publicUrl), false),
    );
  }
  const alarm = run.alarms.get(row.alarmId);
  const reason = alarm === undefined ? 'the user may not read the alarm' : await findReason(run, row, alarm);
  if (alarm === undefined || reason !== null) return dropOne(run, row, reason);
  const isCleared = alarm.status === 'cleared';
  if (isStorm(run, severityOf(row.severity, isCleared))) return 'held';
  return counted(run, row, isCleared, async () => {
    const object = await loadSeenObject(database, run.account, String(alarm.object));
    if (object === null) return dropOne(run, row, 'the user does not see the object');
    const message = toMessage(row, { alarm, object, publicUrl: run.publicUrl });
    return attempt(run, row, message, isCleared);
  });
}

/** It was ordered for this time: neither quiet hours nor other messages keep it waiting. */
async function runReport(run: Run, row: Notification, mailId: string): Promise<RowOutcome> {
  const message = await loadReportMessage(run.database, mailId, row.id);
  const outcome = await (message === null
    ? dropOne(run, row, 'the report was kept too long')
    : attempt(run, row, message, false));
  await showReportMail(run.database, mailId);
  return outcome;
}

/** Other channels of the person send meanwhile: a message counts while it is on its way, and afterwards if it was sent. */
async function counted(
  { lane, sent, now }: Run,
  { alarmId, severity }: Notification,
  saysCleared: boolean,
  send: () => Promise<RowOutcome>,
): Promise<RowOutcome> {
  const isDigest = alarmId === null;
  const message = { channel: lane.channel, sentMs: now(), isDigest, severity: severityOf(severity, saysCleared) };
  sent.push(message);
  let outcome: RowOutcome = 'failed';
  try {
    outcome = await send();
  } finally {
    if (outcome !== 'sent') sent.splice(sent.indexOf(message), 1);
  }
  return outcome;
}

/** Until when a message waits; null where it does not. */
function quietUntil({ quiet }: Person, severity: Severity, nowMs: number): number | null {
  if (quiet === null || severity === 'critical' || !isOpen(quiet, nowMs)) return null;
  return findClosing(quiet, nowMs);
}

/** Whether there were too many messages that are at least as severe: others hold back nothing. */
const isStorm = ({ sent, now }: Run, severity: Severity): boolean =>
  sent.filter((one) => !one.isDigest && one.sentMs > now() - LIMITS.stormMs && isAtLeast(one.severity, severity))
    .length >= LIMITS.stormMessages;

/** Why a message has become needless; null where it has not. */
async function findReason(
  { database, person, lane }: Run,
  { step, severity, alarmId }: Notification,
  { status, acknowledged }: JsonObject,
): Promise<string | null> {
  if (!isAtLeast(severity, person.minSeverity)) return `below ${person.minSeverity}`;
  if (step === 'raised') return null;
  if (step === 'cleared') {
    return (await wasTold(database, alarmId as string, lane)) ? null : 'nothing was told before';
  }
  if (status === 'cleared') return 'cleared';
  return (acknowledged ?? null) === null ? null : 'acknowledged';
}

async function dropOne({ database, now }: Run, row: Notification, error: string | null): Promise<RowOutcome> {
  const { attempts } = row;
  await storeEnded(database, row, { state: 'dropped', attempts, error, sentMs: null, saysCleared: false }, now());
  return 'done';
}

async function attempt(run: Run, row: Notification, message: Message, saysCleared: boolean): Promise<RowOutcome> {
  const { database, now, signal } = run;
  const { error, isFinal, isGone, retryAfterMs } = await run.send(run.channel, message, signal);
  const attempts = row.attempts + 1;
  const nowMs = now();
  if (error === null) {
    await storeEnded(database, row, { state: 'sent', attempts, error, sentMs: nowMs, saysCleared }, nowMs);
    await showAtAlarm(run, row, null);
    if (run.known.restsUntilMs !== null || row.attempts > 0) await resumeLane(database, run.lane, nowMs);
    run.known = { failures: 0, restsUntilMs: null };
    return 'sent';
  }
  // Another instance goes on with it.
  if (signal.aborted) return 'failed';
  if (isFinal || attempts >= LIMITS.notificationAttempts) {
    await storeEnded(database, row, { state: 'failed', attempts, error, sentMs: null, saysCleared: false }, nowMs);
    await showAtAlarm(run, row, error);
    run.onFailed(row, error);
    if (isGone) await removeChannel(database, run.lane.userId, run.channel);
    return 'done';
  }
  // A message that has just come does not begin anew with a receiver that has failed for long.
  const failures = Math.max(attempts, run.known.failures + 1);
  const waitMs = backoffMs(failures, LIMITS.notificationRetryMs, LIMITS.notificationRetryMaxMs, clock.random());
  const askedMs = retryAfterMs ?? 0;
  await postponeLane(
    database,
    { ...row, attempts },
    {
      error,
      nextMs: nowMs + Math.max(waitMs, askedMs),
      restsUntilMs: nowMs + Math.max(Math.min(waitMs, LIMITS.notificationProbeMs), askedMs),
    },
  );
  return 'failed';
}

/** Whom the alarm was told, and whom it could not be told. */
async function showAtAlarm(
  { database, lane, now }: Pick<Run, 'database' | 'lane' | 'now'>,
  { alarmId, step }: Notification,
  error: string | null,
): Promise<void> {
  if (alarmId === null) return;
  const entry = {
    user: lane.userId,
    channel: kindOf(lane.channel),
    step,
    time: now(),
    ...(error !== null && { error }),
  };
  const $push = { notified: { $each: [entry], $slice: -LIMITS.notificationsShown } };
  await mapDriverErrors(() =>
    database.db.collection('alarms').updateOne({ _id: new ObjectId(alarmId) }, { $push: $push as never }),
  );
}

/** Makes one message of those that are too many: soon, and then once for each time in which storms are counted. */
async function holdBack({ database, lane, sent, now }: Run, held: readonly Notification[]): Promise<void> {
  if (held.length === 0) return;
  const nowMs = now();
  const recent = sent.filter(({ sentMs }) => sentMs > nowMs - LIMITS.stormMs);
  const wasReported = recent.some(({ isDigest, channel }) => isDigest && channel === lane.channel);
  const oldestMs = Math.min(nowMs, ...recent.map(({ sentMs }) => sentMs));
  await hold(database, lane, {
    held: held.map(({ id }) => id),
    severity: held.reduce<Severity>((worst, one) => (isAtLeast(one.severity, worst) ? one.severity : worst), 'info'),
    dueMs: wasReported ? oldestMs + LIMITS.stormMs : nowMs + LIMITS.stormGatherMs,
    nowMs,
  });
}
