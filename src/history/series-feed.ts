/** Passes the parameters of packets to the columns of a series, and yields to the event loop in between. */

import { LIMITS } from '../core/limits.js';
import type { PacketBatch } from '../packets/packet-stream.js';
import type { ColumnsPart, StatisticsPart } from '../packets/store/history-parts.js';
import { clock } from '../platform/clock.js';
import { FieldFinder } from '../platform/mongo/bson/fields.js';
import { numberAt } from '../platform/mongo/bson/numbers.js';
import { BSON_TYPES, int32 } from '../platform/mongo/bson/reader.js';
import type { Column } from './series/column.js';
import type { SeriesQuery } from './series/query.js';

const { BOOLEAN, DOUBLE, INT32, INT64, NULL, STRING, UNDEFINED } = BSON_TYPES;
/** How many packets are read between two checks of the clock. */
const SLICE = 250;

export class ColumnFeed {
  readonly #columns: readonly Column[];
  readonly #finder: FieldFinder;
  /** Whether a function compares texts; otherwise they are not decoded. */
  readonly #readsText: boolean;
  /** Columns whose last value before the interval is still unknown. */
  readonly #open: Set<Column>;
  #sinceMs = 0;

  constructor({ paths, functions }: SeriesQuery, columns: readonly Column[]) {
    this.#columns = columns;
    this.#finder = new FieldFinder(['time', ...paths]);
    this.#readsText = functions.some(({ kind }) => kind === 'duration');
    this.#open = new Set(columns);
  }

  /** Takes packets in ascending order of time. */
  async take({ memory, starts }: PacketBatch): Promise<void> {
    this.#sinceMs = clock.steadyMs();
    for (let index = 0; index < starts.length; index++) {
      if (index % SLICE === SLICE - 1) await this.#yield();
      const timeMs = this.#read(memory, starts[index] as number);
      for (let column = 0; column < this.#columns.length; column++) this.#pass(memory, timeMs, column);
    }
    await this.#work();
  }

  /** Takes what the columns of a packed part have. */
  async takeColumns({ times, fields }: ColumnsPart): Promise<void> {
    this.#sinceMs = clock.steadyMs();
    for (const [index, column] of this.#columns.entries()) {
      const field = fields[index];
      if (field == null) continue;
      const { rows, numbers } = field;
      for (let nth = 0; nth < rows.length; nth++) {
        const value = numbers[nth] as number;
        if (Number.isFinite(value)) column.addNumber(times[rows[nth] as number] as number, value);
      }
      await this.#yield();
    }
    await this.#work();
  }

  /** Takes the sums of a packed part. */
  async takeStatistics({ fromMs, toMs, fields }: StatisticsPart): Promise<void> {
    this.#sinceMs = clock.steadyMs();
    for (const [index, column] of this.#columns.entries()) {
      const statistics = fields[index];
      if (statistics != null) column.addStatistics(fromMs, toMs, statistics);
    }
    await this.#work();
  }

  /** Takes packets before the interval in descending order; returns whether no more are needed. */
  async takeBefore({ memory, starts }: PacketBatch): Promise<boolean> {
    for (const start of starts) {
      const timeMs = this.#read(memory, start);
      for (const [index, column] of this.#columns.entries()) {
        if (this.#open.has(column) && this.#pass(memory, timeMs, index)) this.#open.delete(column);
      }
      if (this.#open.size === 0) return true;
    }
    return false;
  }

  async finish(): Promise<void> {
    this.#sinceMs = clock.steadyMs();
    for (const column of this.#columns) {
      column.finish();
      await this.#yield();
    }
    await this.#work();
  }

  #read(memory: Buffer, start: number): number {
    this.#finder.read(memory, start);
    return numberAt(memory, this.#finder.types[0] as number, this.#finder.offsets[0] as number);
  }

  /** Returns whether the packet has a value for the column. */
  #pass(memory: Buffer, timeMs: number, index: number): boolean {
    const column = this.#columns[index] as Column;
    const type = this.#finder.types[index + 1] as number;
    const offset = this.#finder.offsets[index + 1] as number;
    if (type === DOUBLE || type === INT32 || type === INT64) {
      const value = numberAt(memory, type, offset);
      if (!Number.isFinite(value)) return false;
      column.addNumber(timeMs, value);
    } else if (type === 0 || type === NULL || type === UNDEFINED) return false;
    else if (type === BOOLEAN) column.addNumber(timeMs, memory[offset] as number);
    else if (type === STRING && this.#readsText) {
      column.addOther(timeMs, memory.toString('utf8', offset + 4, offset + 3 + int32(memory, offset)));
    } else column.addOther(timeMs, null);
    return true;
  }

  async #work(): Promise<void> {
    for (const column of this.#columns) {
      for (const steps of column.takeWork()) {
        for (const _ of steps) await this.#yield();
        await this.#yield();
      }
    }
  }

  async #yield(): Promise<void> {
    if (clock.steadyMs() - this.#sinceMs < LIMITS.turnMs) return;
    await clock.nextTurn();
    this.#sinceMs = clock.steadyMs();
  }
}
