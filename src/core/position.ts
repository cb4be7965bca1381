/** Positions in the sequence of all changes: opaque to clients, ordered for the service. */

const POSITION = /^[A-Za-z0-9_-]{8,1024}$/;

/** Whether a value has the form of a position. */
export function isPosition(text: unknown): text is string {
  return typeof text === 'string' && POSITION.test(text);
}

/** The whole seconds from the first to the second position: each begins with one byte and the seconds since 1970. */
export function secondsBetween(first: string, second: string): number {
  return secondsOf(second) - secondsOf(first);
}

/** Whether the first comes after the second. */
export function isAfter(first: string, second: string): boolean {
  return Buffer.compare(Buffer.from(first, 'base64url'), Buffer.from(second, 'base64url')) > 0;
}

/** When a position was given, whole seconds since 1970 by the database's clock. */
export function secondsOf(position: string): number {
  return Buffer.from(position.slice(0, 8), 'base64url').readUInt32BE(1);
}

/** Where a change is among all: changes of one second have different numbers, from 1 on. */
export function orderOf(position: string): { readonly seconds: number; readonly nth: number } {
  const bytes = Buffer.from(position.slice(0, 12), 'base64url');
  return { seconds: bytes.readUInt32BE(1), nth: bytes.readUInt32BE(5) };
}
