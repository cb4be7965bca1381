/** Reads a table that a spreadsheet has written as CSV: with its byte order mark, its separator, its quotes and its line ends. */
import { parse } from 'csv-parse/browser/esm/sync';

export interface Sheet {
  readonly columns: readonly string[];
  readonly rows: readonly SheetRow[];
}

export interface SheetRow {
  /** As a spreadsheet counts: the names of the columns are row 1. */
  readonly row: number;
  readonly cells: readonly string[];
}

/** Of a file: UTF-16 or UTF-8, and the code page of Western Europe, in which Excel writes plain CSV. */
export function decodeFile(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** Throws if quotes do not close. */
export function parseSheet(given: string): Sheet {
  // Excel tells itself the separator so.
  const said = /^\uFEFF?sep=(.)\r?\n/i.exec(given);
  const text = said === null ? given : given.slice(said[0].length);
  const all: string[][] = parse(text, {
    bom: true,
    delimiter: said?.[1] ?? separatorOf(text),
    relax_column_count: true,
    relax_quotes: true,
  });
  const rows = all.map((cells, index) => ({ row: index + (said === null ? 1 : 2), cells: cells.map(toCell) }));
  const [names, ...others] = rows.filter(({ cells }) => cells.some((cell) => cell !== ''));
  return { columns: names?.cells ?? [], rows: others };
}

const SEPARATORS = [',', ';', '\t'];

/** The one that is most often in the names of the columns. */
function separatorOf(text: string): string {
  const names = text.replaceAll(/"(?:[^"]|"")*"/g, '').split(/[\r\n]/, 1)[0] ?? '';
  const countOf = (separator: string): number => names.split(separator).length;
  return SEPARATORS.reduce((best, one) => (countOf(one) > countOf(best) ? one : best));
}

/** Without what our own exports put before text that a spreadsheet would take for a number or a formula. */
function toCell(cell: string): string {
  const text = cell.trim();
  const [, inner] = /^="((?:[^"]|"")*)"$/.exec(text) ?? [];
  if (inner !== undefined) return inner.replaceAll('""', '"');
  return text.replace(/^'(?=[=+\-@])/, '');
}
