/** Reports on their way to people: a mail is stored once, and a row of the outbox for each address. */
import { Binary, type ClientSession, type Document, ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import type { Json } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { toOwnChannels } from '../core/notification.js';
import type { Notify } from '../core/rule/notifying.js';
import { builtInStore } from '../core/stores.js';
import { HOUR_MS } from '../core/units.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';
import type { Message } from './message.js';
import {
  addNotifications,
  addRefused,
  countOfLanes,
  countStates,
  type Lane,
  toReportLane,
  toReportRow,
} from './outbox.js';

export interface ReportMail {
  /** The same for each attempt to make it. */
  readonly id: string;
  readonly scheduleId: string;
  /** When it was due. */
  readonly dueMs: number;
  readonly title: string;
  readonly text: string;
  readonly link: string | null;
  readonly file: { readonly name: string; readonly content: Buffer } | null;
}

const mailsIn = ({ db }: Database) => db.collection<Document & { _id: string }>('reportMails');

/** The confirmed mail addresses of those that the scope sees among these users and the members of the group. Throws 503. */
export async function loadMailLanes(
  { db }: Database,
  scope: Scope,
  { users, group }: Pick<Notify, 'users' | 'group'>,
): Promise<Lane[]> {
  const named: Document[] = [{ _id: { $in: users.map((id) => new ObjectId(id)) } }];
  if (group !== null) named.push({ branch: new ObjectId(group) });
  const filter = {
    $and: [
      { active: { $ne: false }, '_channels.email': { $exists: true } },
      { $or: named },
      scopeFilter(builtInStore('users'), scope),
    ],
  };
  const options = {
    projection: { _channels: 1, _confirmed: 1 },
    limit: LIMITS.scheduleRecipients + 1,
    sort: { _id: 1 } as const,
    maxTimeMS: LIMITS.databaseOperationMs,
  };
  const find = () => db.collection('users').find(filter, options).toArray();
  const found = await mapDriverErrors(find, LIMITS.databaseOperationMs);
  return found.flatMap(({ _id, _channels, _confirmed }) =>
    toOwnChannels((_channels ?? null) as Json, (_confirmed ?? null) as Json)
      .filter(({ kind, isConfirmed }) => kind === 'email' && isConfirmed)
      .map((channel) => ({ userId: String(_id), channel: toReportLane(channel) })),
  );
}

/** To whom a report goes. */
export interface ReportLanes {
  readonly open: readonly Lane[];
  /** Those that have had their reports of the day. */
  readonly full: readonly Lane[];
}

/** Whom reports of any schedule may be sent now. Throws 503. */
export async function splitLanes(database: Database, lanes: readonly Lane[], nowMs: number): Promise<ReportLanes> {
  const counts = await countOfLanes(database, lanes, nowMs - LIMITS.scheduleMailsPerAddressMs);
  const isFull = (_: Lane, index: number): boolean => (counts[index] ?? 0) >= LIMITS.scheduleMailsPerAddress;
  return { open: lanes.filter((lane, index) => !isFull(lane, index)), full: lanes.filter(isFull) };
}

/** Why the full lanes are not mailed. */
export const whyFull = (): string =>
  `at most ${LIMITS.scheduleMailsPerAddress} reports in ${LIMITS.scheduleMailsPerAddressMs / HOUR_MS} h to a mail address`;

/** Within a transaction, which sees the errors of the driver as they are. What is stored already stays as it is. */
export async function addReportMail(
  database: Database,
  { id, scheduleId, dueMs, file, ...mail }: ReportMail,
  { lanes, nowMs, session }: { lanes: ReportLanes; nowMs: number; session: ClientSession },
): Promise<void> {
  const stored = {
    ...mail,
    schedule: new ObjectId(scheduleId),
    due: dueMs,
    file: file && { name: file.name, content: new Binary(file.content) },
    _expires: new Date(nowMs + LIMITS.scheduleMailKeptMs),
  };
  await mailsIn(database).updateOne({ _id: id }, { $setOnInsert: stored }, { upsert: true, session });
  const toRow = (lane: Lane) => toReportRow(id, lane, nowMs);
  await addNotifications(database, lanes.open.map(toRow), session);
  await addRefused(database, lanes.full.map(toRow), whyFull(), session);
}

/** The message of a report; null where it was kept too long. Throws 503. */
export async function loadReportMessage(database: Database, mailId: string, id: string): Promise<Message | null> {
  const found = await mapDriverErrors(() => mailsIn(database).findOne({ _id: mailId }));
  if (found === null) return null;
  const { title, text, link, file } = found;
  return {
    id,
    title,
    text,
    link,
    severity: 'info',
    ...(file && { file: { name: file.name, content: file.content.buffer } }),
  };
}

/** Shows at the schedule what became of its mails so far; what all have is not kept. Throws 503. */
export async function showReportMail(database: Database, mailId: string): Promise<void> {
  const find = () => mailsIn(database).findOne({ _id: mailId }, { projection: { schedule: 1, due: 1 } });
  const mail = await mapDriverErrors(find);
  if (mail === null) return;
  const { pending, sent, failed, error } = await countStates(database, mailId);
  const whole = pending > 0 ? 'sending' : 'sent';
  const status = failed > 0 ? 'failed' : whole;
  const why = failed === 0 ? error : `${failed} of ${pending + sent + failed} mails: ${error}`;
  const $set = { 'lastRun.status': status, 'lastRun.error': why };
  const run = { _id: mail.schedule as ObjectId, 'lastRun.due': mail.due };
  await mapDriverErrors(() => database.db.collection('schedules').updateOne(run, { $set }));
  if (pending === 0) await mapDriverErrors(() => mailsIn(database).deleteOne({ _id: mailId }));
}
