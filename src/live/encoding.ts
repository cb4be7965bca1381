/** Encodes events for each transport. Each encoding is created once and shared by all receivers. */
import type { Encoding } from '../core/feed.js';
import type { LiveEvent } from './events.js';

const ENCODERS: Readonly<Record<Encoding, (event: LiveEvent) => Buffer>> = {
  frame: (event) => toFrame(join(`42["${event.name}",`, event.toJson(), `,{"position":"${event.position}"}]`)),
  // Old Socket.IO clients cannot decode non-ASCII characters over long polling; JSON escapes work with all clients.
  packet: (event) => Buffer.from(escapeText(`2["${event.name}",${event.toJson()},{"position":"${event.position}"}]`)),
  sse: (event) => join(`id: ${event.position}\nevent: ${event.name}\ndata: `, event.toJson(), '\n\n'),
  item: (event) => join(`{"event":"${event.name}","data":`, event.toJson(), `,"position":"${event.position}"}`),
};

export function encode(event: LiveEvent, encoding: Encoding): Buffer {
  event.encoded[encoding] ??= ENCODERS[encoding](event);
  return event.encoded[encoding];
}

/** Replaces every non-ASCII character of JSON text by its escape. */
export function escapeText(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

// The JSON is UTF-8; the text around it is ASCII.
const join = (before: string, json: Buffer, after: string): Buffer =>
  Buffer.concat([Buffer.from(before, 'latin1'), json, Buffer.from(after, 'latin1')]);

/** A complete text frame of a server: unmasked and uncompressed (RFC 6455, 5.2). */
function toFrame(text: Buffer): Buffer {
  const { length } = text;
  const headBytes = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(headBytes + length);
  frame[0] = 0x81;
  frame[1] = headBytes === 2 ? length : headBytes === 4 ? 126 : 127;
  if (headBytes === 4) frame.writeUInt16BE(length, 2);
  if (headBytes === 10) frame.writeBigUInt64BE(BigInt(length), 2);
  text.copy(frame, headBytes);
  return frame;
}
