/** The address of a client behind the proxies that are believed, for requests that Express does not see. */
import type { IncomingMessage } from 'node:http';
import express from 'express';

/** Tells the same of every request as `req.ip` does in a handler. */
export function createAddressOf(trustProxy: number | string[]): (req: IncomingMessage) => string {
  const app = express().set('trust proxy', trustProxy);
  return (req) => String(Reflect.get(app.request, 'ip', Object.create(req, { app: { value: app } })));
}
