/**
 * The PROXY protocol, versions 1 and 2 (haproxy.org/download/3.0/doc/proxy-protocol.txt): a TCP load balancer sends the address of
 * the client before the client's bytes. Pure except for `readProxyHeader`.
 */

import { isIPv4, isIPv6, type Socket } from 'node:net';
import { LIMITS } from '../../core/limits.js';
import { clock } from '../../platform/clock.js';

/** `address` is null for connections of the load balancer itself, such as health checks, and for unknown clients. */
export interface ProxyHeader {
  readonly bytes: number;
  readonly address: string | null;
}

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const VERSION_1 = 'PROXY ';
/** Section 2.1: the longest line of version 1, with its end. */
const LINE_BYTES = 107;
const LINE = /^PROXY (?:UNKNOWN(?: [\x20-\x7e]*)?|TCP([46]) (\S+) (\S+) (0|[1-9]\d{0,4}) (0|[1-9]\d{0,4}))\r\n/;
/** Section 2.2: signature, version and command, family and protocol, length. */
const FIXED_BYTES = 16;

/** Returns null while more bytes are needed. Throws if the bytes are no valid header. */
export function parseProxyHeader(bytes: Buffer): ProxyHeader | null {
  if (startsAlike(bytes, SIGNATURE)) return bytes.length < FIXED_BYTES ? null : parseVersion2(bytes);
  if (startsAlike(bytes, Buffer.from(VERSION_1))) return parseVersion1(bytes.toString('latin1', 0, LINE_BYTES));
  throw new Error('no header of the PROXY protocol');
}

const startsAlike = (bytes: Buffer, start: Buffer): boolean => {
  const length = Math.min(bytes.length, start.length);
  return bytes.subarray(0, length).equals(start.subarray(0, length));
};

function parseVersion1(text: string): ProxyHeader | null {
  if (!text.includes('\r\n')) {
    if (text.length < LINE_BYTES) return null;
    throw new Error('a line of the PROXY protocol without end');
  }
  const [line, version, source, destination, ...ports] = LINE.exec(text) ?? [];
  if (line === undefined) throw new Error('a broken line of the PROXY protocol');
  if (version === undefined) return { bytes: line.length, address: null };
  const isAddress = version === '4' ? isIPv4 : isIPv6;
  const isSound = [source, destination].every((address) => isAddress(address ?? ''));
  if (!isSound || ports.some((port) => Number(port) > 65_535)) throw new Error('a broken line of the PROXY protocol');
  return { bytes: line.length, address: source ?? null };
}

function parseVersion2(bytes: Buffer): ProxyHeader | null {
  const [kind = 0, family = 0] = bytes.subarray(SIGNATURE.length);
  const length = bytes.readUInt16BE(FIXED_BYTES - 2);
  const isLocal = kind === 0x20;
  if (!isLocal && kind !== 0x21) throw new Error('an unknown version or command of the PROXY protocol');
  if (FIXED_BYTES + length > LIMITS.mqttProxyHeaderBytes) throw new Error('too long a header of the PROXY protocol');
  const isKnown = !isLocal && family !== 0;
  if (isKnown && !(family === 0x11 && length >= 12) && !(family === 0x21 && length >= 36)) {
    throw new Error('no addresses of TCP in a header of the PROXY protocol');
  }
  const end = FIXED_BYTES + length;
  if (bytes.length < end) return null;
  if (!isKnown) return { bytes: end, address: null };
  const source = bytes.subarray(FIXED_BYTES, FIXED_BYTES + (family === 0x11 ? 4 : 16));
  const groups = Array.from({ length: 8 }, (_, index) =>
    family === 0x11 ? '' : source.readUInt16BE(index * 2).toString(16),
  );
  return { bytes: end, address: family === 0x11 ? source.join('.') : groups.join(':') };
}

/**
 * Reads the header from a connection and leaves the bytes after it unread. Resolves with the client's address, or null. Rejects if
 * the header is missing, invalid or late.
 */
export function readProxyHeader(socket: Socket): Promise<string | null> {
  return new Promise((resolve, reject) => {
    let read = Buffer.alloc(0);
    const end = (finish: () => void): void => {
      clock.clearTimer(timer);
      socket.off('data', onData).off('close', onClose).pause();
      finish();
    };
    const onData = (chunk: Buffer): void => {
      read = Buffer.concat([read, chunk]);
      try {
        const header = parseProxyHeader(read);
        if (header === null) return;
        end(() => {
          if (read.length > header.bytes) socket.unshift(read.subarray(header.bytes));
          resolve(header.address);
        });
      } catch (error) {
        end(() => reject(error));
      }
    };
    const onClose = (): void => end(() => reject(new Error('closed before its header')));
    const onTimeout = (): void => end(() => reject(new Error('no header of the PROXY protocol in time')));
    const timer = clock.setTimeout(onTimeout, LIMITS.mqttConnectMs);
    socket.on('data', onData).once('close', onClose);
  });
}
