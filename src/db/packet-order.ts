/** The order of an object's packets, where those of one request take time to make. */

/** Requests of an object go into the queue in the order in which they came, also behind one whose packets take time to make. */
export function createOrder() {
  const last = new Map<string, Promise<unknown>>();
  return {
    isWaitedFor: (objectId: string): boolean => last.size > 0 && last.has(objectId),
    async after<T>(objectId: string, next: () => Promise<T>): Promise<T> {
      const before = last.get(objectId);
      const turn = before === undefined ? next() : before.then(next, next);
      last.set(objectId, turn);
      try {
        return await turn;
      } finally {
        if (last.get(objectId) === turn) last.delete(objectId);
      }
    },
  };
}
