/** Routes: store, list and read the packets of objects. */

import { type Request, type RequestHandler, type Response, Router } from 'express';
import { LIMITS } from '../core/limits.js';
import type { ListQuery } from '../core/list.js';
import type { Declarations } from '../core/model.js';
import { type BodyDeps, jsonBody } from '../platform/http/body.js';
import { scopeIn } from '../platform/http/caller.js';
import { allowMethods } from '../platform/http/errors.js';
import { listDatabaseFor } from '../platform/http/list-caller.js';
import { parseFields, parseListQuery } from '../platform/http/query-params.js';
import { sendEntity, sendEntityJson, sendJson, sendPage } from '../platform/http/responses.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapInSlices } from '../platform/slices.js';
import type { Ingest } from './ingest.js';
import type { ModelFinder } from './models.js';
import { type Message, parseMessageAt, parseMessages } from './packet.js';
import { listPackets, readPacket, summarizePackets } from './packets.js';
import { type RemovalDeps, removePacketsOf } from './removal-routes.js';
import { getSource, type Source } from './source.js';

export interface PacketDeps extends RemovalDeps, BodyDeps {
  readonly database: Database;
  readonly models: ModelFinder;
  readonly ingest: Ingest;
  readonly now: () => number;
  /** How to send the packets as a file, if the request asks for one. Throws a 400. */
  readonly findExport: (
    req: Request,
    kind: ListQuery['kind'],
  ) => ((res: Response, source: Source) => Promise<void>) | null;
}

export function createPacketRouter(deps: PacketDeps): Router {
  const router = Router();
  router
    .route('/objects/:id/packets')
    .get(list(deps))
    .post(jsonBody(LIMITS.packetsBodyBytes, deps, receive(deps)))
    .delete(removePacketsOf(deps))
    .all(allowMethods('GET', 'POST', 'DELETE'));
  router.route('/objects/:id/packets/:packetID').get(read(deps)).all(allowMethods('GET'));
  return router;
}

type Handler = (deps: PacketDeps) => RequestHandler;

const sourceIn = (deps: PacketDeps, req: Request, res: Response): Promise<Source> =>
  getSource(deps.database, scopeIn(res), String(req.params.id));

const list: Handler = (deps) => async (req, res) => {
  const query = parseListQuery(req.query);
  const sendFile = deps.findExport(req, query.kind);
  const source = await sourceIn(deps, req, res);
  if (sendFile !== null) return sendFile(res, source);
  const { objectId } = source;
  const database = listDatabaseFor(deps, req, res);
  if (query.kind === 'summary') sendJson(res, await summarizePackets(database, objectId, query));
  else sendPage(req, res, query, await listPackets(database, objectId, query));
};

const read: Handler = (deps) => async (req, res) => {
  const only = parseFields(req.query);
  const { objectId } = await sourceIn(deps, req, res);
  sendEntityJson(res, await readPacket(deps.database, objectId, String(req.params.packetID), only));
};

/** Yields to the event loop while it reads many messages. */
function parseAll(body: unknown, declared: Declarations, nowMs: number): Message[] | Promise<Message[]> {
  const isLong = Array.isArray(body) && body.length > LIMITS.slicedPackets && body.length <= LIMITS.packetsPerRequest;
  if (!isLong) return parseMessages(body, declared, nowMs);
  return mapInSlices(body, (item, index) => parseMessageAt(item, `[${index}]`, declared, nowMs));
}

const receive: Handler = (deps) => async (req, res) => {
  const source = await sourceIn(deps, req, res);
  const declared = await deps.models.declarationsOf(source.modelId);
  const messages = await parseAll(req.body ?? {}, declared, deps.now());
  const { packets } = await deps.ingest(source, messages);
  const [first] = packets;
  if (Array.isArray(req.body) || first === undefined) {
    sendJson(res, JSON.stringify({ success: true, count: packets.length }));
  } else {
    sendEntity(res, first);
  }
};
