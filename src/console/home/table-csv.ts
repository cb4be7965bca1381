/** A table as CSV (RFC 4180) for spreadsheets, with possible formulas escaped. Pure. */

const LEADING_BREAK = /^(?=[\t\r])/;
/** Spreadsheets take text that begins so for a formula, in full width too, also after what separates cells in some countries. */
const FORMULA = /(?:^|[;\t\r\n])"*(?=[=+\-@＝＋－＠])/g;
const QUOTED = /[",;\r\n]/;
/** A spreadsheet rounds numbers with more digits, and cuts leading zeros: identifiers stay text. */
const IDENTIFIER = /^(0\d+|\d{16,})$/;

/** Without this mark, spreadsheets read other characters than ASCII in the code page of their system. */
const BYTE_ORDER_MARK = '\uFEFF';

function toField(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  if (typeof cell !== 'string') return String(cell);
  if (IDENTIFIER.test(cell)) return `"=""${cell}"""`;
  const text = cell.replace(LEADING_BREAK, "'").replaceAll(FORMULA, "$&'");
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv(rows: Iterable<readonly unknown[]>): string {
  let text = BYTE_ORDER_MARK;
  for (const row of rows) text += `${row.map(toField).join()}\r\n`;
  return text;
}
