/** Positions in the sequence of all changes: opaque to clients, in order for us. */

const POSITION = /^[A-Za-z0-9_-]{8,1024}$/;

/** Whether text has the form of a position. */
export function isPosition(text: unknown): text is string {
  return typeof text === 'string' && POSITION.test(text);
}

/** Whether the first comes after the second. */
export function isAfter(first: string, second: string): boolean {
  return Buffer.compare(Buffer.from(first, 'base64url'), Buffer.from(second, 'base64url')) > 0;
}
