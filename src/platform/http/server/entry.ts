/** The request entry point: answers 503 until the database is available, then calls the app; stops without losing requests. */
import type { RequestListener, Server } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { Express } from 'express';
import { createClientFacts } from '../client-ip.js';
import { sendUnavailable } from '../errors.js';
import { createAddressLimit } from './address-limit.js';
import { createExpressClasses } from './express-classes.js';
import { createFastPath } from './fast-path.js';
import { closeServer, createHttpServer, drainAcceptQueue, endKeptConnections, listen } from './node-server.js';
import { answerInOrder } from './request-order.js';

export interface Entry {
  /** For protocols that take over connections, such as WebSockets. */
  readonly server: Server;
  /** Passes requests to the app. Resolves with the address. */
  open(app: Express): Promise<string>;
  /** Answers every request with 503 until `open` is called. Resolves with the address. */
  refuse(): Promise<string>;
  /** Accepts requests for `stopDelayMs` more, then stops listening and finishes the requests in progress. */
  close(): Promise<void>;
}

export interface EntryOptions {
  readonly host: string;
  readonly port: number;
  readonly basePath: string;
  readonly stopDelayMs: number;
  readonly trustProxy: number | readonly string[];
  readonly connectionsPerAddress: number;
  /** Told of connections beyond that, by the network of their address. */
  readonly onConnectionRefused: (network: string) => void;
}

export function createEntry(options: EntryOptions): Entry {
  let listener = sendUnavailable;
  const classes = createExpressClasses(options.basePath);
  const limit = createAddressLimit(
    createClientFacts(options.trustProxy),
    options.connectionsPerAddress,
    options.onConnectionRefused,
  );
  const server = createHttpServer(answerInOrder(limit.limitRequests((req, res) => listener(req, res))), classes);
  limit.limitConnections(server);
  let listening: Promise<string> | undefined;
  const startListening = (): Promise<string> => {
    listening ??= listen(server, options);
    return listening;
  };
  return {
    server,
    open(app) {
      classes.follow(app);
      limit.followSockets(server);
      listener = createFastPath(app);
      return startListening();
    },
    refuse: startListening,
    async close() {
      if (!server.listening) return;
      endKeptConnections(server);
      if (listener !== sendUnavailable) await wait(options.stopDelayMs);
      // A client that waits for an answer sends no new request: holding answers back lets the accept queue drain.
      const app = listener;
      const held: Parameters<RequestListener>[] = [];
      listener = (...request) => void held.push(request);
      await drainAcceptQueue(server);
      closeServer(server);
      listener = app;
      for (const request of held) app(...request);
    },
  };
}
