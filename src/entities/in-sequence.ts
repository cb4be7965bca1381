/** Work of one name in sequence: what concurrent requests would make each other retry, or would count before the others have stored theirs. */
const sequences = new Map<string, Promise<unknown>>();

/** Runs the work of each name in sequence, within this instance. */
export async function inSequence<T>(name: string, work: () => Promise<T>): Promise<T> {
  const result = (sequences.get(name) ?? Promise.resolve()).then(work);
  const ended = result.catch(() => undefined);
  sequences.set(name, ended);
  await ended;
  if (sequences.get(name) === ended) sequences.delete(name);
  return result;
}
