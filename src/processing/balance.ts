/** Who owns how many partitions: the numbers of two instances differ by at most one. Pure. */
import type { Membership } from './partitions.js';

export interface Balance {
  /** Free partitions that this instance takes. */
  readonly take: readonly number[];
  /** How many of its partitions it gives back. */
  readonly give: number;
}

/** What this instance has to do. All instances reckon alike, from what they all see. */
export function findBalance(instance: string, { instances, partitions }: Membership): Balance {
  const counts = new Map(instances.map((id) => [id, 0]));
  for (const { owner, isFree } of partitions) {
    if (!isFree && owner !== null && counts.has(owner)) counts.set(owner, (counts.get(owner) as number) + 1);
  }
  const least = Math.floor(partitions.length / Math.max(1, counts.size));
  const mine = counts.get(instance) ?? 0;
  const free = partitions.filter(({ isFree }) => isFree).map(({ index }) => index);
  const lacking = [...counts.values()].reduce((sum, count) => sum + Math.max(0, least - count), 0);
  const most = Math.ceil(partitions.length / Math.max(1, counts.size));
  if (mine > most) return { take: [], give: mine - most };
  if (mine < least) return { take: free.slice(0, least - mine), give: 0 };
  if (free.length > lacking && mine === least) return { take: spread(free, instance).slice(0, 1), give: 0 };
  return { take: [], give: givenBy(instance, counts, { least, lacking: lacking - free.length }) };
}

/** Those who have most give first. */
function givenBy(
  instance: string,
  counts: ReadonlyMap<string, number>,
  { least, lacking }: { least: number; lacking: number },
): number {
  const left = new Map([...counts].sort());
  for (let wanted = lacking; wanted > 0; wanted--) {
    const [id, count] = [...left].reduce((max, one) => (one[1] > max[1] ? one : max));
    if (count <= least) break;
    left.set(id, count - 1);
  }
  return (counts.get(instance) ?? 0) - (left.get(instance) ?? 0);
}

/** Two that take one each should not both try the same. */
function spread(free: readonly number[], instance: string): number[] {
  const start = [...instance].reduce((sum, character) => sum + character.charCodeAt(0), 0) % free.length;
  return [...free.slice(start), ...free.slice(0, start)];
}
