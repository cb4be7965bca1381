/**
 * Routes. Each is declared once, in its feature: the router, the OpenAPI document with the types of the client, and the table of
 * docs/reference/http-api.md come from the declaration.
 */
import { type RequestHandler, type Response, Router } from 'express';
import type { ErrorStatus } from '../../core/errors.js';
import { type BodyDeps, jsonBody, readLogin } from './body.js';
import { allowMethods } from './errors.js';
import { rawBody } from './raw-body.js';
import type { Schema } from './schema.js';

/** A parameter of a path or a query. */
export interface Parameter {
  readonly schema: Schema;
  readonly example: unknown;
  readonly description: string;
  readonly isRequired?: boolean;
  /** Its name in the OpenAPI document, where other parameters are called the same. */
  readonly component?: string;
}

/** What a route reads. The handler checks it: a schema says what it accepts. */
export interface RouteBody {
  readonly schema: Schema;
  readonly limitBytes: number;
  readonly example: unknown;
  readonly isRequired?: boolean;
  /** Whether it may also be a form, as of a login. */
  readonly isForm?: boolean;
  /** For a body of any type, which the handler gets as bytes: whose bytes they are. */
  readonly raw?: (res: Response) => string;
}

export type ResponseHeader = 'Set-Cookie' | 'Link' | 'Location' | 'Content-Disposition' | 'Trailer' | 'X-Interval';

/** A successful answer, always with status 200. */
export interface RouteAnswer {
  readonly description: string;
  /** Of JSON. */
  readonly schema?: Schema;
  /** Schemas by media type, of answers that are not only JSON. */
  readonly content?: Readonly<Record<string, Schema>>;
  readonly headers?: readonly ResponseHeader[];
}

/**
 * A route, for a feature with these dependencies. Errors that follow from `auth` and `body`, and 400, 500 and 503, are not listed
 * again.
 */
export interface Route<in Deps> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** As callers write it, with `:name` for each parameter. */
  readonly path: string;
  /** The name of the operation in generated clients. */
  readonly name: string;
  readonly tag: string;
  readonly summary: string;
  /** What docs/reference/http-api.md says, in Markdown; otherwise the summary. */
  readonly docs?: string;
  /** Whom it answers: everyone, every caller, or callers whose credentials contain its method and path. */
  readonly auth: 'none' | 'caller' | 'permission';
  /**
   * What it costs (rate-limit.ts). `request`: at most one entity, packet or command, or work with limits of its own. `list`: any number
   * of rows, so that its database time and its bytes are charged, and an overloaded service refuses it. `interval`: a list if the
   * query has an interval. Bytes of bodies are charged everywhere.
   */
  readonly limit: 'request' | 'list' | 'interval';
  readonly params?: Readonly<Record<string, Parameter>>;
  readonly query?: Readonly<Record<string, Parameter>>;
  readonly body?: RouteBody;
  readonly answer: RouteAnswer;
  readonly errors?: readonly ErrorStatus[];
  /** When it redirects (308), if it does. */
  readonly moved?: string;
  /** Runs before the body is read. */
  readonly before?: (deps: Deps) => RequestHandler;
  readonly handle: (deps: Deps) => RequestHandler;
}

/** The names of the parameters of a path. */
type NamesIn<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesIn<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

type Declared<Path extends string> = { readonly path: Path } & ([NamesIn<Path>] extends [never]
  ? unknown
  : { readonly params: Readonly<Record<NamesIn<Path>, Parameter>> });

/** Declares a route. Each parameter of its path must be among `params`. */
export function defineRoute<Deps, const Path extends string>(route: Route<Deps> & Declared<Path>): Route<Deps> {
  return route;
}

const METHODS = { GET: 'get', POST: 'post', PATCH: 'patch', DELETE: 'delete' } as const;

/** In the order in which `Allow` lists them. */
const ALLOWED = ['GET', 'POST', 'PATCH', 'DELETE'] as const;

/** Answers the routes; another method at one of their paths is a 405. */
export function createRouter<Deps extends BodyDeps>(routes: readonly Route<Deps>[], deps: Deps): Router {
  const router = Router();
  for (const path of new Set(routes.map((route) => route.path))) {
    const known = routes.filter((route) => route.path === path).map(({ method }) => method);
    addRoutes(router, path, routes, deps).all(allowMethods(...ALLOWED.filter((method) => known.includes(method))));
  }
  return router;
}

/** Answers the routes without authentication; requests with other methods at their paths go on to the next router. */
export function createLoginRouter<Deps extends BodyDeps>(routes: readonly Route<Deps>[], deps: Deps): Router {
  const router = Router();
  const open = routes.filter(({ auth }) => auth === 'none');
  for (const path of new Set(open.map((route) => route.path))) addRoutes(router, path, open, deps);
  return router;
}

function addRoutes<Deps extends BodyDeps>(router: Router, path: string, routes: readonly Route<Deps>[], deps: Deps) {
  const atPath = router.route(path);
  for (const route of routes.filter((one) => one.path === path)) {
    atPath[METHODS[route.method]](...(route.before ? [route.before(deps)] : []), ...handlersOf(route, deps));
  }
  return atPath;
}

function handlersOf<Deps extends BodyDeps>({ body, handle }: Route<Deps>, deps: Deps): RequestHandler[] {
  const handler = handle(deps);
  if (body === undefined) return [handler];
  if (body.raw !== undefined) return [rawBody(body.limitBytes, deps, body.raw, handler)];
  return body.isForm ? [...readLogin(), handler] : jsonBody(body.limitBytes, deps, handler);
}
