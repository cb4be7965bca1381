/**
 * Limits the connections of each client address. A trusted proxy has connections for many clients: each counts for the proxy until
 * its first request arrives, and from then on for the client of its request, while that is in progress.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { tooManyRequests } from '../../../core/errors.js';
import { createConnectionCounts } from '../../connection-counts.js';
import type { ClientFacts } from '../client-ip.js';
import { refuseAtOnce } from '../errors.js';

export interface AddressLimit {
  /** Passes requests within the limit on; answers the others with 429. */
  limitRequests(listener: RequestListener): RequestListener;
  /** Ends connections beyond the limit as soon as they are accepted. */
  limitConnections(server: Server): void;
  /**
   * Counts connections of proxies no longer once they carry a request of Socket.IO, which has limits of its own per client address
   * (live/) and takes its requests from the server before all others. Called after it has: while nobody answers upgrades, Node would
   * hand them to this listener and leave them without an answer.
   */
  followSockets(server: Server): void;
}

const RETRY_S = 1;

export function createAddressLimit(
  facts: Pick<ClientFacts, 'addressOf' | 'isProxy'>,
  max: number,
  onRefused: (network: string) => void,
): AddressLimit {
  const counts = createConnectionCounts(max, onRefused);
  /** For connections of proxies without a request. */
  const unused = new WeakMap<Socket, () => void>();
  const noteUse = ({ socket }: IncomingMessage): void => unused.get(socket)?.();
  const admit = (req: IncomingMessage, res: ServerResponse): boolean => {
    if (!facts.isProxy(req.socket.remoteAddress)) return true;
    noteUse(req);
    const release = counts.take(facts.addressOf(req));
    if (release !== null) res.once('close', release);
    return release !== null;
  };
  return {
    limitRequests: (listener) => (req, res) => {
      if (admit(req, res)) listener(req, res);
      else refuseAtOnce(res, tooManyRequests(RETRY_S, 'too many requests in progress from this address'));
    },
    limitConnections(server) {
      server.on('connection', (socket: Socket) => {
        const release = counts.take(socket.remoteAddress ?? 'unknown');
        if (release === null) {
          socket.destroy();
          return;
        }
        socket.once('close', release);
        if (facts.isProxy(socket.remoteAddress)) unused.set(socket, release);
      });
    },
    followSockets(server) {
      server.prependListener('request', noteUse);
      server.on('upgrade', noteUse);
    },
  };
}
