// Thousands of sockets that receive live events. Frames are counted in the stream of bytes; some sockets also read the times at
// which the events were sent.
import { randomBytes } from 'node:crypto';
import { openSocket, type Target } from './connection.js';
import { createMeter, type Load } from './http-load.js';
import { nowMs } from './workloads.js';

const AT_ONCE = 50;
/** One socket in this many reads the times of events. */
const READ_EVERY = 25;
// Other frames of the protocol are shorter, and those of the handshake arrive before the measurement.
const EVENT_BYTES = 20;
const SENT = '"sentMs":';

/** Counts complete text frames of events in a stream of WebSocket bytes with arbitrary chunks. Frames of a server have no mask. */
export function createFrameCounter(onEvent: () => void): (chunk: Uint8Array) => void {
  const header = new Uint8Array(10);
  let filled = 0;
  let skip = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (skip > 0) {
        const step = Math.min(skip, chunk.length - at);
        at += step;
        skip -= step;
        continue;
      }
      header[filled++] = chunk[at++] as number;
      const short = (header[1] as number) & 0x7f;
      const needed = filled < 2 || short < 126 ? 2 : short === 126 ? 4 : 10;
      if (filled < needed) continue;
      skip = short < 126 ? short : readLength(header, needed);
      filled = 0;
      if ((header[0] as number) === 0x81 && skip > EVENT_BYTES) onEvent();
    }
  };
}

function readLength(header: Uint8Array, end: number): number {
  let length = 0;
  for (let at = 2; at < end; at++) length = length * 256 + (header[at] as number);
  return length;
}

/** Finds the send times of the complete events in the bytes; returns the rest. */
export function readSentTimes(bytes: Buffer): { times: number[]; rest: Buffer } {
  const times: number[] = [];
  let from = 0;
  for (;;) {
    const at = bytes.indexOf(SENT, from, 'latin1');
    if (at === -1) return { times, rest: bytes.subarray(Math.max(from, bytes.length - SENT.length)) };
    const text = /^[\d.]+(?=[^\d.])/.exec(bytes.toString('latin1', at + SENT.length, at + SENT.length + 32))?.[0];
    if (text === undefined) return { times, rest: bytes.subarray(at) };
    times.push(Number(text));
    from = at + SENT.length;
  }
}

/** Opens the sockets. Resolves when all are connected. */
export async function loadLive(target: Target, sockets: number): Promise<Load> {
  const meter = createMeter();
  let events = 0;
  let before = 0;
  const count = (): void => {
    events++;
  };
  const noteTime = (sentMs: number): void => meter.note(true, nowMs() - sentMs);
  for (let opened = 0; opened < sockets; opened += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, sockets - opened) }, (_, nth) =>
      listen(target, count, (opened + nth) % READ_EVERY === 0 ? noteTime : null),
    );
    await Promise.all(some);
  }
  return {
    go: () => undefined,
    answered: () => events,
    begin() {
      before = events;
      meter.begin();
    },
    end: () => ({ ...meter.end(), count: events - before }),
  };
}

/** Opens one socket like a client of Engine.IO 3. Resolves when `40` confirms the connection. */
function listen(target: Target, count: () => void, noteTime: ((sentMs: number) => void) | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const counter = createFrameCounter(count);
    let opening = Buffer.alloc(0);
    let open = false;
    let rest: Buffer = Buffer.alloc(0);
    const take = (chunk: Buffer): void => {
      if (!open) {
        opening = Buffer.concat([opening, chunk]);
        const isIn = opening.includes('\x81\x0240', 0, 'latin1');
        if (!isIn) return;
        open = true;
        // No events arrive before the measurement, so the next bytes begin with a frame.
        resolve();
        return;
      }
      counter(chunk);
      if (noteTime === null) return;
      const read = readSentTimes(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]));
      rest = Buffer.from(read.rest);
      for (const time of read.times) noteTime(time);
    };
    const socket = openSocket(target.url, take);
    socket
      .on('error', reject)
      .on('close', () => reject(new Error(`a socket was closed: ${opening.toString('latin1', 0, 80)}`)));
    socket.write(toUpgrade(target));
  });
}

function toUpgrade({ url, token }: Target): string {
  return [
    'GET /socket.io/?EIO=3&transport=websocket HTTP/1.1',
    `Host: ${new URL(url).host}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    `Authorization: Bearer ${token}`,
    '\r\n',
  ].join('\r\n');
}
