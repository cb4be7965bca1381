/** The rows of reports, and their order. Pure. */
export type Cell = string | number | null | readonly number[];
export type Row = Readonly<Record<string, Cell>> & {
  readonly object: string;
  readonly id: string;
  readonly name: string;
};

const BY_TEXT = new Intl.Collator(undefined, { numeric: true });

/** By the column that the address names, `-distance` for the greatest first; otherwise as they come: by name. */
export function sortRows(rows: readonly Row[], sort: string | undefined): readonly Row[] {
  if (sort === undefined || sort === '') return rows;
  const direction = sort.startsWith('-') ? -1 : 1;
  const name = sort.replace(/^-/, '');
  return [...rows].sort((one, other) => direction * compare(one[name] ?? null, other[name] ?? null));
}

function compare(one: Cell, other: Cell): number {
  if (one === null || other === null) return Number(one !== null) - Number(other !== null);
  return typeof one === 'number' && typeof other === 'number'
    ? one - other
    : BY_TEXT.compare(String(one), String(other));
}

export interface ValueSum {
  readonly value: Cell;
  readonly duration: number;
  /** Of all that is known. */
  readonly share: number;
  readonly times: number;
}

/** How long each value of a parameter was there in all rows, the longest first. */
export function sumsByValue(rows: readonly Row[]): readonly ValueSum[] {
  const sums = new Map<Cell, ValueSum>();
  let whole = 0;
  for (const { value = null, duration, times } of rows) {
    const sum = sums.get(value) ?? { value, duration: 0, share: 0, times: 0 };
    sums.set(value, { ...sum, duration: sum.duration + Number(duration), times: sum.times + Number(times) });
    whole += Number(duration);
  }
  return [...sums.values()]
    .map((sum) => ({ ...sum, share: whole > 0 ? sum.duration / whole : 0 }))
    .sort((one, other) => other.duration - one.duration);
}
