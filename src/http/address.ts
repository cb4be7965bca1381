/** What the proxies that are believed tell of a client, for requests that Express does not see: the same as in a handler. */
import type { IncomingMessage } from 'node:http';
import express from 'express';

export interface ClientFacts {
  /** As `req.ip`. */
  readonly addressOf: (req: IncomingMessage) => string;
  /** As `req.protocol`: `http` or `https`. */
  readonly schemeOf: (req: IncomingMessage) => string;
}

export function createClientFacts(trustProxy: number | string[]): ClientFacts {
  const app = express().set('trust proxy', trustProxy);
  const read = (req: IncomingMessage, name: string): string =>
    String(Reflect.get(app.request, name, Object.create(req, { app: { value: app } })));
  return {
    addressOf: (req) => read(req, 'ip'),
    // Some proxies name the scheme of a WebSocket.
    schemeOf: (req) => read(req, 'protocol').replace(/^ws/, 'http'),
  };
}
