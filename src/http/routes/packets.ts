/** Routes: store, list and read the packets of objects. */
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { Database } from '../../db/driver/client.js';
import { getSource, type Source } from '../../db/entities/read.js';
import type { Ingest } from '../../db/packets/ingest.js';
import { listPackets, readPacket, summarizePackets } from '../../db/packets/packets.js';
import { mapInSlices } from '../../fairness/slices.js';
import { LIMITS } from '../../model/limits.js';
import type { Declarations } from '../../model/model.js';
import { type Message, parseMessageAt, parseMessages } from '../../model/packet.js';
import { scopeIn } from '../middleware/authenticate.js';
import { type BodyDeps, jsonBody } from '../middleware/body.js';
import { allowMethods } from '../middleware/errors.js';
import { listDatabaseFor } from '../middleware/list-caller.js';
import { parseFields, parseListQuery } from '../query-params.js';
import { sendEntity, sendEntityJson, sendJson, sendPage } from '../responses.js';
import { type ExportDeps, parseRequestedFormat, sendExport } from './exports.js';
import { type RemovalDeps, removePacketsOf } from './packet-removal.js';

export interface PacketDeps extends ExportDeps, RemovalDeps, BodyDeps {
  readonly database: Database;
  readonly ingest: Ingest;
  readonly now: () => number;
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
  const format = parseRequestedFormat(req);
  const source = await sourceIn(deps, req, res);
  const isExport = format !== null && (query.kind === 'page' || req.query.format !== undefined);
  if (isExport) return sendExport(deps, req, res, { source, format });
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
