/** The interface described: as documents for programs, and as a page on which people read and try it. */
import { type RequestHandler, type Response, Router } from 'express';
import swaggerUi from 'swagger-ui-express';
import { createAsyncApi } from '../documents/asyncapi.js';
import { createOpenApi } from '../documents/openapi.js';
import { sendJson } from './answer.js';
import { only } from './failure.js';

/** They tell nobody's data, so they need no login. */
export function createDocumentRouter(): Router {
  const router = Router();
  router.route('/api/v1/openapi.json').get(tell(createOpenApi)).all(only('GET'));
  router.route('/api/v1/asyncapi.json').get(tell(createAsyncApi)).all(only('GET'));
  router.route('/docs').get(browse).all(only('GET'));
  router.use('/docs', protect, refuseStrangers, swaggerUi.serveFiles(undefined, PAGE));
  return router;
}

/** Made when it is first asked for. */
function tell(create: () => object): RequestHandler {
  let bytes: Buffer | undefined;
  return (_req, res) => {
    bytes ??= Buffer.from(JSON.stringify(create()));
    res.setHeader('Cache-Control', 'no-cache');
    sendJson(res, bytes);
  };
}

const PAGE = { swaggerUrl: '../api/v1/openapi.json', customSiteTitle: 'Vigil' };

const browse: RequestHandler = (req, res) => {
  // The page names its parts relative to itself.
  if (!/\/(?:\?|$)/.test(req.originalUrl)) res.redirect(308, 'docs/');
  else sendPage(res, swaggerUi.generateHTML(undefined, PAGE));
};

function sendPage(res: Response, html: string): void {
  guard(res);
  res.type('html').send(html);
}

const protect: RequestHandler = (_req, res, next) => {
  guard(res);
  next();
};

// Everything is the service's own: no script in the page itself, none from elsewhere, nobody else told. Without TLS nothing
// is to be fetched over TLS either.
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

function guard(res: Response): void {
  res.setHeader('Content-Security-Policy', POLICY);
  res.setHeader('Cache-Control', 'no-cache');
}

/** What the page is made of; the package holds more, such as a page about an interface of somebody else's. */
const FILES: ReadonlySet<string> = new Set([
  ...['/swagger-ui.css', '/swagger-ui-bundle.js', '/swagger-ui-standalone-preset.js', '/swagger-ui-init.js'],
  ...['/favicon-16x16.png', '/favicon-32x32.png'],
]);

const refuseStrangers: RequestHandler = (req, _res, next) => next(FILES.has(req.path) ? undefined : 'router');
