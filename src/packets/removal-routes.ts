/** Removes the packets of an interval of an object, in the background. */
import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import { badRequest } from '../core/errors.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { parseDryRun, parseInterval } from '../platform/http/query-params.js';
import { sendJson } from '../platform/http/responses.js';
import { COUNT } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { countInterval, findAhead, type PacketInterval, type Removals, toFields } from './removals.js';
import { getSource } from './source.js';

export interface RemovalDeps extends ListDeps {
  readonly database: Database;
  readonly requestRemoval: Removals['request'];
  /** The stamp of a packet that would arrive now. */
  readonly stampUs: () => number;
}

/** The answer. */
export const REMOVED = z.strictObject({
  success: z.literal(true),
  status: z.literal('queued').optional().describe('The packets will be removed'),
  count: COUNT.optional().describe('With `dryRun`: how many packets would be removed'),
});

/** All others are refused: ignoring one that the caller meant as a restriction would remove more than intended. */
const KNOWN = /^(?:from|to|begin|end|dryRun)$/;

export const removePacketsOf =
  (deps: RemovalDeps): RequestHandler =>
  async (req, res) => {
    const isDryRun = parseDryRun(req.query);
    const { fromMs, toMs } = parseRemovalInterval(req);
    const { objectId } = await getSource(deps.database, scopeIn(res), String(req.params.id));
    // What comes later stays. The clock may have gone back since packets were stored; stamps of this process have not.
    const until = { objectId, fromMs, toMs, stampUs: deps.stampUs() };
    const interval = { ...until, ahead: await findAhead(deps.database, until) };
    if (isDryRun) {
      sendJson(res, JSON.stringify({ success: true, count: await count(deps, req, res, interval) }));
      return;
    }
    const { userId, login } = callerOf(res);
    const path = `/objects/${objectId}/packets`;
    const by = { userId, login, address: req.ip ?? 'unknown', requestId: res.locals.requestId as string };
    await deps.requestRemoval({ ...interval, by: { ...by, method: 'DELETE', path } });
    res.locals.action = 'packet removal requested';
    res.locals.entityId = objectId;
    res.locals.fields = toFields(interval);
    sendJson(res, JSON.stringify({ success: true, status: 'queued' }));
  };

function parseRemovalInterval({ query }: Request): Pick<PacketInterval, 'fromMs' | 'toMs'> {
  // The search of a form that was left empty restricts nothing.
  const unfit = Object.keys(query).find((name) => !KNOWN.test(name) && !(name === 'search' && query.search === ''));
  if (unfit !== undefined) throw badRequest(`${unfit.slice(0, 64)}: packets are removed by from and to alone`);
  const { fromMs, toMs } = parseInterval(query);
  if (fromMs === null && toMs === null) throw badRequest('from, to: at least one of them is required');
  if (fromMs !== null && toMs !== null && fromMs > toMs) throw badRequest('from: is later than to');
  return { fromMs, toMs };
}

function count(deps: RemovalDeps, req: Request, res: Response, interval: PacketInterval): Promise<number> {
  const { listing } = listDatabaseFor(deps, req, res);
  const work = () => countInterval(deps.listDatabase, interval);
  return listing === undefined
    ? work()
    : listing.queues.scan.run(listing.caller.userId, work, listing.caller.disconnectSignal());
}
