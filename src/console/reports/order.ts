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
