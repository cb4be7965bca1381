/** Compares the messages at receivers with the stored packets and the requests. Pure; returns a description of each problem. */
import { isAfter } from '../../../src/core/position.js';
import { type Arrival, RECEIVERS, type ReceiverName, type Receivers } from './receivers.js';
import type { Sent } from './writers.js';

const FEW = 5;

/** Every receiver accepted all stored events and no others; the first arrivals of events are in order. */
export function checkReceived(receivers: Receivers, sent: readonly Sent[], stored: readonly string[]): string[] {
  return RECEIVERS.flatMap((name) => {
    const arrivals = receivers.arrivals.filter(({ receiver }) => receiver === name);
    const accepted = new Set(arrivals.filter(receivers.isAccepted).map(({ key }) => key));
    const known = new Set(stored);
    const patches = sent.filter(({ kind }) => kind === 'patch');
    const acknowledged = patches.filter(({ status }) => status === 200).map(({ key }) => key);
    return [
      ...some(
        'stored, not accepted',
        stored.filter((key) => !accepted.has(key)),
      ),
      ...some(
        'acknowledged changes not accepted',
        acknowledged.filter((key) => !accepted.has(key)),
      ),
      ...some(
        'arrived, not stored',
        arrivals.filter(({ kind, key }) => kind === 'packet' && !known.has(key)).map(({ key }) => key),
      ),
      ...some('out of order', outOfOrder(arrivals, name)),
    ].map((what) => `${name}: ${what}`);
  });
}

/** Without repetitions, the positions of the events of an object, or of all batches, increase. */
function outOfOrder(arrivals: readonly Arrival[], name: ReceiverName): string[] {
  const seen = new Set<string>();
  const last = new Map<string, Arrival>();
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

/** The objects of which the steady receiver got no packet that was sent after the fault. */
export function findWaiting(
  { arrivals }: Receivers,
  sent: readonly Sent[],
  { fromMs, objects }: { fromMs: number; objects: readonly string[] },
): string[] {
  const isNew = ({ startMs, kind }: Sent): boolean => kind === 'packet' && startMs > fromMs;
  const keys = new Set(sent.filter(isNew).map(({ key }) => key));
  const arrived = arrivals.filter(({ receiver, key }) => receiver === 'steady' && keys.has(key));
  const reached = new Set(arrived.map(({ object }) => object));
  return objects.filter((object) => !reached.has(object));
}

function some(what: string, found: readonly string[]): string[] {
  return found.length === 0 ? [] : [`${found.length} ${what}: ${found.slice(0, FEW).join('; ')}`];
}
