/** The fast path runs the handlers of an app as Express does: random apps, requested with a path that takes it and one that does not. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import express, { type ErrorRequestHandler, type Express, type RequestHandler, Router } from 'express';
import { createExpressClasses } from '../../../src/platform/http/server/express-classes.js';
import { createFastPath } from '../../../src/platform/http/server/fast-path.js';
import { fc, runsOf } from '../../support/runs.js';

const ENDS = ['next', 'next', 'next', 'route', 'router', 'error', 'throw', 'reject', 'answer'] as const;
type End = (typeof ENDS)[number];

/** One thing that is mounted on a router. */
type Part =
  | { readonly kind: 'handler'; readonly end: End }
  | { readonly kind: 'route'; readonly ends: readonly End[]; readonly method: 'get' | 'post' | 'all' }
  | { readonly kind: 'router'; readonly parts: readonly Part[] };

const end = fc.constantFrom(...ENDS);
const { part } = fc.letrec<{ part: Part }>((tie) => ({
  part: fc.oneof(
    { maxDepth: 2 },
    fc.record({ kind: fc.constant('handler' as const), end }),
    fc.record({
      kind: fc.constant('route' as const),
      ends: fc.array(end, { minLength: 1, maxLength: 3 }),
      method: fc.constantFrom('get' as const, 'get' as const, 'post' as const, 'all' as const),
    }),
    fc.record({ kind: fc.constant('router' as const), parts: fc.array(tie('part'), { maxLength: 4 }) }),
  ),
}));

let server: Server | undefined;
afterEach(() => void server?.close());

/** Builds an app in which every handler notes its number and what it sees of the route. */
function createTestApp(parts: readonly Part[]): Express {
  let count = 0;
  const toHandler = (ending: End): RequestHandler => {
    const number = count++;
    return (req, res, next) => {
      res.locals.seen ??= [];
      const { seen } = res.locals;
      seen.push([number, req.params, req.baseUrl, req.url.replace(/\/$/, '')]);
      if (ending === 'answer') res.json(seen);
      else if (ending === 'error') next(new Error(`error ${number}`));
      else if (ending === 'throw') throw new Error(`thrown ${number}`);
      else if (ending === 'reject') return Promise.reject(new Error(`rejected ${number}`));
      else if (ending === 'next') next();
      else next(ending);
      return undefined;
    };
  };
  const mount = (router: Router, path: string, wanted: readonly Part[]): void => {
    for (const one of wanted) {
      if (one.kind === 'handler') router.use(toHandler(one.end));
      else if (one.kind === 'route') router[one.method](path, ...one.ends.map(toHandler));
      else {
        const inner = Router();
        mount(inner, '/:id', one.parts);
        router.use(path.replace('/:id', '') || '/', inner);
      }
    }
  };
  const app = express();
  mount(app as unknown as Router, '/api/v1/objects/:id', parts);
  app.use((_req, res) => void res.status(404).json(res.locals.seen ?? []));
  const handleError: ErrorRequestHandler = (error, _req, res, _next) =>
    void res.status(error.status ?? 500).json([error.message, res.locals.seen]);
  return app.use(handleError);
}

async function ask(app: Express): Promise<[fast: unknown, slow: unknown]> {
  const classes = createExpressClasses();
  classes.follow(app);
  server = createServer(classes, createFastPath(app)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  // A slash at the end is the same to Express, and avoids the fast path.
  const [fast, slow] = await Promise.all(
    ['truck', 'truck/'].map(async (path) => {
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/objects/${path}`, {
        headers: { connection: 'close' },
      });
      const text = await response.text();
      return [response.status, text.startsWith('<') ? 'the answer of Express itself' : JSON.parse(text)];
    }),
  );
  server.close();
  return [fast, slow];
}

test('runs the same handlers with the same context as Express', async () => {
  const property = fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 5 }), async (parts) => {
    const [fast, slow] = await ask(createTestApp(parts));
    // Outside of all routers, Express answers without the app's error handler.
    if (!JSON.stringify(slow).includes('Express itself')) expect(fast).toEqual(slow);
    else expect(fast).toEqual([404, expect.anything()]);
  });
  await fc.assert(property, { numRuns: runsOf(600) });
});

test.each<[signal: 'route' | 'router', handlers: number[]]>([
  ['route', [0, 1, 3, 4]],
  ['router', [0, 1, 4]],
])("continues after next('%s') behind the skipped handlers", async (signal, handlers) => {
  const app = createTestApp([
    { kind: 'handler', end: 'next' },
    {
      kind: 'router',
      parts: [
        { kind: 'route', ends: [signal, 'answer'], method: 'get' },
        { kind: 'handler', end: 'next' },
      ],
    },
    { kind: 'route', ends: ['answer'], method: 'get' },
  ]);
  const [fast, slow] = await ask(app);
  expect((fast as [number, [number][]])[1].map(([number]) => number)).toEqual(handlers);
  expect(fast).toEqual(slow);
});
