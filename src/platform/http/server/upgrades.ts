/**
 * Decides which requests switch protocols: only WebSocket handshakes at the path of Socket.IO. Any other `Upgrade` header is
 * ignored (RFC 9110, 7.8): Java's HttpClient and `curl --http2` request h2c from every server and expect a normal answer.
 *
 * This file uses internals of Node.js. The property `upgrade` of a request decides whether Node hands its connection over. If it
 * does not, Node's parser still stops after the request and drops the rest of the received bytes, which may contain further
 * requests. `continueParsing` passes that rest to the parser. Upgrading Node.js: test/slow/unhandled-upgrades.test.ts covers every part of this.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { SOCKETS_PATH } from '../../../core/feed.js';

/** `url` in the form of `useOwnTarget`. */
export function isWebSocketHandshake({ method, url, headers }: IncomingMessage): boolean {
  if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') return false;
  // A handshake of Socket.IO has no body, and Node versions differ in whether they read one before the upgrade.
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) return false;
  return url?.startsWith(SOCKETS_PATH) ?? false;
}

/** Node's HTTP parser of a connection. Numbers are counts of parsed bytes. */
interface Parser {
  readonly constructor: { readonly kOnExecute: number; readonly prototype: Parser };
  execute(bytes: Buffer): number | Error;
  /** The bytes passed to the last `execute`. */
  getCurrentBuffer(): Buffer;
  /** Under `kOnExecute`: called after each chunk from the network was parsed. */
  [callback: number]: (read: number | Error) => void;
}
type ParsedSocket = Socket & { readonly parser?: Parser | null; readonly _paused?: boolean };

/** The last request of each connection whose upgrade is ignored; null once parsing continued after it. */
const lastIgnored = new WeakMap<Socket, { request: IncomingMessage | null }>();

/** Call this when a request with an `Upgrade` header was parsed. */
export function continueParsing(request: IncomingMessage): void {
  const socket = request.socket as ParsedSocket;
  const { parser } = socket;
  if (parser == null) return;
  const known = lastIgnored.get(socket);
  if (known !== undefined) {
    known.request = request;
    return;
  }
  lastIgnored.set(socket, { request });
  const { kOnExecute } = parser.constructor;
  const onExecute = parser[kOnExecute] as (read: number | Error) => void;
  // Node sets a new callback when it reuses the parser for another connection.
  parser[kOnExecute] = (read) => {
    onExecute(read);
    if (typeof read === 'number' && socket.parser === parser) parseRest(socket, parser.getCurrentBuffer(), read);
  };
}

function parseRest(socket: ParsedSocket, bytes: Buffer, read: number): void {
  const last = lastIgnored.get(socket);
  let rest = bytes.subarray(read);
  while (last !== undefined && socket.parser != null && !socket.destroyed) {
    const isRequestComplete = last.request?.complete === true;
    if (socket._paused && isRequestComplete && rest.length > 0) {
      // Too much output is queued: like Node, continue when some of it was sent.
      const waiting = rest;
      socket.once('resume', () => parseRest(socket, waiting, 0));
      return;
    }
    if (isRequestComplete) last.request = null;
    if (rest.length === 0) return;
    if (!isRequestComplete) {
      // Unparsed bytes without a complete request are a parse error that Node mistook for the end of the upgrade request.
      socket.emit('error', new Error('Parse Error'));
      return;
    }
    rest = rest.subarray(parse(socket, socket.parser, rest));
  }
}

/** Passes bytes to Node as if they came from the network. Returns the count of parsed bytes. */
function parse(socket: Socket, parser: Parser, bytes: Buffer): number {
  let read: number | Error = bytes.length;
  parser.execute = (chunk) => {
    read = parser.constructor.prototype.execute.call(parser, chunk);
    return read;
  };
  try {
    socket.emit('data', bytes);
  } finally {
    Reflect.deleteProperty(parser, 'execute');
  }
  // Node has answered a parse error already.
  return typeof read === 'number' ? read : bytes.length;
}
