/** Holds what came to receivers to what was written and stored: pure, it gives what is wrong in words, or nothing. */
import { isAfter } from '../../../src/model/position.js';
import { type Arrival, RECEIVERS, type ReceiverName, type Receivers } from './receivers.js';
import type { Sent } from './writers.js';

const FEW = 5;

/** Every receiver took all that is stored, and nothing else; what came first of each event came in order. */
export function checkReceived(receivers: Receivers, sent: readonly Sent[], stored: readonly string[]): string[] {
  return RECEIVERS.flatMap((name) => {
    const arrivals = receivers.arrivals.filter(({ receiver }) => receiver === name);
    const taken = new Set(arrivals.filter(receivers.isTaken).map(({ key }) => key));
    const [known, patches] = [new Set(stored), sent.filter(({ kind }) => kind === 'patch')];
    const acknowledged = patches.filter(({ status }) => status === 200).map(({ key }) => key);
    return [
      ...some(
        'stored, not taken',
        stored.filter((key) => !taken.has(key)),
      ),
      ...some(
        'acknowledged changes not taken',
        acknowledged.filter((key) => !taken.has(key)),
      ),
      ...some(
        'came, not stored',
        arrivals.filter(({ kind, key }) => kind === 'packet' && !known.has(key)).map(({ key }) => key),
      ),
      ...some('out of order', outOfOrder(arrivals, name)),
    ].map((what) => `${name}: ${what}`);
  });
}

/** A receiver that ignores what it had before gets the events of an object, or all of a batch, by growing positions. */
function outOfOrder(arrivals: readonly Arrival[], name: ReceiverName): string[] {
  const [seen, last] = [new Set<string>(), new Map<string, Arrival>()];
  const wrong: string[] = [];
  for (const arrival of arrivals) {
    if (seen.has(arrival.key)) continue;
    seen.add(arrival.key);
    const line = name === 'failing-batch' ? '' : arrival.object;
    const before = last.get(line);
    if (before !== undefined && !isAfter(arrival.position, before.position))
      wrong.push(`${before.key}, ${arrival.key}`);
    last.set(line, arrival);
  }
  return wrong;
}

/** How many arrivals were repetitions. */
export function countRepeated(arrivals: readonly Arrival[]): number {
  return arrivals.length - new Set(arrivals.map(({ receiver, key }) => `${receiver} ${key}`)).size;
}

/**
 * For each object the time from the fault until the steady receiver got something written after it; null until every object
 * has that.
 */
export function findDelays(
  { arrivals }: Receivers,
  sent: readonly Sent[],
  { fromMs, objects }: { fromMs: number; objects: readonly string[] },
): number[] | null {
  const written = new Set(
    sent.filter(({ startMs, kind }) => kind === 'packet' && startMs > fromMs).map(({ key }) => key),
  );
  const first = new Map<string, number>();
  for (const { receiver, object, key, atMs } of arrivals) {
    if (receiver === 'steady' && !first.has(object) && written.has(key)) first.set(object, atMs - fromMs);
  }
  return objects.every((object) => first.has(object)) ? [...first.values()] : null;
}

function some(what: string, found: readonly string[]): string[] {
  return found.length === 0 ? [] : [`${found.length} ${what}: ${found.slice(0, FEW).join('; ')}`];
}
