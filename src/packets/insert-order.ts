/** Keeps the order of an object's packets when those of one request or message take time to parse or to convert. */

export type InsertOrder = ReturnType<typeof createInsertOrder>;

/** Queues the requests of each object in order of arrival. */
export function createInsertOrder() {
  const last = new Map<string, Promise<unknown>>();
  return {
    hasPending: (objectId: string): boolean => last.size > 0 && last.has(objectId),
    async after<T>(objectId: string, next: () => Promise<T>): Promise<T> {
      const before = last.get(objectId);
      const result = before === undefined ? next() : before.then(next, next);
      last.set(objectId, result);
      try {
        return await result;
      } finally {
        if (last.get(objectId) === result) last.delete(objectId);
      }
    },
  };
}
