/** Reads what the documents say: sections, tables and code blocks of Markdown. */
import { readFileSync } from 'node:fs';

export interface Block {
  readonly kind: string;
  readonly body: string;
}

/** The text below the heading of this name, down to the next heading of its level or above. */
export function readSection(file: string, title: string): string {
  const lines = readFileSync(file, 'utf8').split('\n');
  const levels = levelsOf(lines);
  const at = lines.findIndex((line, index) => levels[index] !== 0 && line.replace(/^#+ /, '') === title);
  if (at === -1) throw new Error(`${file} has no section "${title}"`);
  const length = levels.slice(at + 1).findIndex((level) => level > 0 && level <= (levels[at] as number));
  return lines.slice(at + 1, length === -1 ? undefined : at + 1 + length).join('\n');
}

// 0 for what is no heading; a `#` inside a code block is none.
function levelsOf(lines: readonly string[]): number[] {
  let isCode = false;
  return lines.map((line) => {
    if (line.startsWith('```')) isCode = !isCode;
    return isCode ? 0 : (/^(#+) /.exec(line)?.[1]?.length ?? 0);
  });
}

/** The cells of the first table in the text, without its head. */
export function readTable(text: string): string[][] {
  const [first] = readTables(text);
  if (first === undefined) throw new Error('there is no table');
  return first;
}

/** The cells of every table in the text, each without its head. */
export function readTables(text: string): string[][][] {
  return readRawTables(text).map((rows) => rows.slice(2));
}

/** The same with the head and the line below it. */
export function readRawTables(text: string): string[][][] {
  const tables = text.match(/^\|.*(\n\|.*)*/gm) ?? [];
  return tables.map((table) => table.split('\n').map(readCells));
}

function readCells(row: string): string[] {
  return row
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}

/** What stands in backquotes in a cell. */
export function readCode(cell: string | undefined): string[] {
  return [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, code]) => code as string);
}

/** Every fenced block of the text, in order. */
export function readBlocks(text: string): Block[] {
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, kind, body]) => ({
    kind: kind as string,
    body: body as string,
  }));
}

/** The target of every link of the text; none of those in code blocks. */
export function readLinks(text: string): string[] {
  return [
    ...proseOf(text)
      .replace(/`[^`\n]*`/g, '')
      .matchAll(/\]\(([^)\s]+)\)/g),
  ].map(([, target]) => target as string);
}

/** The anchor of every heading of the text, as GitHub makes them. */
export function readAnchors(text: string): string[] {
  const lines = text.split('\n');
  const levels = levelsOf(lines);
  const titles = lines.filter((_, index) => levels[index] !== 0).map((line) => line.replace(/^#+ /, ''));
  return titles.map((title) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Every path from the root of the repository that stands in backquotes. */
export function readPaths(text: string): string[] {
  return readCode(proseOf(text)).flatMap((code) => /^(?:src|test|scripts|docs|examples)\/[\w./-]*$/.exec(code) ?? []);
}

function proseOf(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '');
}
