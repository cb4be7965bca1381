/** The Express app: the middleware of every request, and the routers in order. */

import cors from 'cors';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import helmet from 'helmet';
import type { Logger } from 'pino';
import type { AccountDeps } from './accounts/account-routes.js';
import type { Audit } from './accounts/audit.js';
import { authenticate } from './accounts/authenticate.js';
import { auditRequests } from './accounts/request-audit.js';
import type { AlarmDeps } from './alarms/routes.js';
import type { CommandDeps } from './commands/routes.js';
import type { SourceDeps } from './devices/sources/routes.js';
import { type EntityDeps, findStoreOf, STORE_ROUTES } from './entities/routes.js';
import type { GeocoderRouteDeps } from './geocoder/routes.js';
import { createExports, type ExportDeps } from './history/export-routes.js';
import type { LinkDeps } from './links/routes.js';
import type { ViewDeps } from './links/view-routes.js';
import type { EventDeps } from './live/routes.js';
import type { NoteDeps } from './notes/routes.js';
import type { NotificationDeps } from './notifications/routes.js';
import { FEATURE_ROUTES, ROUTES } from './openapi/all-routes.js';
import { createOpenApi } from './openapi/openapi.js';
import { createPageFiles, SERVICE_ROUTES } from './openapi/routes.js';
import type { PacketDeps } from './packets/routes.js';
import { type ConsoleDeps, createConsole } from './pages/console.js';
import { handleError, refuseReadings, unknownPath } from './platform/http/errors.js';
import { type RateLimitDeps, rateLimit } from './platform/http/rate-limit.js';
import {
  assignRequestId,
  type EndedRequest,
  logRequests,
  requireHost,
  requireUtf8,
} from './platform/http/request-log.js';
import { createLoginRouter, createRouter } from './platform/http/route.js';
import { createLimitFinder } from './platform/http/route-limits.js';
import type { ScheduleDeps } from './reports/schedule-routes.js';
import type { ReportDeps } from './reports/send.js';
import type { SettingsDeps } from './settings/routes.js';
import type { WebhookDeps } from './webhooks/routes.js';

export interface AppDeps
  extends AccountDeps,
    ExportDeps,
    Omit<PacketDeps, 'findExport'>,
    CommandDeps,
    EntityDeps,
    EventDeps,
    RateLimitDeps,
    Omit<ConsoleDeps, 'settings' | 'geocoder'>,
    SourceDeps,
    WebhookDeps,
    AlarmDeps,
    SettingsDeps,
    LinkDeps,
    NoteDeps,
    GeocoderRouteDeps,
    ReportDeps,
    ScheduleDeps,
    ViewDeps,
    NotificationDeps {
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
  // Before the pages: some HTTP clients of devices ask for HTML by default.
  app.use(refuseReadingsOfStart);
  const { pages, unknownPages } = createConsole(deps);
  app.use(pages);
  const routeDeps = { ...deps, findExport: createExports(deps), createOpenApi };
  app.use(createRouter(SERVICE_ROUTES, routeDeps));
  app.use('/docs', createPageFiles());

  app.use(createLoginRouter(FEATURE_ROUTES, routeDeps));
  app.use(
    ['/api/v1', '/objects'],
    authenticate(deps.identify, deps.corsOrigins),
    rateLimit(deps, createLimitFinder(ROUTES)),
  );
  app.use(createRouter(FEATURE_ROUTES, routeDeps));
  // Every role may use these paths, so none of them leads to a store of that name.
  app.use('/api/v1/account', unknownPath);
  app.use('/api/v1/:store', findStoreOf(deps));
  app.use(createRouter(STORE_ROUTES, routeDeps));

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

const refuseReadingsOfStart: RequestHandler = (req, _res, next) => {
  if (/^\/(api\/v1\/?)?$/.test(req.path)) refuseReadings(req);
  next();
};

/** Pages of the listed origins may send their user's cookie. Pages of other foreign origins cannot read responses. */
function allowOrigins(origins: readonly string[]): RequestHandler {
  const handler = cors({
    origin: [...origins],
    credentials: true,
    exposedHeaders: ['Link', 'Location', 'Retry-After', 'X-Interval', 'X-Request-Id'],
    maxAge: 600,
  });
  return origins.length === 0 ? (_req, _res, next) => next() : handler;
}
