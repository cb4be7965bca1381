/** One run of a schedule: computes its report with the rights of its owner as they are now, and writes the mail. */
import { createHash } from 'node:crypto';
import type { Account } from '../accounts/accounts.js';
import { type Caller, mayCall, type ScopeObject, scopeOf } from '../core/access.js';
import { conflict } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { intervalAt, type ScheduledReport } from '../core/scheduled-report.js';
import type { AssertSendsMail } from '../notifications/channels.js';
import {
  loadMailLanes,
  type ReportLanes,
  type ReportMail,
  splitLanes,
  whyFull,
} from '../notifications/report-mails.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { type ComputeDeps, type Computed, computeReport } from './compute.js';
import { isOfDays, parseReportInterval, toZonedText } from './interval.js';
import { createReport } from './kinds.js';
import { type MailedReport, toMail } from './mail-text.js';
import { parseObjectSelection } from './objects.js';
import type { Report } from './report.js';
import type { DueSchedule } from './schedule-store.js';
import { createCsvWriter, toFileName } from './writers.js';

export interface RunDeps extends ComputeDeps {
  readonly database: Database;
  readonly findAccount: (userId: string) => Promise<Account | null>;
  /** The objects that scopes name by `_id`. */
  readonly findScopeObjects: (scopes: readonly string[]) => Promise<ScopeObject[]>;
  readonly assertSendsMail: AssertSendsMail;
  readonly publicUrl: string | null;
  readonly now: () => number;
}

/** Which run of a schedule. */
export interface Run {
  readonly schedule: DueSchedule;
  readonly settings: ScheduledReport;
  /** When it was due: its interval counts from then. */
  readonly atMs: number;
  readonly isLate: boolean;
}

/** Throws an error that says why nothing is sent, 503 if that may be otherwise later, and the reason of `stop`. */
export async function composeMail(
  deps: RunDeps,
  { schedule, settings, atMs, isLate }: Run,
  stop: AbortSignal,
): Promise<{ readonly mail: ReportMail; readonly lanes: ReportLanes }> {
  deps.assertSendsMail();
  const caller = await findOwner(deps, schedule);
  const lanes = await findRecipients(deps, caller, settings);
  const report = toReport(settings, atMs, deps.now());
  const written = await write({ ...deps, database: { ...deps.database, stop } }, { settings, report, caller });
  if (written.computed.totals.objects === 0) throw conflict('its owner sees none of the objects that it covers');
  const mailed = { ...written, settings, report, lateSinceMs: isLate ? atMs : null, ownerLogin: caller.login };
  const { file } = written;
  const mail = {
    id: createHash('sha256').update(`report|${schedule.id}|${atMs}`).digest('hex').slice(0, 32),
    scheduleId: schedule.id,
    dueMs: atMs,
    ...toMail({ ...mailed, hasFile: file !== null }),
    link: toLink(deps.publicUrl, mailed),
    file: file === null ? null : { name: toFileName(report), content: file },
  };
  return { mail, lanes };
}

async function findOwner(
  { findAccount, findScopeObjects }: RunDeps,
  { ownerId, scopes, fields }: DueSchedule,
): Promise<Caller> {
  const account = await findAccount(ownerId);
  if (account === null) throw conflict('its owner is no active user');
  const [, tenantId = null] = fields.branch as string[];
  // Its recipients are of the former organization, and must not see the objects of the new one.
  if (account.tenantId !== tenantId) throw conflict('its owner has moved to another organization');
  const caller = { ...account, scopes, scopeObjects: await findScopeObjects(scopes ?? []), session: null, token: null };
  if (!mayCall(caller, 'POST', ['schedules'])) throw conflict('its owner may not schedule reports');
  return caller;
}

async function findRecipients(
  { database, now }: RunDeps,
  caller: Caller,
  { to }: ScheduledReport,
): Promise<ReportLanes> {
  const lanes = await loadMailLanes(database, scopeOf(caller), to);
  if (lanes.length === 0) throw conflict('nobody to whom it goes has a confirmed mail address');
  if (lanes.length > LIMITS.scheduleRecipients) {
    throw conflict(`more than ${LIMITS.scheduleRecipients} mail addresses: choose fewer users or a smaller group`);
  }
  const split = await splitLanes(database, lanes, now());
  if (split.open.length === 0) throw conflict(`nobody is mailed: ${whyFull()}`);
  return split;
}

function toReport(settings: ScheduledReport, atMs: number, nowMs: number): Report {
  const { report, query, tz } = settings;
  const { fromMs, toMs } = intervalAt(settings, atMs);
  const interval = parseReportInterval({ ...query, tz, from: String(fromMs), to: String(toMs) }, nowMs);
  return createReport(report, query, interval, nowMs);
}

interface Written extends Pick<MailedReport, 'rows'> {
  readonly computed: Computed;
  /** Null where it would be too large. */
  readonly file: Buffer | null;
}

async function write(
  deps: RunDeps,
  { settings, report, caller }: { settings: ScheduledReport; report: Report; caller: Caller },
): Promise<Written> {
  const isGerman = settings.language === 'de';
  const form = { isForSpreadsheet: true, separator: isGerman ? ';' : ',', decimalSign: isGerman ? ',' : '.' } as const;
  const writer = createCsvWriter(report, form);
  const rows: MailedReport['rows'][number][] = [];
  const file = new FilePieces();
  const asked = { report, selection: parseObjectSelection(settings.query), caller };
  const computed = await computeReport(deps, deps.database, asked, {
    begin: () => file.add(writer.begin()),
    row(object, row) {
      if (rows.length < LIMITS.scheduleRowsShown) rows.push({ object, row });
      file.add(writer.row(object, row));
      return null;
    },
    endObject: () => null,
    hasSent: () => false,
  });
  file.add(writer.end(computed.totals, computed.cut));
  return { computed, rows, file: file.take() };
}

/** A file that is small enough for a mail. */
class FilePieces {
  #pieces: Buffer[] = [];
  #bytes = 0;

  add(text: string): void {
    if (this.#bytes > LIMITS.scheduleFileBytes) return;
    const piece = Buffer.from(text);
    this.#bytes += piece.length;
    this.#pieces.push(piece);
    if (this.#bytes > LIMITS.scheduleFileBytes) this.#pieces = [];
  }

  take(): Buffer | null {
    return this.#bytes > LIMITS.scheduleFileBytes ? null : Buffer.concat(this.#pieces);
  }
}

/** The page of the console with the same report. */
function toLink(
  publicUrl: string | null,
  { settings, report }: { settings: ScheduledReport; report: Report },
): string | null {
  if (publicUrl === null) return null;
  const { interval } = report;
  const { group, objects, labels, every, param } = settings.query;
  const isWhole = isOfDays(interval);
  const at = (ms: number) => {
    const text = toZonedText(ms, interval.zone);
    return { day: text.slice(0, 10), hour: text.slice(11, 16) };
  };
  const first = at(interval.fromMs);
  const last = at(isWhole ? interval.toMs : interval.toMs + 1);
  const days = isWhole
    ? { from: first.day, to: last.day }
    : { from: first.day, to: first.day, hours: `${first.hour}-${last.hour}` };
  const asked = { kind: report.name, group, objects, labels, every, param, ...days };
  const given = Object.entries(asked).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return `${publicUrl}/reports?${new URLSearchParams(given)}`;
}
