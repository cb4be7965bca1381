/** The towns around places, loaded from the server cell by cell when a place is first looked at. */
import { signal } from '@preact/signals';
import { toAddress } from '../state/location.js';
import { language } from '../text/language.js';
import { type Grid, type Town, type TownColumns, toTowns } from './nearest.js';

declare const TOWN_CELLS: string;

const FILES = JSON.parse(TOWN_CELLS) as Grid & { readonly path: string };
export const GRID: Grid = FILES;
/** A cell that could not be loaded is not asked for again for so long: packets must not do so again and again. */
const RETRY_MS = 30_000;

interface Cell {
  readonly columns: TownColumns;
  /** In the language in which they were last read. */
  towns: { readonly language: string; readonly list: readonly Town[] } | null;
}

const cells = new Map<number, Cell>();
const asked = new Set<number>();
const failed = new Set<number>();
/** Counts the cells that have come or failed; what reads towns reads it. */
const revision = signal(0);

/** Undefined until the cell is there. */
export function townsIn(number: number): readonly Town[] | undefined {
  revision.value;
  const cell = cells.get(number);
  if (cell === undefined) return undefined;
  if (cell.towns?.language !== language.value)
    cell.towns = { language: language.value, list: toTowns(cell.columns, language.value) };
  return cell.towns.list;
}

/** Whether it could not be loaded. */
export const hasFailed = (number: number): boolean => failed.has(number);

export async function loadCell(number: number): Promise<void> {
  if (asked.has(number)) return;
  asked.add(number);
  const columns = await read(`${FILES.path}-${number}.json`);
  if (columns !== null) cells.set(number, { columns, towns: null });
  else {
    failed.add(number);
    setTimeout(() => forgetFailed(number), RETRY_MS);
  }
  revision.value++;
}

function forgetFailed(number: number): void {
  failed.delete(number);
  asked.delete(number);
  revision.value++;
}

/** Everything else works without. */
async function read(path: string): Promise<TownColumns | null> {
  try {
    const answer = await fetch(toAddress(path));
    return answer.ok ? ((await answer.json()) as TownColumns) : null;
  } catch {
    return null;
  }
}
