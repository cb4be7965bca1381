/** Holds every answer of the test suite to the interface's document: its status, its type, its body. */
import type { Ajv, ValidateFunction } from 'ajv';
import { STORES } from '../../src/core/stores.js';

export interface Seen {
  readonly method: string;
  /** As it was asked for: with or without api/v1, with its query. */
  readonly path: string;
  readonly status: number;
  readonly type: string | undefined;
  readonly body: unknown;
}

interface Operation {
  readonly responses: Readonly<Record<string, { $ref?: string; content?: Record<string, { schema: object }> }>>;
}

interface Path {
  readonly pattern: RegExp;
  readonly pointer: string;
  readonly operations: Readonly<Record<string, Operation>>;
}

/** What a path, or a method of it, may be answered with that the document does not have. */
const ELSEWHERE: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 500, 503]);

// A built-in store has operations of its own.
const ADDED = `(?!(?:${[...STORES.keys()].join('|')})(?:/|$))[^/]+`;

interface Compiled {
  readonly openApi: { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };
  readonly ajv: Ajv;
  readonly parse: typeof JSON.parse;
}

/** The document, and its schemas, which ajv compiles as they are needed (environment.mjs). */
const { openApi, ajv, parse } = (globalThis as unknown as { compiled: Compiled }).compiled;

const PATHS: readonly Path[] = Object.entries(openApi.paths)
  .map(([path, operations]) => ({
    pattern: new RegExp(
      `^${path
        .replace(/[.]/g, '\\.')
        .replace('{store}', ADDED)
        .replace(/\{\w+\}/g, '[^/]+')}/?$`,
      'i',
    ),
    pointer: `#/paths/${path.replaceAll('/', '~1').replace(/[{}]/g, encodeURIComponent)}`,
    operations,
  }))
  .sort((a, b) => weightOf(a.pattern) - weightOf(b.pattern));

// Among paths that fit, the one with the fewest parameters is meant.
function weightOf({ source }: RegExp): number {
  return source.split('[^').length;
}

/** Throws where the answer is not what the document says. */
export function checkAgreement(seen: Seen): void {
  const method = seen.method.toLowerCase();
  // What browsers ask before a call, and what the page of the document is made of, are no part of the interface.
  if (method === 'options' || /^\/docs\/./.test(seen.path)) return;
  const asked = toPath(seen.path);
  const path = PATHS.find(({ pattern }) => pattern.test(asked));
  const operation = path?.operations[method === 'head' ? 'get' : method];
  if (path === undefined || operation === undefined) {
    if (ELSEWHERE.has(seen.status)) return;
    throw disagreement(seen, 'the document has no such operation');
  }
  const response = operation.responses[seen.status];
  if (response === undefined) throw disagreement(seen, 'the document has no such status');
  if (method === 'head' || (response.$ref === undefined && response.content === undefined)) return;
  checkBody(seen, response.$ref ?? `${path.pointer}/${method}/responses/${seen.status}`);
}

/** Decoded as the router does, segment by segment. */
function toPath(asked: string): string {
  const { pathname } = new URL(asked.startsWith('/') ? asked : `/api/v1/${asked}`, 'http://service');
  return pathname.replace(/[^/]+/g, (segment) => {
    try {
      return decodeURIComponent(segment).replaceAll('/', '%2f');
    } catch {
      return segment;
    }
  });
}

function checkBody(seen: Seen, pointer: string): void {
  const type = seen.type?.split(';')[0] ?? 'none';
  const key = `${pointer}/content/${type.replaceAll('/', '~1')}/schema`;
  const validate: ValidateFunction | undefined = ajv.getSchema(`document${key}`);
  if (validate === undefined) throw disagreement(seen, `the document has no ${type} there`);
  if (type === 'application/json' && !validate(parse(JSON.stringify(seen.body)))) {
    const faults = (validate.errors ?? []).map(({ instancePath, message, params }) =>
      [instancePath || 'the body', message, JSON.stringify(params)].join(' '),
    );
    throw disagreement(seen, faults.join('; '));
  }
}

function disagreement({ method, path, status, body }: Seen, why: string): Error {
  return new Error(`${method} ${path} ${status}: ${why}\n${JSON.stringify(body)?.slice(0, 500)}`);
}
