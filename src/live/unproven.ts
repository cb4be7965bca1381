/** Connections of clients that have not shown who they are: few of each network and in all, so that they take nobody's place. */
import type { IncomingMessage } from 'node:http';
import type { Identify } from '../auth/identify.js';
import { LIMITS } from '../model/limits.js';
import { networkOf } from '../model/network.js';
import type { Connection } from './connections.js';

export interface Unproven {
  /** Asked before there is a connection: whether there may be one. Who shows a session or a token in the headers always may. */
  mayEnter(req: IncomingMessage): Promise<boolean>;
  /** There is one. */
  begin(connection: Connection): void;
  /** It has shown who it is. */
  prove(connection: Connection): void;
}

export interface UnprovenParts {
  readonly identify: Identify;
  readonly addressOf: (req: IncomingMessage) => string;
}

export function createUnproven({ identify, addressOf }: UnprovenParts): Unproven {
  const proven = new WeakSet<IncomingMessage>();
  const networks = new WeakMap<Connection, string>();
  const counts = new Map<string, number>();
  let all = 0;
  const hasRoom = (network: string): boolean =>
    all < LIMITS.socketsUnproven && (counts.get(network) ?? 0) < LIMITS.socketsUnprovenPerAddress;
  const release = (connection: Connection): void => {
    const network = networks.get(connection);
    if (network === undefined) return;
    networks.delete(connection);
    const left = (counts.get(network) ?? 1) - 1;
    if (left === 0) counts.delete(network);
    else counts.set(network, left);
    all--;
  };
  return {
    async mayEnter(req) {
      const { authorization, cookie } = req.headers;
      // What cannot be told now shows when the socket is let in.
      const caller = await identify({ authorization, cookie }).catch(() => null);
      if (caller !== null) proven.add(req);
      return caller !== null || hasRoom(networkOf(addressOf(req)));
    },
    begin(connection) {
      if (proven.has(connection.request)) return;
      const network = networkOf(addressOf(connection.request));
      // Many were asked for at once.
      if (!hasRoom(network)) {
        connection.close(true);
        return;
      }
      networks.set(connection, network);
      counts.set(network, (counts.get(network) ?? 0) + 1);
      all++;
      connection.once('close', () => release(connection));
    },
    prove: release,
  };
}
