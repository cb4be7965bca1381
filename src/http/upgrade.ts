/**
 * Which requests become another protocol: WebSockets at the path of Socket.IO. Any other `Upgrade` is ignored (RFC 9110, 7.8), as
 * Java's HttpClient and `curl --http2` expect, which ask every server for h2c.
 *
 * This file reaches beneath Node's public interface. A request tells by its property `upgrade` whether Node hands its connection over;
 * where it does not, Node's parser stops behind the request all the same, and forgets what came in the same piece: the requests after
 * it. `continueParsing` gives the parser the rest. Upgrading Node.js: test/slow/upgrade.test.ts holds every part of this.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { SOCKETS_PATH } from '../model/feed.js';
import { originFormOf } from './target.js';

/** Whether a request that asks for another protocol gets it. */
export function isWebSocketHandshake({ method, url, headers }: IncomingMessage): boolean {
  if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') return false;
  // A body is not Socket.IO's; Node versions differ in whether they read it before the other protocol begins.
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) return false;
  return originFormOf(url ?? '').startsWith(SOCKETS_PATH);
}

/** What Node keeps at the socket of an HTTP connection: a number is how many bytes were read. */
interface Parser {
  readonly constructor: { readonly kOnExecute: number; readonly prototype: Parser };
  execute(bytes: Buffer): number | Error;
  /** The bytes that were just executed. */
  getCurrentBuffer(): Buffer;
  /** Under `kOnExecute`: called after each piece that came from the network. */
  [callback: number]: (read: number | Error) => void;
}
type ParsedSocket = Socket & { readonly parser?: Parser | null; readonly _paused?: boolean };

/** The last request of each connection that asked in vain; null once the parser went on behind it. */
const lastIgnored = new WeakMap<Socket, { request: IncomingMessage | null }>();

/** Called when a request of a connection is found to ask for another protocol. */
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
  // Forgotten with the connection: Node gives its parsers a new callback for each one.
  parser[kOnExecute] = (read) => {
    onExecute(read);
    if (typeof read === 'number' && socket.parser === parser) parseRest(socket, parser.getCurrentBuffer(), read);
  };
}

function parseRest(socket: ParsedSocket, bytes: Buffer, read: number): void {
  const last = lastIgnored.get(socket);
  let rest = bytes.subarray(read);
  while (last !== undefined && socket.parser != null && !socket.destroyed) {
    const isBehind = last.request?.complete === true;
    if (socket._paused && isBehind && rest.length > 0) {
      // Too many answers wait: Node reads on when some were sent, and so does this.
      const waiting = rest;
      socket.once('resume', () => parseRest(socket, waiting, 0));
      return;
    }
    if (isBehind) last.request = null;
    if (rest.length === 0) return;
    if (!isBehind) {
      // Not behind such a request, and yet not read: Node takes a fault in what follows one for its end.
      socket.emit('error', new Error('Parse Error'));
      return;
    }
    rest = rest.subarray(parse(socket, socket.parser, rest));
  }
}

/** Hands bytes to Node as if the network had brought them; gives how many were read. */
function parse(socket: Socket, parser: Parser, bytes: Buffer): number {
  let read: number | Error = bytes.length;
  parser.execute = (some) => {
    read = parser.constructor.prototype.execute.call(parser, some);
    return read;
  };
  try {
    socket.emit('data', bytes);
  } finally {
    Reflect.deleteProperty(parser, 'execute');
  }
  // A fault was answered.
  return typeof read === 'number' ? read : bytes.length;
}
