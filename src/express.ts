/** The Express app: the middleware of every request, and the routers in order. */

import cors from 'cors';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import helmet from 'helmet';
import type { Logger } from 'pino';
import { ACCOUNT_ROUTES } from './accounts/account-routes.js';
import type { Audit } from './accounts/audit.js';
import { AUTH_ROUTES, type AuthDeps } from './accounts/auth-routes.js';
import { authenticate } from './accounts/authenticate.js';
import { PERMISSION_ROUTES } from './accounts/permission-routes.js';
import { auditRequests } from './accounts/request-audit.js';
import { COMMAND_ROUTES, type CommandDeps } from './commands/routes.js';
import { type EntityDeps, findStoreOf, STORE_ROUTES } from './entities/routes.js';
import { createExports, type ExportDeps } from './history/export-routes.js';
import { PAST_EVENT_ROUTES } from './history/past-event-routes.js';
import { SERIES_ROUTES } from './history/series-routes.js';
import { TRACK_ROUTES } from './history/track-routes.js';
import { EVENT_ROUTES, type EventDeps } from './live/routes.js';
import { createDocumentRouter } from './openapi/routes.js';
import { PACKET_ROUTES, type PacketDeps } from './packets/routes.js';
import { type ConsoleDeps, createConsole } from './pages/console.js';
import { allowMethods, handleError, unknownPath } from './platform/http/errors.js';
import { type RateLimitDeps, rateLimit } from './platform/http/rate-limit.js';
import {
  assignRequestId,
  type EndedRequest,
  logRequests,
  requireHost,
  requireUtf8,
} from './platform/http/request-log.js';
import { sendJson, toAddress } from './platform/http/responses.js';
import { createLoginRouter, createRouter } from './platform/http/route.js';
import { WEBHOOK_ROUTES, type WebhookDeps } from './webhooks/routes.js';

export interface AppDeps
  extends AuthDeps,
    ExportDeps,
    Omit<PacketDeps, 'findExport'>,
    CommandDeps,
    EntityDeps,
    EventDeps,
    RateLimitDeps,
    ConsoleDeps,
    WebhookDeps {
  readonly audit: Audit;
  readonly log: Logger;
  /** Receives one line for each request. */
  readonly requestLog: Logger;
  /** Called when a request has ended. */
  readonly requestEnded: (request: EndedRequest) => void;
  readonly trustProxy: number | string[];
  readonly corsOrigins: readonly string[];
  /** The path of another site that the service is served below: `/vigil`, or empty. */
  readonly basePath: string;
}

export function createApp(deps: AppDeps): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('trust proxy', deps.trustProxy).set('query parser', 'simple');
  Object.assign(app.locals, { answerBudget: deps.answerBudget, basePath: deps.basePath });

  app.use(
    assignRequestId(),
    logRequests(deps.requestLog, deps.requestEnded),
    auditRequests(deps.audit),
    requireHost,
    requireUtf8,
    setSecurityHeaders(),
    allowOrigins(deps.corsOrigins),
  );
  const { pages, unknownPages } = createConsole(deps);
  app.use(pages);
  app.route(['/', '/api/v1']).get(sendGreeting).all(allowMethods('GET'));
  app.use(createDocumentRouter(deps.basePath));

  const routes = [
    ...AUTH_ROUTES,
    ...ACCOUNT_ROUTES,
    ...EVENT_ROUTES,
    ...PAST_EVENT_ROUTES,
    ...SERIES_ROUTES,
    ...PACKET_ROUTES,
    ...TRACK_ROUTES,
    ...COMMAND_ROUTES,
    ...WEBHOOK_ROUTES,
    ...PERMISSION_ROUTES,
  ];
  const routeDeps = { ...deps, findExport: createExports(deps) };
  app.use(createLoginRouter(routes, routeDeps));
  app.use(['/api/v1', '/objects'], authenticate(deps.identify, deps.corsOrigins), rateLimit(deps));
  app.use(createRouter(routes, routeDeps));
  // Every role may use these paths, so none of them leads to a store of that name.
  app.use('/api/v1/account', unknownPath);
  app.use('/api/v1/:store', findStoreOf(deps));
  app.use(createRouter(STORE_ROUTES, deps));

  app.use(unknownPages, unknownPath, handleError(deps.log));
  return app;
}

/** Headers for obsolete browsers and plug-ins; each header costs time and bytes in every response. */
const OMITTED_HEADERS = {
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
} as const;
/** A page of a service at a plain HTTP address must not be loaded over TLS. */
const POLICY = { directives: { upgradeInsecureRequests: null } };

/** Sets helmet's headers. They are the same for every response with the same scheme, so helmet computes them once. */
function setSecurityHeaders(): RequestHandler {
  const secure = new Map<string, string>();
  const recorder = { setHeader: (name: string, value: string) => secure.set(name, value), removeHeader() {} };
  const set = helmet({ ...OMITTED_HEADERS, contentSecurityPolicy: POLICY });
  set({} as Request, recorder as unknown as Response, () => undefined);
  const plain = new Map(secure);
  plain.delete('Strict-Transport-Security');
  return (req, res, next) => {
    for (const [name, value] of req.secure ? secure : plain) res.setHeader(name, value);
    next();
  };
}

const sendGreeting: RequestHandler = (req, res) => {
  sendJson(res, JSON.stringify({ success: true, name: 'Vigil', version: 1, api: toAddress(req, '/api/v1') }));
};

/** Pages of the listed origins may send their user's cookie. Pages of other foreign origins cannot read responses. */
function allowOrigins(origins: readonly string[]): RequestHandler {
  const handler = cors({
    origin: [...origins],
    credentials: true,
    exposedHeaders: ['Link', 'Location', 'Retry-After', 'X-Request-Id'],
    maxAge: 600,
  });
  return origins.length === 0 ? (_req, _res, next) => next() : handler;
}
