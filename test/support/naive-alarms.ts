/** When alarms are raised and cleared, found in the simplest way from all the packets of an object: the service must find the same. */
import type { Document } from 'mongodb';

/** A rule as functions of what packets say. */
export interface NaiveRule {
  readonly forMs: number;
  readonly clearForMs: number;
  /** What the values of a packet and of those before it say together, and each alone; null where that is nothing. */
  hot(values: Values, packet: Values, before: Values): boolean | null;
  over(values: Values, packet: Values, before: Values): boolean | null;
}

export type Values = Readonly<Partial<Record<'t' | 'u', number | null>>>;

export const above = (value: number | null | undefined, than: number): boolean | null =>
  typeof value === 'number' ? value > than : null;
/** Of what is known. */
export const opposite = (truth: boolean | null): boolean | null => (truth === null ? null : !truth);
/** One of which is false is false, whatever the other is. */
export function both(one: boolean | null, other: boolean | null): boolean | null {
  if (one === false || other === false) return false;
  return one === null || other === null ? null : true;
}

/** Both by the clock of the object; null of an alarm that is still raised. */
export type Span = readonly [raised: number, cleared: number | null];

/** When the alarms of an object are raised and cleared, by all its packets in the order in which they came. */
export function naiveSpans({ hot, over, forMs, clearForMs }: NaiveRule, packets: readonly Document[]): Span[] {
  const said: { atMs: number; hot: boolean; over: boolean }[] = [];
  let values: Values = {};
  let before = { atMs: Number.NEGATIVE_INFINITY, hot: false, over: false };
  for (const packet of packets) {
    // A packet without parameters only says that the object is there.
    const isData = ['t', 'u', 'n'].some((name) => name in packet);
    if (!isData || packet.time < before.atMs) continue;
    const own = packet as Values;
    const earlier = values;
    values = { t: own.t ?? values.t ?? null, u: own.u ?? values.u ?? null };
    const isHot = hot(values, own, earlier) ?? before.hot;
    before = { atMs: packet.time, hot: isHot, over: over(values, own, earlier) ?? before.over };
    said.push(before);
  }
  const spans: Span[] = [];
  for (let index = 0; index < said.length; ) {
    const raised = firstHeld(said, index, { forMs, name: 'hot' });
    if (raised === null) break;
    const cleared = firstHeld(said, raised.next, { forMs: clearForMs, name: 'over' });
    spans.push([raised.atMs, cleared?.atMs ?? null]);
    index = cleared?.next ?? said.length;
  }
  return spans;
}

/** When something has held for so long for the first time, and the first packet that is later, or that has completed it. */
function firstHeld(
  said: readonly { atMs: number; hot: boolean; over: boolean }[],
  from: number,
  { forMs, name }: { forMs: number; name: 'hot' | 'over' },
): { atMs: number; next: number } | null {
  for (let first = from; first < said.length; first++) {
    if (said[first]?.[name] !== true) continue;
    const atMs = (said[first]?.atMs as number) + forMs;
    let end = first;
    while (end < said.length && said[end]?.[name] === true && (said[end]?.atMs as number) < atMs) end++;
    if (end === said.length) return null;
    // What ends it at the very instant was there before it was completed.
    if (said[end]?.[name] === true || (said[end]?.atMs as number) > atMs) return { atMs, next: end };
    first = end;
  }
  return null;
}
