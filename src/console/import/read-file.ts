/** Reads a file of a spreadsheet that somebody has chosen. */
import { formatNumber, t } from '../text/language.js';
import { decodeFile, parseSheet, type Sheet } from './csv.js';

const MOST_BYTES = 5_000_000;
const MOST_ROWS = 5_000;

/** Throws what is wrong with it, in the language of the page. */
export async function readFile(file: File): Promise<Sheet> {
  if (file.size > MOST_BYTES) throw new Error(t('import.tooLarge', { count: formatNumber(MOST_BYTES / 1_000_000) }));
  const text = decodeFile(new Uint8Array(await file.arrayBuffer()));
  let sheet: Sheet;
  try {
    sheet = parseSheet(text);
  } catch {
    throw new Error(t('import.malformed'));
  }
  if (sheet.rows.length === 0) throw new Error(t('import.empty'));
  if (sheet.rows.length > MOST_ROWS) throw new Error(t('import.tooMany', { count: formatNumber(MOST_ROWS) }));
  return sheet;
}
