/** What spreadsheets make of text in a CSV file. Pure. */

/** A number with a sign, which is no formula, up to the end of the text or of the cell that a spreadsheet may take it for. */
export const SIGNED_NUMBER = /^[+-](?:\d+(?:[.,]\d+)?|[.,]\d+)(?:e[+-]?\d+)?(?=$|[;\t\n\r])/i;

/** Text that a spreadsheet would turn into another number. */
export const CHANGED_NUMBER = /^[+-]?(?:0\d+(?:[.,]\d+)?|\d+(?:[.,]\d+)?e[+-]?\d+)$|^\+\d+$/i;

/** Spreadsheets keep fifteen digits of a number. */
export const EXACT_DIGITS = 15;
