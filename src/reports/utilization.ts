/** Utilization: how long a parameter of objects had each of its values. A value holds until the next one, as in series. */
import { LIMITS } from '../core/limits.js';
import { streamPackets } from '../packets/packet-stream.js';
import { clock } from '../platform/clock.js';
import { FieldFinder } from '../platform/mongo/bson/fields.js';
import { numberAt } from '../platform/mongo/bson/numbers.js';
import { BSON_TYPES, int32 } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { divide, partAt, partEnd, type ReportInterval } from './interval.js';
import type { Column, Reading, Report, Row } from './report.js';

const { BOOLEAN, DOUBLE, INT32, INT64, STRING } = BSON_TYPES;
/** How many packets are read between two checks of the clock. */
const CHECKED = 250;
/** A small batch, because the last packet nearly always has the parameter. */
const FEW_PACKETS = 100;
const VALUE_CHARACTERS = 128;

const COLUMNS: readonly Column[] = [
  { name: 'from', unit: 'time' },
  { name: 'to', unit: 'time' },
  { name: 'value', unit: 'text' },
  { name: 'duration', unit: 'ms', total: 'sum' },
  { name: 'share', unit: 'share' },
  { name: 'times', unit: 'count', total: 'sum' },
];

export interface StateRules {
  /** The parameter; a path. */
  readonly param: string;
  /** How long a value holds. */
  readonly gapMs: number;
  readonly nowMs: number;
}

export const utilizationReport = (interval: ReportInterval, rules: StateRules): Report => ({
  name: 'utilization',
  needs: 'series',
  interval,
  columns: COLUMNS,
  fields: [rules.param],
  open:
    () =>
    async ({ objectId }, { database, countRow }) => {
      const reading = new StateReading(interval, rules, countRow);
      await readBefore(database, { objectId, fromMs: interval.fromMs, rules, reading });
      return reading;
    },
});

/** Reads the value that holds at the beginning. */
async function readBefore(
  database: Database,
  { objectId, fromMs, rules, reading }: { objectId: string; fromMs: number; rules: StateRules; reading: StateReading },
): Promise<void> {
  const query = { objectIds: [objectId], time: { above: fromMs - rules.gapMs, below: fromMs }, isDescending: true };
  let packets = 0;
  const streaming = { ...query, fields: [rules.param], batchPackets: FEW_PACKETS };
  for await (const { memory, starts } of streamPackets(database, streaming)) {
    packets += starts.length;
    if (starts.some((start) => reading.takeBefore(memory, start)) || packets >= LIMITS.seriesPacketsBefore) return;
  }
}

interface Sum {
  durationMs: number;
  times: number;
}

/** Beyond so many values, further ones are one: null. */
class StateReading implements Reading {
  readonly #interval: ReportInterval;
  readonly #rules: StateRules;
  readonly #finder: FieldFinder;
  readonly #countRow: () => void;
  /** By part, then by value. */
  readonly #sums: readonly Map<string | null, Sum>[];
  readonly #values = new Set<string>();
  /** The value that holds; undefined for none. */
  #held: string | null | undefined;
  #heldSinceMs = 0;
  /** Up to when durations are counted. */
  #countedMs: number;

  constructor(interval: ReportInterval, rules: StateRules, countRow: () => void) {
    this.#countRow = countRow;
    this.#interval = interval;
    this.#rules = rules;
    this.#finder = new FieldFinder(['time', rules.param]);
    this.#sums = interval.starts.map(() => new Map<string | null, Sum>());
    this.#countedMs = interval.fromMs;
  }

  /** Takes a packet from before the interval; returns whether it has a value. */
  takeBefore(memory: Buffer, start: number): boolean {
    const value = this.#read(memory, start);
    if (value === undefined) return false;
    this.#hold(this.#timeIn(memory), value, this.#interval.fromMs);
    return true;
  }

  async take(memory: Buffer, starts: readonly number[]): Promise<void> {
    let sinceMs = clock.steadyMs();
    for (let index = 0; index < starts.length; index++) {
      const value = this.#read(memory, starts[index] as number);
      if (value !== undefined) {
        const timeMs = this.#timeIn(memory);
        this.#count(timeMs);
        this.#hold(timeMs, value, timeMs);
      }
      if (index % CHECKED !== 0 || clock.steadyMs() - sinceMs < LIMITS.turnMs) continue;
      await clock.nextTurn();
      sinceMs = clock.steadyMs();
    }
  }

  finish(): Iterable<Row> {
    const endMs = Math.min(this.#interval.toMs + 1, Math.max(this.#rules.nowMs, this.#interval.fromMs));
    this.#count(endMs);
    return this.#rows(endMs);
  }

  *#rows(endMs: number): Generator<Row> {
    for (const [part, sums] of this.#sums.entries()) {
      const from = this.#interval.starts[part] as number;
      const to = partEnd(this.#interval, part);
      const lengthMs = Math.min(to + 1, endMs) - from;
      for (const [value, { durationMs, times }] of [...sums].sort(([, a], [, b]) => b.durationMs - a.durationMs)) {
        const share = lengthMs > 0 ? Math.round((durationMs / lengthMs) * 1e4) / 1e4 : 0;
        yield { from, to, value, duration: durationMs, share, times };
      }
    }
  }

  /** The value of a packet as text; undefined if it has none. */
  #read(memory: Buffer, start: number): string | undefined {
    this.#finder.read(memory, start);
    const type = this.#finder.types[1] as number;
    const offset = this.#finder.offsets[1] as number;
    if (type === BOOLEAN) return String(memory[offset] === 1);
    if (type === STRING) {
      return memory.toString('utf8', offset + 4, offset + 3 + int32(memory, offset)).slice(0, VALUE_CHARACTERS);
    }
    if (type !== DOUBLE && type !== INT32 && type !== INT64) return undefined;
    const value = numberAt(memory, type, offset);
    return Number.isFinite(value) ? String(value) : undefined;
  }

  #timeIn = (memory: Buffer): number =>
    numberAt(memory, this.#finder.types[0] as number, this.#finder.offsets[0] as number);

  #hold(timeMs: number, text: string, beganMs: number): void {
    const isKnown = this.#values.has(text) || this.#values.size < LIMITS.reportStates;
    if (isKnown) this.#values.add(text);
    const value = isKnown ? text : null;
    const isSilent = timeMs - this.#heldSinceMs > this.#rules.gapMs;
    if (value !== this.#held || isSilent) this.#sumOf(partAt(this.#interval, beganMs), value).times++;
    this.#held = value;
    this.#heldSinceMs = timeMs;
  }

  /** Counts the value that holds, up to this time. */
  #count(toMs: number): void {
    const fromMs = this.#countedMs;
    const untilMs = Math.min(toMs, this.#heldSinceMs + this.#rules.gapMs);
    this.#countedMs = Math.max(fromMs, toMs);
    const held = this.#held;
    if (held === undefined || untilMs <= fromMs) return;
    divide(this.#interval, { fromMs, toMs: untilMs }, (part, ms) => {
      this.#sumOf(part, held).durationMs += ms;
    });
  }

  #sumOf(part: number, value: string | null): Sum {
    const sums = this.#sums[part] as Map<string | null, Sum>;
    const known = sums.get(value);
    if (known !== undefined) return known;
    this.#countRow();
    const sum = { durationMs: 0, times: 0 };
    sums.set(value, sum);
    return sum;
  }
}
