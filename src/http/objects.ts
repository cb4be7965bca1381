/** Control objects beyond the generic interface: their packets in and out. */
import { type RequestHandler, Router } from 'express';
import type { Database } from '../db/connect.js';
import { getEntity } from '../db/entities.js';
import type { Ingest } from '../db/ingest.js';
import type { ModelFinder } from '../db/models.js';
import { listPackets, readPacket, summarizePackets } from '../db/packets.js';
import type { Scope } from '../model/access.js';
import type { Entity } from '../model/entity.js';
import { LIMITS } from '../model/limits.js';
import { type PacketSource, readMessages } from '../model/packet.js';
import { builtInStore } from '../model/stores.js';
import { sendEntity, sendEntityJson, sendJson, sendPage } from './answer.js';
import { readJson } from './body.js';
import { scopeIn } from './caller.js';
import { only } from './failure.js';
import { readListQuery, readOnly } from './query.js';

export interface ObjectParts {
  readonly database: Database;
  readonly models: ModelFinder;
  readonly ingest: Ingest;
  readonly now: () => number;
}

const OBJECTS = builtInStore('objects');

export function createObjectRouter(parts: ObjectParts): Router {
  const router = Router();
  router
    .route('/objects/:id/packets')
    .get(list(parts))
    .post(readJson(LIMITS.packetsBodyBytes), receive(parts))
    .all(only('GET', 'POST'));
  router.route('/objects/:id/packets/:packetID').get(read(parts)).all(only('GET'));
  return router;
}

type Handler = (parts: ObjectParts) => RequestHandler;

const getObject = (parts: ObjectParts, scope: Scope, key: unknown): Promise<Entity> =>
  getEntity(parts.database, OBJECTS, scope, String(key));

const sourceOf = (object: Entity): PacketSource => ({
  objectId: object._id,
  ownId: object.id as string,
  groupId: object.group,
});

const list: Handler = (parts) => async (req, res) => {
  const query = readListQuery(req.query);
  const object = await getObject(parts, scopeIn(res), req.params.id);
  if (query.kind === 'summary') sendJson(res, await summarizePackets(parts.database, object._id, query));
  else sendPage(req, res, query, await listPackets(parts.database, object._id, query));
};

const read: Handler = (parts) => async (req, res) => {
  const only = readOnly(req.query);
  const object = await getObject(parts, scopeIn(res), req.params.id);
  sendEntityJson(res, await readPacket(parts.database, object._id, String(req.params.packetID), only));
};

const receive: Handler = (parts) => async (req, res) => {
  const object = await getObject(parts, scopeIn(res), req.params.id);
  const declared = await parts.models.declarationsOf(object.model as string);
  const messages = readMessages(req.body ?? {}, declared, parts.now());
  const { packets } = await parts.ingest(sourceOf(object), messages);
  const [first] = packets;
  if (Array.isArray(req.body) || first === undefined) {
    sendJson(res, JSON.stringify({ success: true, count: packets.length }));
  } else {
    sendEntity(res, first);
  }
};
