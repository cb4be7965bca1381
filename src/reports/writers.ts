/** Writes reports as JSON or as CSV. */

import { isIdentifier, writeCsvText, writeIdentifier } from '../history/exports/csv-text.js';
import type { CsvForm } from '../history/exports/encoder.js';
import { toZonedText } from './interval.js';
import type { ReportObject } from './objects.js';
import type { Cell, Column, Report, Row } from './report.js';
import type { Totals } from './totals.js';

/** Why a report does not have everything, and of how many objects. */
export interface Cut {
  readonly reason: string;
  readonly objects: number;
}

export interface ReportWriter {
  begin(): string;
  row(object: ReportObject, row: Row): string;
  end(totals: Totals, cut: Cut | null): string;
}

/** `limit`: how many rows are written; totals are those of all. */
export function createJsonWriter({ interval, missing }: Report, limit: number): ReportWriter {
  const { fromMs, toMs, zoneName } = interval;
  const head = JSON.stringify({ from: fromMs, to: toMs, tz: zoneName });
  let rows = 0;
  return {
    begin: () => `${head.slice(0, -1)},"rows":[`,
    row({ objectId, ownId, name }, row) {
      if (rows >= limit) return '';
      return `${rows++ === 0 ? '' : ','}\n${JSON.stringify({ object: objectId, id: ownId, name, ...row })}`;
    },
    end(totals, cut) {
      const told = missing === undefined ? '' : `,"missing":${JSON.stringify(missing())}`;
      return `\n],"totals":${JSON.stringify(totals.toJson())},"cut":${JSON.stringify(cut)}${told}}\n`;
    },
  };
}

/** U+FEFF: without it, spreadsheets read other characters than ASCII in the code page of their system. */
const BYTE_ORDER_MARK = '\ufeff';

/** Units stand in the names of columns: metres, seconds, km/h. */
export function createCsvWriter({ interval, columns, missing }: Report, form: CsvForm): ReportWriter {
  const line = (cells: readonly string[]): string => `${cells.join(form.separator)}\r\n`;
  const text = (value: string): string => toCsvText(value, form);
  const number = (value: number): string => String(value).replace('.', form.decimalSign);
  const cellsOf = ({ unit }: Column, cell: Cell | undefined): string[] => {
    if (unit === 'place') return Array.isArray(cell) ? [number(cell[1]), number(cell[0])] : ['', ''];
    if (typeof cell === 'string') return [text(cell)];
    if (typeof cell !== 'number') return [''];
    if (unit === 'time') return [toZonedText(cell, interval.zone)];
    return [number(unit === 'ms' ? cell / 1_000 : cell)];
  };
  return {
    begin: () =>
      (form.isForSpreadsheet ? BYTE_ORDER_MARK : '') + line(['object', 'id', 'name', ...columns.flatMap(namesOf)]),
    row: ({ objectId, ownId, name }, row) =>
      line([objectId, text(ownId), text(name), ...columns.flatMap((column) => cellsOf(column, row[column.name]))]),
    end(_totals, cut) {
      const parts = missing?.() ?? [];
      const notPermitted = parts.length === 0 ? '' : `#not permitted: ${parts.join(' ')}\r\n`;
      if (cut === null) return notPermitted;
      const reason = cut.reason.replace(/[\r\n",;]/g, ' ');
      return `${notPermitted}#incomplete: ${reason} (${cut.objects} objects are missing)\r\n`;
    },
  };
}

const SUFFIXES: Readonly<Partial<Record<Column['unit'], string>>> = { m: '_m', ms: '_s', 'km/h': '_kmh' };

function namesOf({ name, unit }: Column): string[] {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  if (unit !== 'place') return [`${snake}${SUFFIXES[unit] ?? ''}`];
  return name === 'place' ? ['latitude', 'longitude'] : [`${snake}_latitude`, `${snake}_longitude`];
}

function toCsvText(value: string, { isForSpreadsheet }: CsvForm): string {
  const bytes = Buffer.from(value);
  const out = Buffer.alloc(3 * bytes.length + 16);
  const view = new DataView(out.buffer, out.byteOffset, out.byteLength);
  const write = isForSpreadsheet && isIdentifier(bytes, 0, bytes.length) ? writeIdentifier : writeCsvText;
  return out.toString('utf8', 0, write(view, 0, bytes, 0, bytes.length));
}

/** `mileage-2026-11-16-2026-11-22.csv`, by the days of the time zone. */
export function toFileName({ name, interval: { fromMs, toMs, zone } }: Report): string {
  const days = [...new Set([fromMs, toMs].map((ms) => toZonedText(ms, zone).slice(0, 10)))];
  return `${name}-${days.join('-')}.csv`;
}
