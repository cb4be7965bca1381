/**
 * The short way of the requests that come most often: the app's own handlers for them, one after the other, without
 * looking for them in its routers each time. Whatever is not spelled plainly goes the app's way; the answers are the same.
 */
import type { RequestListener } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { ErrorRequestHandler, Express, Request, RequestHandler, Response } from 'express';

/** What Express' routers tell of themselves. */
interface Layer {
  readonly handle: (RequestHandler | ErrorRequestHandler) & { readonly stack?: readonly Layer[] };
  readonly route?: Route;
  match(path: string): false | { readonly path: string; readonly params: Record<string, string> };
}
type Route = Request['route'] & {
  readonly stack: readonly { readonly method?: string; readonly handle: RequestHandler }[];
  _handlesMethod(method: string): boolean;
};

/** A handler, and what it finds in the request. */
interface Step {
  readonly handle: RequestHandler;
  readonly route: Route | undefined;
  /** The part of the path that its router is mounted at. */
  readonly base: string;
  readonly params: Record<string, string>;
  /** The name under which `params` holds what the path names. */
  readonly idName: string | undefined;
  /** Whether the step before finds the same. */
  inPlace: boolean;
}

interface Way {
  readonly steps: Step[];
  readonly failure: ErrorRequestHandler[];
}

const OFTEN = [
  ...['GET /api/v1/objects', 'POST /api/v1/objects', 'GET /api/v1/objects/:id', 'PATCH /api/v1/objects/:id'],
  ...['GET /api/v1/objects/:id/packets', 'POST /api/v1/objects/:id/packets'],
];
// No character that could be encoded, no slash too many, no other case.
const PLAIN = /^\/api\/v1\/objects(?:\/([\w-]+)(\/packets)?)?(?=\?|$)/;
const ID = ':id';

export function createShortWay(app: Express): RequestListener {
  const ways = new Map(OFTEN.map((often) => [often, findWay(app, often)]));
  return (incoming, outgoing) => {
    const [path, id, packets = ''] = PLAIN.exec(incoming.url ?? '') ?? [];
    const way = ways.get(`${incoming.method} /api/v1/objects${id === undefined ? '' : `/:id${packets}`}`);
    if (path === undefined || way === undefined) {
      app(incoming, outgoing);
      return;
    }
    const [req, res] = [incoming as Request, outgoing as Response];
    dress(req, res);
    take(way, req, res, id ?? '');
  };
}

function findWay({ router }: Express, often: string): Way {
  const [method = '', path = ''] = often.split(' ');
  const way: Way = { steps: [], failure: [] };
  collect(way, (router as unknown as { stack: Layer[] }).stack, { method, path, base: '' });
  for (const [at, step] of way.steps.entries()) step.inPlace = isSamePlace(step, way.steps[at - 1]);
  return way;
}

const isSamePlace = ({ route, base, params }: Step, before: Step | undefined): boolean =>
  before?.route === route && before?.base === base && isDeepStrictEqual(before.params, params);

function collect(way: Way, stack: readonly Layer[], at: { method: string; path: string; base: string }): void {
  for (const { layer, match } of stack.map((layer) => ({ layer, match: layer.match(at.path) }))) {
    if (match === false) continue;
    const { handle, route } = layer;
    const { params, path } = match;
    const found = { params, idName: Object.keys(params).find((name) => params[name] === ID), inPlace: false };
    const base = at.base + path;
    if (route !== undefined) {
      for (const one of route._handlesMethod(at.method) ? route.stack : []) {
        if (one.method !== undefined && one.method !== at.method.toLowerCase()) continue;
        way.steps.push({ ...found, handle: one.handle, route, base: at.base });
      }
    } else if (handle.stack !== undefined)
      collect(way, handle.stack, { ...at, path: at.path.slice(path.length), base });
    else if (handle.length === 4) way.failure.push(handle as ErrorRequestHandler);
    else way.steps.push({ ...found, handle: handle as RequestHandler, route, base });
  }
}

/** The request and the response as Express gives them to handlers; they are of its kind already. */
function dress(req: Request, res: Response): void {
  // One by one: what Object.assign adds makes such an object slow in all that follows.
  req.res = res;
  req.originalUrl = req.url;
  req.baseUrl = '';
  res.locals = Object.create(null);
}

function take({ steps, failure }: Way, req: Request, res: Response, id: string): void {
  const fail = (error: unknown): void => {
    try {
      failure[0]?.(error, req, res, () => undefined);
    } catch {
      res.destroy();
    }
  };
  let at = 0;
  const next = (error?: unknown): void => {
    const step = steps[at++];
    if (error || step === undefined) {
      fail(error);
      return;
    }
    if (!step.inPlace) place(req, step, id);
    try {
      const done: unknown = step.handle(req, res, next);
      if (done instanceof Promise) done.catch(fail);
    } catch (thrown) {
      fail(thrown);
    }
  };
  next();
}

function place(req: Request, { base, params, idName, route }: Step, id: string): void {
  if (req.baseUrl !== base) {
    const rest = req.originalUrl.slice(base.length);
    req.baseUrl = base;
    req.url = rest.startsWith('/') ? rest : `/${rest}`;
  }
  req.params = idName === undefined ? params : { ...params, [idName]: id };
  if (route !== undefined) req.route = route;
}
