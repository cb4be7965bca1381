// An HTTP connection that sends requests and counts the bytes of answers. It does as little as possible, so that on a shared
// machine the measurement is about the server and not the client.
import { connect, type Socket } from 'node:net';
import type { Wanted } from './workloads.js';

export interface Target {
  readonly url: string;
  readonly token: string;
}

export interface Connection {
  /** Sends a request. Resolves with the status of the complete answer, or 0 if the connection ended before. One at a time. */
  send(request: string): Promise<number>;
  close(): void;
}

const READ_BYTES = 256 * 1_024;
// One buffer serves all connections: each read is processed before the next one begins.
const readBuffer = Buffer.allocUnsafe(READ_BYTES);

/** The text of a request. */
export function toRequest({ url, token }: Target, { method, path, body }: Wanted): string {
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAuthorization: Bearer ${token}\r\n`;
  if (body === undefined) return `${head}\r\n`;
  const text = JSON.stringify(body);
  return `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
}

export function openSocket(url: string, take: (chunk: Buffer) => void): Socket {
  const { hostname, port } = new URL(url);
  const callback = (size: number, buffer: Uint8Array): boolean => {
    take(buffer.subarray(0, size) as Buffer);
    return true;
  };
  const socket = connect({ host: hostname, port: Number(port), onread: { buffer: readBuffer, callback } });
  return socket.setNoDelay(true);
}

export function openConnection(url: string): Connection {
  let answered: (status: number) => void = () => undefined;
  let status = 0;
  let left = 0;
  let head: Buffer | null = null;
  const take = (chunk: Buffer): void => {
    if (left > 0) left -= chunk.length;
    else {
      const begun: Buffer = head === null ? chunk : Buffer.concat([head, chunk]);
      const end = begun.indexOf('\r\n\r\n');
      head = end === -1 ? Buffer.from(begun) : null;
      if (end === -1) return;
      const text = begun.toString('latin1', 0, end);
      status = Number(text.slice(9, 12));
      left = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1]) - (begun.length - end - 4);
    }
    if (left === 0) answered(status);
  };
  const socket = openSocket(url, take);
  socket.on('error', () => undefined).on('close', () => answered(0));
  return {
    send: (request) =>
      new Promise((resolve) => {
        answered = resolve;
        if (socket.destroyed) resolve(0);
        else socket.write(request, 'utf8');
      }),
    close: () => socket.destroy(),
  };
}
