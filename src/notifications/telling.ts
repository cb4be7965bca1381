/** Makes messages of alarms that are due: what several of them have in common is read once, and what they write is written together. */
import { type Document, ObjectId } from 'mongodb';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { Severity } from '../core/rule/severity.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { isKeptBack } from './gateway.js';
import { type Notice, type Plan, planSteps, removeNotice, storeTold } from './notices.js';
import { addNotifications, loadTold, type Notification, toId } from './outbox.js';
import { loadAlarms, loadRecipients, type Recipient } from './recipients.js';

/** What is told of an alarm now. */
interface Telling {
  readonly notice: Notice;
  readonly severity: Severity;
  readonly plan: Plan;
}

interface TellingParts {
  readonly database: Database;
  readonly now: () => number;
}

/** Done again, it makes the same messages. Throws 503. */
export async function tell({ database, now }: TellingParts, notices: readonly Notice[]): Promise<void> {
  const nowMs = now();
  const alarms = await loadAlarms(
    database,
    notices.map(({ alarmId }) => alarmId),
  );
  const all: Telling[] = [];
  for (const notice of notices) {
    const alarm = alarms.get(notice.alarmId);
    const telling = alarm === undefined ? null : await plan(database, notice, alarm, nowMs);
    if (alarm === undefined) await removeNotice(database, notice.alarmId);
    if (telling !== null) all.push(telling);
  }
  const findRecipients = await createRecipientFinder(database, all);
  for (let from = 0, to = 0; from < all.length; from = to) {
    const messages: Notification[] = [];
    // Of one alarm there may be more, and they are stored together.
    for (; to < all.length && messages.length < LIMITS.notificationBatch; to++) {
      messages.push(...(await toMessages(all[to] as Telling, findRecipients, now)));
    }
    await store(database, all.slice(from, to), { messages, nowMs });
  }
}

/** Null where nobody is told now. */
async function plan(database: Database, notice: Notice, alarm: JsonObject, nowMs: number): Promise<Telling | null> {
  const isCleared = alarm.status === 'cleared';
  const isAcknowledged = (alarm.acknowledged ?? null) !== null;
  const suppressedBy = typeof alarm.suppressedBy === 'string' ? alarm.suppressedBy : null;
  if (!notice.isRaisedTold && (await isKeptBack(database, notice, { isCleared, suppressedBy, nowMs }))) return null;
  const severity = alarm.severity as Severity;
  return { notice, severity, plan: planSteps(notice, { isCleared, isAcknowledged }, nowMs) };
}

type FindRecipients = (alarmId: string, notify: Plan['steps'][number]['notify']) => Promise<readonly Recipient[]>;

/** Rules name the same people again and again: their channels are read once for all alarms that are told together. */
async function createRecipientFinder(database: Database, all: readonly Telling[]): Promise<FindRecipients> {
  const ended = all.filter(({ plan: { steps } }) => steps.some(({ notify }) => notify === null));
  const endedIds = ended.map(({ notice }) => notice.alarmId);
  const told = new Map(endedIds.map((id) => [id, [] as Recipient[]]));
  for (const { alarmId, ...lane } of await loadTold(database, endedIds))
    told.get(alarmId)?.push({ ...lane, text: null });
  const known = new Map<string, Promise<readonly Recipient[]>>();
  return async (alarmId, notify) => {
    if (notify === null) return told.get(alarmId) ?? [];
    const key = JSON.stringify(notify);
    const found = known.get(key) ?? loadRecipients(database, notify);
    known.set(key, found);
    return found;
  };
}

async function toMessages(
  { notice: { alarmId }, severity, plan: { steps } }: Telling,
  findRecipients: FindRecipients,
  now: () => number,
): Promise<Notification[]> {
  const messages: Notification[] = [];
  const nowMs = now();
  for (const [nth, { name, notify }] of steps.entries()) {
    // They are sent in the order of their times.
    const timeMs = nowMs - (steps.length - 1 - nth);
    for (const { userId, channel, text } of await findRecipients(alarmId, notify)) {
      const id = toId(alarmId, name, { userId, channel });
      messages.push({ id, userId, channel, alarmId, mailId: null, step: name, severity, text, timeMs, attempts: 0 });
    }
  }
  return messages;
}

/** First the messages: an alarm that was told has them. */
async function store(
  database: Database,
  told: readonly Telling[],
  { messages, nowMs }: { messages: readonly Notification[]; nowMs: number },
): Promise<void> {
  await addNotifications(database, messages);
  for (const { notice, plan } of told) {
    const { reminders } = plan.after;
    if (reminders > notice.reminders) await setReminders(database, notice.alarmId, reminders);
  }
  await storeTold(database, told, nowMs);
}

async function setReminders(database: Database, alarmId: string, reminders: number): Promise<void> {
  const update: Document = { $max: { reminders } };
  await mapDriverErrors(() => database.db.collection('alarms').updateOne({ _id: new ObjectId(alarmId) }, update));
}
