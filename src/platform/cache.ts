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

interface Load<T> {
  /** Of the cache, when it began. */
  readonly generation: number;
  readonly result: Promise<T | null>;
}

/**
 * A result that was loaded during an invalidation may be outdated: it is used, but not cached. Callers that look for the same
 * document at the same time share one load, if nothing was invalidated since it began.
 */
export function createReadThroughCache<T extends object>(
  max: number,
  isLive: () => boolean,
  load: (id: string) => Promise<T | null>,
): ReadThroughCache<T> {
  const found = new LRUCache<string, T>(cacheSize(max));
  const loading = new Map<string, Load<T>>();
  let generation = 0;

  async function loadAndKeep(id: string): Promise<T | null> {
    const before = generation;
    const loaded = await load(id);
    if (loaded !== null && before === generation && isLive()) found.set(id, loaded);
    return loaded;
  }

  return {
    async find(id) {
      const known = isLive() ? found.get(id) : undefined;
      if (known !== undefined) return known;
      const begun = loading.get(id);
      if (begun?.generation === generation && isLive()) return begun.result;
      const own: Load<T> = { generation, result: loadAndKeep(id) };
      loading.set(id, own);
      try {
        return await own.result;
      } finally {
        if (loading.get(id) === own) loading.delete(id);
      }
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
