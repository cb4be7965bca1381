/** Positions in the sequence of all changes: opaque to clients, in order for us. */

const POSITION = /^[A-Za-z0-9_-]{8,1024}$/;

/** Whether text has the form of a position. */
export function isPosition(text: unknown): text is string {
  return typeof text === 'string' && POSITION.test(text);
}

/** How much later the second was given than the first, whole seconds: both begin with a byte and the seconds since 1970. */
export function secondsBetween(first: string, second: string): number {
  const secondsOf = (position: string): number => Buffer.from(position.slice(0, 8), 'base64url').readUInt32BE(1);
  return secondsOf(second) - secondsOf(first);
}

/** Whether the first comes after the second. */
export function isAfter(first: string, second: string): boolean {
  return Buffer.compare(Buffer.from(first, 'base64url'), Buffer.from(second, 'base64url')) > 0;
}
