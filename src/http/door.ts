/** The way in: closed with 503 while the service has no database, open with its app, and how it closes at the end. */
import type { RequestListener, Server } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { Express } from 'express';
import { answerNotYet } from './failure.js';
import { answerInOrder } from './in-order.js';
import { createKinds } from './kinds.js';
import { closeServer, createHttpServer, endKeptConnections, letIn, listen } from './server.js';
import { createShortWay } from './short.js';

export interface Door {
  /** For those who take over connections, such as WebSockets. */
  readonly server: Server;
  /** Requests are answered by the app from now on. Resolves with the address. */
  open(app: Express): Promise<string>;
  /** Every request is refused until the door opens. Resolves with the address. */
  refuse(): Promise<string>;
  /** Takes requests for as long as was configured, then no more; answers what is under way. */
  close(): Promise<void>;
}

export function createDoor(at: { host: string; port: number; stopDelayMs: number }): Door {
  let answer = answerNotYet;
  const kinds = createKinds();
  const server = createHttpServer(
    answerInOrder((req, res) => answer(req, res)),
    kinds,
  );
  let listening: Promise<string> | undefined;
  const takeRequests = (): Promise<string> => {
    listening ??= listen(server, at);
    return listening;
  };
  return {
    server,
    open(app) {
      kinds.follow(app);
      answer = createShortWay(app);
      return takeRequests();
    },
    refuse: takeRequests,
    async close() {
      if (!server.listening) return;
      endKeptConnections(server);
      if (answer !== answerNotYet) await wait(at.stopDelayMs);
      // Who waits for an answer does not come again: for a moment nobody is answered, and the last ones get in.
      const app = answer;
      const held: Parameters<RequestListener>[] = [];
      answer = (...request) => void held.push(request);
      await letIn(server);
      closeServer(server);
      answer = app;
      for (const request of held) app(...request);
    },
  };
}
