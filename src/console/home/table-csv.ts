/** A table as CSV (RFC 4180) for spreadsheets, with possible formulas escaped, as in the exports of the server. Pure. */
import { CHANGED_NUMBER, EXACT_DIGITS, SIGNED_NUMBER } from '../../core/spreadsheet.js';

const LEADING_BREAK = /^(?=[\t\r])/;
/** Spreadsheets take text that begins so for a formula, in full width too, also after what separates cells in some countries. */
const FORMULA = /(?:^|[;\t\r\n])"*(?=[=+\-@＝＋－＠])/g;
const QUOTED = /[",;\r\n]/;
const LONG_NUMBER = new RegExp(`^[+-]?\\d{${EXACT_DIGITS},}$`);

/** Without this mark, spreadsheets read other characters than ASCII in the code page of their system. */
const BYTE_ORDER_MARK = '\uFEFF';

function toField(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  if (typeof cell !== 'string') return String(cell);
  // Identifiers stay text.
  if (LONG_NUMBER.test(cell) || CHANGED_NUMBER.test(cell)) return `"=""${cell}"""`;
  const text = cell.replace(LEADING_BREAK, "'").replaceAll(FORMULA, escapeFormula);
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const escapeFormula = (before: string, offset: number, text: string): string =>
  SIGNED_NUMBER.test(text.slice(offset + before.length)) ? before : `${before}'`;

export function toCsv(rows: Iterable<readonly unknown[]>): string {
  let text = BYTE_ORDER_MARK;
  for (const row of rows) text += `${row.map(toField).join()}\r\n`;
  return text;
}
