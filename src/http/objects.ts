/** Control objects beyond the generic interface: their packets in and out. */
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { Database } from '../db/connect.js';
import { getSource, type Source } from '../db/entities.js';
import type { Ingest } from '../db/ingest.js';
import type { ModelFinder } from '../db/models.js';
import { listPackets, readPacket, summarizePackets } from '../db/packets.js';
import { mapInSlices } from '../fairness/slices.js';
import { LIMITS } from '../model/limits.js';
import type { Declarations } from '../model/model.js';
import { type Message, readMessage, readMessages } from '../model/packet.js';
import { sendEntity, sendEntityJson, sendJson, sendPage } from './answer.js';
import { type BodyParts, jsonBody } from './body.js';
import { scopeIn } from './caller.js';
import { only } from './failure.js';
import { type ListParts, listDatabaseFor } from './lists.js';
import { readListQuery, readOnly } from './query.js';

export interface ObjectParts extends ListParts, BodyParts {
  readonly database: Database;
  readonly models: ModelFinder;
  readonly ingest: Ingest;
  readonly now: () => number;
}

export function createObjectRouter(parts: ObjectParts): Router {
  const router = Router();
  router
    .route('/objects/:id/packets')
    .get(list(parts))
    .post(jsonBody(LIMITS.packetsBodyBytes, parts, receive(parts)))
    .all(only('GET', 'POST'));
  router.route('/objects/:id/packets/:packetID').get(read(parts)).all(only('GET'));
  return router;
}

type Handler = (parts: ObjectParts) => RequestHandler;

const sourceIn = (parts: ObjectParts, req: Request, res: Response): Promise<Source> =>
  getSource(parts.database, scopeIn(res), String(req.params.id));

const list: Handler = (parts) => async (req, res) => {
  const query = readListQuery(req.query);
  const { objectId } = await sourceIn(parts, req, res);
  const database = listDatabaseFor(parts, req, res);
  if (query.kind === 'summary') sendJson(res, await summarizePackets(database, objectId, query));
  else sendPage(req, res, query, await listPackets(database, objectId, query));
};

const read: Handler = (parts) => async (req, res) => {
  const only = readOnly(req.query);
  const { objectId } = await sourceIn(parts, req, res);
  sendEntityJson(res, await readPacket(parts.database, objectId, String(req.params.packetID), only));
};

/** Many of them with turns for others in between. */
function readAll(body: unknown, declared: Declarations, nowMs: number): Message[] | Promise<Message[]> {
  const isLong = Array.isArray(body) && body.length > LIMITS.slicedPackets && body.length <= LIMITS.packetsPerRequest;
  if (!isLong) return readMessages(body, declared, nowMs);
  return mapInSlices(body, (item, at) => readMessage(item, `[${at}]`, declared, nowMs));
}

const receive: Handler = (parts) => async (req, res) => {
  const source = await sourceIn(parts, req, res);
  const declared = await parts.models.declarationsOf(source.modelId);
  const messages = await readAll(req.body ?? {}, declared, parts.now());
  const { packets } = await parts.ingest(source, messages);
  const [first] = packets;
  if (Array.isArray(req.body) || first === undefined) {
    sendJson(res, JSON.stringify({ success: true, count: packets.length }));
  } else {
    sendEntity(res, first);
  }
};
