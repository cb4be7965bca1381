/** Changes or removes the entities that a list would contain: each by itself, with its own permission, checks and events. */

import type { Request, RequestHandler, Response } from 'express';
import { mayCall, mayCallObject, scopeOf } from '../core/access.js';
import { parsePatch } from '../core/entity.js';
import { badRequest, errorBody, forbidden, toApiError, unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { isSelective, type Page } from '../core/list.js';
import type { Store } from '../core/stores.js';
import { clock } from '../platform/clock.js';
import { callerOf } from '../platform/http/caller.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { FILTER_QUERY, PAGE_QUERY, parseListQuery } from '../platform/http/list-params.js';
import { DRY_RUN_QUERY } from '../platform/http/parameters.js';
import { parseDryRun } from '../platform/http/query-params.js';
import { consumeForMs } from '../platform/http/rate-limit.js';
import { sendJson } from '../platform/http/responses.js';
import type { Part } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { isByState, listByState } from './by-state.js';
import {
  changeOne,
  checkChange,
  checkRemoval,
  type RecordedChange,
  removeOne,
  type WriteDeps,
  type Writer,
} from './entity-writes.js';
import { listEntities } from './read.js';

export interface BulkDeps extends WriteDeps, ListDeps {
  /** Records a change as a security event. */
  readonly recordChange: (req: Request, res: Response, change: RecordedChange) => void;
}

const TEXT: Part = { type: 'string' };

/** What was done. */
export const BULK_RESULT: Part = {
  type: 'object',
  properties: {
    success: { const: true },
    count: { type: 'integer', minimum: 0, description: 'How many entities were selected' },
    done: { type: 'integer', minimum: 0, description: 'How many of these were changed or removed; 0 with `dryRun`' },
    more: { type: 'boolean', description: 'Whether further entities match, beyond the limit' },
    last: { anyOf: [TEXT, { type: 'null' }], description: 'The `_id` of the last one, for `after`' },
    failed: {
      type: 'array',
      items: { type: 'object', properties: { _id: TEXT, code: TEXT }, required: ['_id', 'code'] },
    },
  },
  required: ['success', 'count', 'done', 'more', 'last', 'failed'],
  additionalProperties: false,
};

/** The parameters of bulk requests. */
export const BULK_QUERY = { ...FILTER_QUERY, ...PAGE_QUERY, ...DRY_RUN_QUERY };

const isKnown = (name: string): boolean => Object.hasOwn(BULK_QUERY, name) || /^where[._]./.test(name);

/** What a bulk request does with each entity. */
export interface BulkWork {
  readonly writer: Writer;
  /** Whether the credentials permit it for the entity. */
  readonly permits: (named: Named) => boolean;
  /** For a dry run: throws why it would be refused. */
  readonly check: (id: string) => Promise<unknown>;
  readonly write: (id: string) => Promise<unknown>;
}

export const changeMany =
  (deps: BulkDeps): RequestHandler =>
  async (req, res) => {
    const writer = writerOf(res);
    const given = parsePatch(writer.store, req.body ?? {});
    if (Object.keys(given).length === 0) throw badRequest('the body: expected at least one field to change');
    await handleMany(deps, req, res, {
      writer,
      permits: permitsSame(req, writer),
      check: (id) => checkChange(deps, writer, id, given),
      write: (id) => changeOne(deps, writer, id, given, (change) => deps.recordChange(req, res, change)),
    });
  };

export const removeMany =
  (deps: BulkDeps): RequestHandler =>
  async (req, res) => {
    const writer = writerOf(res);
    await handleMany(deps, req, res, {
      writer,
      permits: permitsSame(req, writer),
      check: (id) => checkRemoval(deps, writer, id),
      write: (id) => removeOne(deps, writer, id, () => null),
    });
  };

/** Whether the credentials permit the method of the request for each entity by itself. */
function permitsSame({ method, params }: Request, { caller }: Writer): BulkWork['permits'] {
  // As its users name it: a store of an administrator's own has another name inside.
  const store = String(params.store).toLowerCase();
  return ({ _id, id = null }) =>
    store === 'objects'
      ? mayCallObject(caller, { objectId: _id, ownId: id }, method, [])
      : mayCall(caller, method, [store, _id]);
}

const writerOf = (res: Response): Writer => ({ store: res.locals.store as Store, caller: callerOf(res) });

/** The list that is meant. A filter that is missing or misspelled must not mean everything. */
function parseSelection({ query }: Request): Page {
  const unknown = Object.keys(query).find((name) => !isKnown(name));
  if (unknown !== undefined)
    throw badRequest(`${JSON.stringify(unknown.slice(0, 64))}: not a parameter of bulk requests`);
  const page = parseListQuery(query) as Page;
  if (!isSelective(page)) throw badRequest('where, search, from or to: at least one filter is required');
  return { ...page, limit: Math.min(page.limit, LIMITS.bulkEntities), only: ['id'] };
}

/** An entity that is meant; objects also have an own id, by which credentials may name them. */
export interface Named {
  readonly _id: string;
  readonly id?: string;
}

async function findNamed(database: Database, { store, caller }: Writer, page: Page): Promise<Named[]> {
  const scope = scopeOf(caller);
  // What is read only because of objects is not meant: it cannot be changed.
  const reading = isByState(store, page)
    ? listByState(database, scope, page)
    : listEntities(database, { ...store, throughObjects: null }, scope, page);
  const listed = await reading;
  const found = JSON.parse(listed.body.toString()) as Named[];
  listed.release?.();
  return found;
}

/** Does the work for each entity that the query selects, or only checks it. */
export async function handleMany(
  deps: BulkDeps,
  req: Request,
  res: Response,
  { writer, permits, check, write }: BulkWork,
): Promise<void> {
  const page = parseSelection(req);
  const isDryRun = parseDryRun(req.query);
  const { caller } = writer;
  const database = listDatabaseFor(deps, req, res);
  const leaving = database.listing?.caller.disconnectSignal() ?? null;
  const work = async (): Promise<void> => {
    const startMs = clock.steadyMs();
    const found = await findNamed(database, writer, { ...page, limit: page.limit + 1 });
    const named = new Map(found.slice(0, page.limit).map((one) => [one._id, one]));
    const ids = [...named.keys()];
    const summary = { count: ids.length, more: found.length > ids.length, last: ids.at(-1) ?? null };
    const isPermitted = (_id: string): boolean => permits(named.get(_id) ?? { _id });
    const failed = await writeAll(ids, isPermitted, isDryRun ? check : write, leaving);
    consumeForMs(res, clock.steadyMs() - startMs);
    sendJson(
      res,
      JSON.stringify({ success: true, ...summary, done: isDryRun ? 0 : ids.length - failed.length, failed }),
    );
  };
  await deps.listQueues.bulk.run(caller, work, leaving);
}

/**
 * Writes the entities, several at a time. Returns those that could not be written, with reasons. Throws as soon as the database is
 * unavailable, or a fault of ours is found: then nothing more is begun, and a 503 says how many are done.
 */
export async function writeAll(
  ids: readonly string[],
  permitted: (id: string) => boolean,
  write: (id: string) => Promise<unknown>,
  leaving: AbortSignal | null,
): Promise<object[]> {
  const failed: object[] = [];
  let next = 0;
  let done = 0;
  let isBroken = false;
  const run = async (): Promise<void> => {
    for (let id = ids[next++]; id !== undefined && !isBroken; id = ids[next++]) {
      leaving?.throwIfAborted();
      try {
        if (!permitted(id)) throw forbidden();
        await write(id);
        done++;
      } catch (thrown) {
        const error = toApiError(thrown);
        if (error.status === 500 || error.status === 503) {
          isBroken = true;
          throw thrown;
        }
        failed.push({ _id: id, ...errorBody(error) });
      }
    }
  };
  const runs = await Promise.allSettled(Array.from({ length: LIMITS.bulkWritesAtOnce }, run));
  const broken = runs.find((one) => one.status === 'rejected');
  if (broken === undefined) return failed;
  const error = toApiError(broken.reason);
  if (error.status !== 503) throw broken.reason;
  throw unavailable(`${done} of ${ids.length} are done: ${error.message}`, error.cause);
}
