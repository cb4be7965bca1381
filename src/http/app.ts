/** The API door on one screen: what every request passes, and which router answers it. */
import cors from 'cors';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import helmet from 'helmet';
import type { Logger } from 'pino';
import type { Audit } from '../db/audit.js';
import { sendJson } from './answer.js';
import { auditRequests } from './audit.js';
import { type AuthParts, createAuthRouter, createLoginRouter } from './auth.js';
import { admit, refuseForeignPages } from './caller.js';
import { type CommandParts, createCommandRouter, createSendRouter } from './commands.js';
import { createDocumentRouter } from './documents.js';
import { createEntityRouter, type EntityParts } from './entities.js';
import { createEventRouter, type EventParts } from './events.js';
import { answerError, only, unknownPath } from './failure.js';
import { type MeterParts, meter } from './meter.js';
import { createObjectRouter, type ObjectParts } from './objects.js';
import { createPastRouter } from './past-events.js';
import { type EndedRequest, logRequests, nameRequest, requireHost, requireUtf8 } from './requests.js';

export interface AppParts extends AuthParts, ObjectParts, CommandParts, EntityParts, EventParts, MeterParts {
  readonly audit: Audit;
  readonly log: Logger;
  /** For the line of each request. */
  readonly requestLog: Logger;
  /** Told of each request when it is over. */
  readonly requestEnded: (request: EndedRequest) => void;
  readonly trustProxy: number | string[];
  readonly corsOrigins: readonly string[];
}

export function createApp(parts: AppParts): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('trust proxy', parts.trustProxy).set('query parser', 'simple');
  app.locals.answerBudget = parts.answerBudget;

  app.use(
    nameRequest(),
    logRequests(parts.requestLog, parts.requestEnded),
    auditRequests(parts.audit),
    requireHost,
    requireUtf8,
    keepBrowsersSafe(),
    allowOrigins(parts.corsOrigins),
  );
  app.route(['/', '/api/v1']).get(greet).all(only('GET'));
  app.use(createDocumentRouter());

  const refuseForeign = refuseForeignPages(parts.corsOrigins);
  app.use('/api/v1', createLoginRouter(parts, refuseForeign));
  app.use(['/api/v1', '/objects'], admit(parts.identify, parts.corsOrigins), meter(parts));
  app.use('/api/v1', createAuthRouter(parts), createPastRouter(parts), createEventRouter(parts, refuseForeign));
  app.use('/api/v1', createObjectRouter(parts), createCommandRouter(parts), createEntityRouter(parts));
  // interface, "Object endpoints": the command path is stated without the prefix as well.
  app.use(createSendRouter(parts));

  app.use(unknownPath, answerError(parts.log));
  return app;
}

/** Headers for browsers and plug-ins that are long gone; each header costs every answer a little. */
const SPARED = {
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
} as const;

/** helmet's headers are the same for every answer: it is asked for them once. */
function keepBrowsersSafe(): RequestHandler {
  const headers = new Map<string, string>();
  const asked = { setHeader: (name: string, value: string) => headers.set(name, value), removeHeader() {} };
  helmet(SPARED)({} as Request, asked as unknown as Response, () => undefined);
  return (_req, res, next) => {
    for (const [name, value] of headers) res.setHeader(name, value);
    next();
  };
}

const greet: RequestHandler = (_req, res) => {
  sendJson(res, JSON.stringify({ success: true, name: 'Vigil', version: 1, api: '/api/v1' }));
};

/** Pages of the listed origins may call with their user's cookie; no other page of a foreign origin may read an answer. */
function allowOrigins(origins: readonly string[]): RequestHandler {
  const answer = cors({
    origin: [...origins],
    credentials: true,
    exposedHeaders: ['Link', 'Location', 'Retry-After', 'X-Request-Id'],
    maxAge: 600,
  });
  // Without listed origins there is nobody to tell.
  return origins.length === 0 ? (_req, _res, next) => next() : answer;
}
