/** What was found before and is still true: bounded, and used only while changes of other instances arrive. */
import { LRUCache } from 'lru-cache';
import { atMost } from '../model/cache-size.js';

export interface Known<T> {
  find(id: string): Promise<T | null>;
  forget(id: string): void;
  /** Forgets what fits; gives how many that were. */
  forgetWhere(isMeant: (found: T) => boolean): number;
  forgetAll(): void;
}

/** A bounded cache of found things. What was being loaded while something was forgotten is used, but not kept. */
export function createKnown<T extends object>(
  most: number,
  isLive: () => boolean,
  load: (id: string) => Promise<T | null>,
): Known<T> {
  const found = new LRUCache<string, T>(atMost(most));
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
    forget(id) {
      generation++;
      found.delete(id);
    },
    forgetWhere(isMeant) {
      generation++;
      const meant = [...found.entries()].filter(([, one]) => isMeant(one));
      for (const [id] of meant) found.delete(id);
      return meant.length;
    },
    forgetAll() {
      generation++;
      found.clear();
    },
  };
}
