/** Limits unauthenticated connections per network and in total, so that they do not displace authenticated ones. */
import type { IncomingMessage } from 'node:http';
import type { Identify } from '../accounts/identify.js';
import { LIMITS } from '../core/limits.js';
import { networkOf } from '../core/network.js';
import type { LiveConnection } from './connections.js';

export interface UnauthenticatedLimit {
  /** Decides before a connection is opened. Clients with a valid session or token in the headers are always accepted. */
  mayConnect(req: IncomingMessage): Promise<boolean>;
  /** Counts an opened connection, if it is unauthenticated. */
  begin(connection: LiveConnection): void;
  /** Call this when the connection is authenticated. */
  release(connection: LiveConnection): void;
  /** Throws the 503 of `mayConnect`, so that one connection does not wait for a silent database twice. */
  throwFailure(connection: LiveConnection): void;
}

export interface UnauthenticatedDeps {
  readonly identify: Identify;
  readonly addressOf: (req: IncomingMessage) => string;
}

export function createUnauthenticatedLimit({ identify, addressOf }: UnauthenticatedDeps): UnauthenticatedLimit {
  const authenticated = new WeakSet<IncomingMessage>();
  const failures = new WeakMap<IncomingMessage, Error>();
  const networks = new WeakMap<LiveConnection, string>();
  const counts = new Map<string, number>();
  let total = 0;
  const isWithinLimit = (network: string): boolean =>
    total < LIMITS.socketsUnproven && (counts.get(network) ?? 0) < LIMITS.socketsUnprovenPerAddress;
  const release = (connection: LiveConnection): void => {
    const network = networks.get(connection);
    if (network === undefined) return;
    networks.delete(connection);
    const left = (counts.get(network) ?? 1) - 1;
    if (left === 0) counts.delete(network);
    else counts.set(network, left);
    total--;
  };
  return {
    async mayConnect(req) {
      const { authorization, cookie } = req.headers;
      const caller = await identify({ authorization, cookie }).catch((error: Error) => {
        // A refused handshake would look permanent to some clients. The socket is closed after the handshake instead.
        failures.set(req, error);
        return null;
      });
      if (caller !== null) authenticated.add(req);
      return caller !== null || isWithinLimit(networkOf(addressOf(req)));
    },
    begin(connection) {
      if (authenticated.has(connection.request)) return;
      const network = networkOf(addressOf(connection.request));
      // Checked again, since several handshakes may have been accepted concurrently.
      if (!isWithinLimit(network)) {
        connection.close(true);
        return;
      }
      networks.set(connection, network);
      counts.set(network, (counts.get(network) ?? 0) + 1);
      total++;
      connection.once('close', () => release(connection));
    },
    release,
    throwFailure({ request }) {
      const failure = failures.get(request);
      if (failure !== undefined) throw failure;
    },
  };
}
