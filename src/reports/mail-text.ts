/** What a report by mail says: its interval, its totals, its first rows, and where the rest is. Plain text. Pure. */
import { LIMITS } from '../core/limits.js';
import type { ReportName } from '../core/report-kinds.js';
import type { MailLanguage, ScheduledReport } from '../core/scheduled-report.js';
import { MIB, MINUTE_MS } from '../core/units.js';
import { shorten, toLine, toTitle } from '../notifications/message.js';
import type { Computed } from './compute.js';
import { isOfDays } from './interval.js';
import { MAIL_WORDS } from './mail-words.js';
import type { ReportObject } from './objects.js';
import type { Cell, Column, Report, Row } from './report.js';

export interface MailedReport {
  readonly settings: ScheduledReport;
  readonly report: Report;
  readonly computed: Computed;
  /** The first ones. */
  readonly rows: readonly { readonly object: ReportObject; readonly row: Row }[];
  readonly hasFile: boolean;
  /** When it was due; null if it is not late. */
  readonly lateSinceMs: number | null;
  readonly ownerLogin: string;
}

/** The columns that have room in a mail. */
const SHOWN: Readonly<Record<ReportName, readonly string[]>> = {
  mileage: ['distance', 'trips', 'movingTime'],
  trips: ['from', 'duration', 'distance'],
  stops: ['from', 'duration'],
  geofences: ['geofenceName', 'visits', 'duration'],
  utilization: ['value', 'duration', 'share'],
  shift: ['kind', 'from', 'text'],
};

const CELL_CHARACTERS = 40;

export function toMail(mailed: MailedReport): { readonly title: string; readonly text: string } {
  const { settings, report, computed, rows, hasFile, lateSinceMs } = mailed;
  const { language, name, tz } = settings;
  const words = MAIL_WORDS[language];
  const { totals, cut } = computed;
  const count = (value: number): string => value.toLocaleString(language);
  const missing = report.missing?.() ?? [];
  const heading = `${words.titles[report.name]}, ${toIntervalText(report, language)}`;
  const more = totals.rows - rows.length;
  const blocks = [
    [heading + (tz === 'UTC' ? ' (UTC)' : ` (${tz})`)],
    lateSinceMs === null ? [] : [words.late(toTimeText(lateSinceMs, settings))],
    toTotals(mailed),
    rows.length === 0 ? [words.nothing] : toTable(mailed),
    more > 0 ? [words.more(count(more))] : [],
    cut === null ? [] : [words.cut(count(cut.objects), cut.reason)],
    missing.length === 0 ? [] : [words.missing(missing.join(', '))],
    [hasFile ? words.attached : words.tooLarge(count(LIMITS.scheduleFileBytes / MIB))],
    [words.sender(toLine(mailed.ownerLogin), toLine(name))],
  ];
  const text = blocks.filter((block) => block.length > 0).map((block) => block.join('\n'));
  return { title: toTitle(`${name}: ${heading}`), text: text.join('\n\n') };
}

/** The days; with hours where it does not consist of whole ones. */
function toIntervalText({ interval }: Report, language: MailLanguage): string {
  const { fromMs, toMs, zoneName: timeZone } = interval;
  const hasHours = !isOfDays(interval);
  const days: Intl.DateTimeFormatOptions = { dateStyle: 'medium', timeZone };
  const format = new Intl.DateTimeFormat(language, hasHours ? { ...days, timeStyle: 'short' } : days);
  return format.formatRange(fromMs, hasHours ? toMs + 1 : toMs);
}

const toTimeText = (ms: number, { language, tz }: Pick<ScheduledReport, 'language' | 'tz'>): string =>
  new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short', timeZone: tz }).format(ms);

function toTotals({ settings, report, computed: { totals } }: MailedReport): string[] {
  const { columns } = MAIL_WORDS[settings.language];
  const counts: Column[] = [
    { name: 'objects', unit: 'count' },
    { name: 'rows', unit: 'count' },
  ];
  const values = totals.toJson();
  return [...counts, ...report.columns.filter(({ total }) => total !== undefined)].map(
    (column) => `${columns[column.name]}: ${toText(column, values[column.name] ?? null, settings)}`,
  );
}

function toTable({ settings, report, rows }: MailedReport): string[] {
  const words = MAIL_WORDS[settings.language];
  const isDivided = report.interval.starts.length > 1;
  const names = [...(isDivided ? ['from'] : []), ...SHOWN[report.name]];
  const columns = names.flatMap((name) => report.columns.find((column) => column.name === name) ?? []);
  const lines = [
    [words.columns.name ?? '', ...names.map((name) => words.columns[name] ?? '')],
    ...rows.map(({ object, row }) => [
      toCell(object.name),
      ...columns.map((column) => toText(column, row[column.name] ?? null, settings)),
    ]),
  ];
  const widths = names.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)));
  return lines.map((line) => line.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('  '));
}

const toCell = (text: string): string => shorten(toLine(text), CELL_CHARACTERS);

/** In the units that people use. */
function toText({ name, unit }: Column, cell: Cell, settings: ScheduledReport): string {
  const { language } = settings;
  const { values } = MAIL_WORDS[language];
  if (cell === null) return name === 'value' ? (values.others ?? '') : '–';
  if (typeof cell !== 'number') return toCell(isWord(name, cell) ? (values[String(cell)] ?? '') : String(cell));
  const format = (value: number, options: Intl.NumberFormatOptions): string => value.toLocaleString(language, options);
  if (unit === 'time') return toTimeText(cell, settings);
  if (unit === 'ms') return toSpanText(cell);
  if (unit === 'm') return format(cell / 1_000, { style: 'unit', unit: 'kilometer', maximumFractionDigits: 1 });
  if (unit === 'km/h') return format(cell, { style: 'unit', unit: 'kilometer-per-hour', maximumFractionDigits: 0 });
  if (unit === 'share') return format(cell, { style: 'percent', maximumFractionDigits: 1 });
  return format(cell, {});
}

/** A text that the service itself has chosen. */
const isWord = (name: string, cell: Cell): boolean =>
  name === 'kind' || (name === 'value' && (cell === 'true' || cell === 'false'));

/** `34 h 12 min`, in both languages. */
function toSpanText(ms: number): string {
  const minutes = Math.round(ms / MINUTE_MS);
  const hours = Math.floor(minutes / 60);
  return hours === 0 ? `${minutes} min` : `${hours} h ${minutes % 60} min`;
}
