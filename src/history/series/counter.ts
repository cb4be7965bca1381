/** Counters: by how much one has risen between two values, although it may have begun anew. Pure. */

/** The widths of counters in bits, by the text that names them. */
export const COUNTER_BITS: ReadonlyMap<string, number> = new Map([
  ['16', 16],
  ['32', 32],
]);

/**
 * The rise of a counter. A counter only rises: after a fall it was restarted at 0, as in Prometheus. One of `bits` continues at 0
 * after its largest value instead; null if it is not limited.
 */
export function riseOf(before: number, value: number, bits: number | null): number {
  if (value >= before) return value - before;
  const end = bits === null ? Number.NEGATIVE_INFINITY : 2 ** bits;
  return before < end && value >= 0 ? value - before + end : Math.max(0, value);
}
