/** How far the clock of the server is ahead of that of the browser. Pure. */

interface Bounds {
  readonly leastMs: number;
  readonly mostMs?: number;
}

/** The offset within the bounds that is nearest to the known one, so that a clock that may be right is left alone. */
export const clampOffset = (offsetMs: number, { leastMs, mostMs = Number.POSITIVE_INFINITY }: Bounds): number =>
  Math.max(leastMs, Math.min(offsetMs, mostMs));
