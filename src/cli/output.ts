/** The output of the command line: tables, or with --json one JSON value per line; colours only on a terminal. */
import { stripVTControlCharacters, styleText } from 'node:util';
import { ownValue } from './field-names.js';

export interface Output {
  readonly isJson: boolean;
  /** Prints an entity or another single answer. */
  one(value: object): void;
  /** Prints the rows of a table as they arrive; `columns` are paths of fields. */
  rows(columns: readonly string[]): { row(value: object): void; end(): void };
  /** Prints a message to the standard error. */
  say(message: string): void;
  /** Shows progress, on a terminal only; the next output overwrites it. */
  progress(message: string): void;
  bold(text: string): string;
  color(name: 'red' | 'green' | 'yellow', text: string): string;
}

interface Stream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const ROWS_AT_ONCE = 200;
const MAX_CELL_WIDTH = 60;

export function createOutput(options: { isJson: boolean; stdout: Stream; stderr: Stream; noColor: boolean }): Output {
  const { isJson, stdout, stderr } = options;
  const isColorful = stdout.isTTY === true && !options.noColor;
  const style = (name: 'bold' | 'red' | 'green' | 'yellow', text: string): string =>
    isColorful ? styleText(name, text, { validateStream: false }) : text;
  const print = (text: string): void => void stdout.write(`${text}\n`);
  let isProgressShown = false;
  const clear = (): void => {
    if (isProgressShown) stderr.write('\r\x1b[K');
    isProgressShown = false;
  };
  return {
    isJson,
    bold: (text) => style('bold', text),
    color: style,
    one(value) {
      const { success: _, ...shown } = value as { success?: boolean };
      print(isJson ? JSON.stringify(shown) : formatFields(shown).join('\n'));
    },
    rows(columns) {
      if (isJson) return { row: (value) => print(JSON.stringify(value)), end: clear };
      const printLines = (lines: readonly string[]): void => {
        clear();
        for (const line of lines) print(line);
      };
      return createTable(columns, printLines, (text) => style('bold', text));
    },
    say(message) {
      clear();
      stderr.write(`${message}\n`);
    },
    progress(message) {
      if (stderr.isTTY !== true) return;
      stderr.write(`\r\x1b[K${message}`);
      isProgressShown = true;
    },
  };
}

/** Columns are as wide as the first rows need. */
function createTable(
  columns: readonly string[],
  printLines: (lines: readonly string[]) => void,
  bold: (text: string) => string,
): ReturnType<Output['rows']> {
  let waiting: string[][] = [];
  let widths: readonly number[] | null = null;
  const flush = (): void => {
    const head = widths === null && waiting.length > 0 ? [columns] : [];
    const known =
      widths ?? columns.map((name, index) => widthOf([name, ...waiting.map((cells) => cells[index] ?? '')]));
    widths = known;
    printLines([...head.map((cells) => bold(toLine(cells, known))), ...waiting.map((cells) => toLine(cells, known))]);
    waiting = [];
  };
  return {
    row(value) {
      waiting.push(columns.map((path) => formatField(path, fieldOf(value, path))));
      if (waiting.length >= ROWS_AT_ONCE) flush();
    },
    end: flush,
  };
}

const widthOf = (cells: readonly string[]): number =>
  Math.min(MAX_CELL_WIDTH, Math.max(...cells.map(({ length }) => length)));

/** The value at a path such as `state.speed`. */
export function fieldOf(value: unknown, path: string): unknown {
  // A series has columns such as `speed.min`.
  if (Object.hasOwn(value as object, path)) return (value as Record<string, unknown>)[path];
  return path
    .split('.')
    .reduce<unknown>(
      (inner, name) =>
        typeof inner === 'object' && inner !== null ? ownValue(inner as Record<string, unknown>, name) : undefined,
      value,
    );
}

const TIME_FIELDS = /(^|\.)(time|_at|expires|issuedAt|expiresAt|lastUsed)$/;

const formatField = (name: string, value: unknown): string =>
  TIME_FIELDS.test(name) && typeof value === 'number' ? toTime(value) : formatCell(value);

function formatFields(value: object): string[] {
  const entries = Object.entries(value).map(([name, field]) => [plain(name), formatField(name, field)]);
  const width = Math.max(0, ...entries.map(([name]) => (name as string).length));
  return entries.map(([name, text]) => `${(name as string).padEnd(width)}  ${text}`);
}

const toLine = (cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((cell, index) => cell.padEnd(widths[index] as number))
    .join('  ')
    .trimEnd();

/** Formats a value on one line, without control characters for the terminal. */
function formatCell(value: unknown): string {
  if (value === undefined || value === null) return '';
  return plain(typeof value === 'object' ? JSON.stringify(value) : String(value));
}

/** Formats a time as local time. */
export function toTime(ms: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  const two = (part: number): string => String(part).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export const plain = (text: string): string => stripVTControlCharacters(text).replace(/\p{Cc}/gu, '?');
