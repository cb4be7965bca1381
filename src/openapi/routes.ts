/** Routes: the OpenAPI and AsyncAPI documents, and a page to read and try the interface. */
import { type RequestHandler, type Response, Router } from 'express';
import swaggerUi from 'swagger-ui-express';
import { allowMethods } from '../platform/http/errors.js';
import { sendJson } from '../platform/http/responses.js';
import { createAsyncApi } from './asyncapi.js';
import { createOpenApi } from './openapi.js';

/** The documents contain no stored data, so they need no login. */
export function createDocumentRouter(basePath: string): Router {
  const router = Router();
  router
    .route('/api/v1/openapi.json')
    .get(sendDocument(() => createOpenApi(basePath)))
    .all(allowMethods('GET'));
  router
    .route('/api/v1/asyncapi.json')
    .get(sendDocument(() => createAsyncApi(basePath)))
    .all(allowMethods('GET'));
  router.route('/docs').get(browse).all(allowMethods('GET'));
  router.use('/docs', protect, allowPageFiles, swaggerUi.serveFiles(undefined, PAGE));
  return router;
}

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

const browse: RequestHandler = (req, res) => {
  // The page has relative links, so its URL must end with a slash.
  if (!/\/(?:\?|$)/.test(req.originalUrl)) res.redirect(308, 'docs/');
  else sendPage(res, swaggerUi.generateHTML(undefined, PAGE));
};

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
