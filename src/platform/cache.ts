/** A bounded cache of documents, used only while the change stream delivers. */
import { LRUCache } from 'lru-cache';
import { cacheSize } from '../core/cache-size.js';

export interface ReadThroughCache<T> {
  find(id: string): Promise<T | null>;
  invalidate(id: string): void;
  /** Drops all matching entries; returns their number. */
  invalidateWhere(isMatch: (found: T) => boolean): number;
  invalidateAll(): void;
}

/** A result that was loaded during an invalidation may be outdated: it is used, but not cached. */
export function createReadThroughCache<T extends object>(
  max: number,
  isLive: () => boolean,
  load: (id: string) => Promise<T | null>,
): ReadThroughCache<T> {
  const found = new LRUCache<string, T>(cacheSize(max));
  let generation = 0;
  return {
    async find(id) {
      const known = isLive() ? found.get(id) : undefined;
      if (known !== undefined) return known;
      const before = generation;
      const loaded = await load(id);
      if (loaded !== null && before === generation && isLive()) found.set(id, loaded);
      return loaded;
    },
    invalidate(id) {
      generation++;
      found.delete(id);
    },
    invalidateWhere(isMatch) {
      generation++;
      const matching = [...found.entries()].filter(([, one]) => isMatch(one));
      for (const [id] of matching) found.delete(id);
      return matching.length;
    },
    invalidateAll() {
      generation++;
      found.clear();
    },
  };
}
