/** Routes: what the service is, the OpenAPI and AsyncAPI documents, and a page to read and try the interface. */
import { type RequestHandler, type Response, Router } from 'express';
import swaggerUi from 'swagger-ui-express';
import { z } from 'zod';
import { sendJson, toAddress } from '../platform/http/responses.js';
import { defineRoute, type Route } from '../platform/http/route.js';
import { ANY_OBJECT, every, SUCCESS } from '../platform/http/schema.js';
import { createAsyncApi } from './asyncapi.js';

export interface DocumentDeps {
  /** The path of another site that the service is served below, or empty. */
  readonly basePath: string;
  readonly createOpenApi: (basePath: string) => object;
}

/** What a server is. */
const GREETING = every(
  SUCCESS,
  z.object({ name: z.literal('Vigil'), version: z.literal(1), api: z.string().describe('The path of the API') }),
).meta({ id: 'Greeting' });

const greet = defineRoute({
  method: 'GET',
  path: '/',
  name: 'greet',
  tag: 'service',
  summary: 'Identifies the server as Vigil',
  docs: 'Identifies the server as Vigil; needs no login. Browsers receive the [console](console.md), at this and at every other address of it',
  auth: 'none',
  limit: 'request',
  answer: { description: 'The server is Vigil', schema: GREETING },
  handle: () => (req, res) => {
    sendJson(res, JSON.stringify({ success: true, name: 'Vigil', version: 1, api: toAddress(req, '/api/v1') }));
  },
});

const greetApi: Route<unknown> = { ...greet, path: '/api/v1', name: 'greetApi', docs: 'The same' };

const getOpenApi = defineRoute({
  method: 'GET',
  path: '/api/v1/openapi.json',
  name: 'openapi',
  tag: 'service',
  summary: 'This document',
  docs: 'The API as an [OpenAPI](#machine-readable-documents) 3.1 document; needs no login',
  auth: 'none',
  limit: 'request',
  answer: { description: 'The document', schema: ANY_OBJECT },
  handle: ({ basePath, createOpenApi }: DocumentDeps) => sendDocument(() => createOpenApi(basePath)),
});

const getAsyncApi = defineRoute({
  method: 'GET',
  path: '/api/v1/asyncapi.json',
  name: 'asyncapi',
  tag: 'service',
  summary: 'The AsyncAPI document of events and MQTT topics',
  docs: 'Events and MQTT topics as an AsyncAPI 3.0 document; needs no login',
  auth: 'none',
  limit: 'request',
  answer: { description: 'The document', schema: ANY_OBJECT },
  handle: ({ basePath }: DocumentDeps) => sendDocument(() => createAsyncApi(basePath)),
});

const browse = defineRoute({
  method: 'GET',
  path: '/docs',
  name: 'browse',
  tag: 'service',
  summary: 'Shows this document as a page on which you can try the API',
  docs: 'Shows this API as a page on which you can try it; needs no login',
  auth: 'none',
  limit: 'request',
  answer: { description: 'The page', content: { 'text/html': z.string() } },
  moved: 'Redirects to the same path with a slash at the end',
  handle: () => (req, res) => {
    // The page has relative links, so its URL must end with a slash.
    if (!/\/(?:\?|$)/.test(req.originalUrl)) res.redirect(308, 'docs/');
    else sendPage(res, swaggerUi.generateHTML(undefined, PAGE));
  },
});

/** They contain no stored data, so they need no login. */
export const SERVICE_ROUTES = [greet, greetApi, getOpenApi, getAsyncApi, browse];

/** Creates the document at the first request. */
function sendDocument(create: () => object): RequestHandler {
  let bytes: Buffer | undefined;
  return (_req, res) => {
    bytes ??= Buffer.from(JSON.stringify(create()));
    res.setHeader('Cache-Control', 'no-cache');
    sendJson(res, bytes);
  };
}

const PAGE = { swaggerUrl: '../api/v1/openapi.json', customSiteTitle: 'Vigil' };

function sendPage(res: Response, html: string): void {
  setPageHeaders(res);
  res.type('html').send(html);
}

const protect: RequestHandler = (_req, res, next) => {
  setPageHeaders(res);
  next();
};

// Only files of this service: no inline or foreign scripts, no requests to other hosts. Unlike helmet's default policy, it does
// not upgrade requests to TLS, since the service may run without TLS.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

function setPageHeaders(res: Response): void {
  res.setHeader('Content-Security-Policy', POLICY);
  res.setHeader('Cache-Control', 'no-cache');
}

/** The files of the page. The package contains others, such as an example page for a different interface. */
const FILES: ReadonlySet<string> = new Set([
  '/swagger-ui.css',
  '/swagger-ui-bundle.js',
  '/swagger-ui-standalone-preset.js',
  '/swagger-ui-init.js',
  '/favicon-16x16.png',
  '/favicon-32x32.png',
]);

const allowPageFiles: RequestHandler = (req, _res, next) => next(FILES.has(req.path) ? undefined : 'router');

/** Answers requests for the files of the page, below `/docs`. */
export function createPageFiles(): Router {
  const router = Router();
  router.use(protect, allowPageFiles, swaggerUi.serveFiles(undefined, PAGE));
  return router;
}
