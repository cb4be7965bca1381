/** The totals of a report: of all its rows, also of those that are not shown. */
import type { Column, Row } from './report.js';

export class Totals {
  readonly #columns: readonly Column[];
  readonly #values: Record<string, number | null> = {};
  objects = 0;
  rows = 0;

  constructor(columns: readonly Column[]) {
    this.#columns = columns.filter(({ total }) => total !== undefined);
    for (const { name, total } of this.#columns) this.#values[name] = total === 'sum' ? 0 : null;
  }

  add(row: Row): void {
    this.rows++;
    for (const { name, total } of this.#columns) {
      const value = row[name];
      if (typeof value !== 'number') continue;
      const before = this.#values[name] ?? null;
      this.#values[name] = total === 'sum' ? (before ?? 0) + value : Math.max(before ?? value, value);
    }
  }

  toJson(): Readonly<Record<string, number | null>> {
    return { objects: this.objects, rows: this.rows, ...this.#values };
  }
}
