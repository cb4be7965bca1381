/** Routes: store, list, read and remove the packets of objects. */

import type { Request, Response } from 'express';
import { z } from 'zod';
import { LIMITS } from '../core/limits.js';
import type { ListQuery } from '../core/list.js';
import type { Declarations } from '../core/model.js';
import type { BodyDeps } from '../platform/http/body.js';
import { scopeIn } from '../platform/http/caller.js';
import { listDatabaseFor } from '../platform/http/list-caller.js';
import {
  DRY_RUN_QUERY,
  ENTITY_KEY,
  EXAMPLE_ID,
  FLAG,
  INTERVAL_QUERY,
  idParameter,
  LIST_QUERY,
  ONLY_QUERY,
} from '../platform/http/parameters.js';
import { parseFields, parseListQuery } from '../platform/http/query-params.js';
import { sendEntity, sendEntityJson, sendJson, sendPage } from '../platform/http/responses.js';
import { defineRoute, type Parameter } from '../platform/http/route.js';
import { ANY_OBJECT, COUNT, entityOf, every, named, pageOf, SUCCESS } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapInSlices } from '../platform/slices.js';
import { EXPORT_TYPES } from './export-format.js';
import type { Ingest } from './ingest.js';
import type { ModelFinder } from './models.js';
import { type Message, parseMessageAt, parseMessages } from './packet.js';
import { listPackets, readPacket, summarizePackets } from './packets.js';
import { REMOVED, type RemovalDeps, removePacketsOf } from './removal-routes.js';
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

const sourceIn = (deps: PacketDeps, req: Request, res: Response): Promise<Source> =>
  getSource(deps.database, scopeIn(res), String(req.params.id));

const FEATURES = z.object({
  type: z.literal('FeatureCollection'),
  features: z.array(ANY_OBJECT),
  error: ANY_OBJECT.optional().describe('Why packets are missing; absent when the export is complete'),
});

/** How long packets may be apart in a line. */
export const GAP: Parameter = {
  component: 'trackGap',
  schema: z.string().meta({ examples: ['15 min'] }),
  example: '15 min',
  description:
    'In a track, and with `format=gpx`: packets further apart than this duration, or these milliseconds, are not connected; 15 minutes by default',
};

const PACKETS = '/api/v1/objects/:id/packets';

const list = defineRoute({
  method: 'GET',
  path: PACKETS,
  name: 'listPackets',
  tag: 'packets',
  summary: 'The packets of an object, also as a file',
  docs: 'The packets of an object; accepts [list parameters](#list-parameters). Also as a file of [any length](history.md#exports): CSV, NDJSON, GeoJSON, GPX',
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  query: {
    ...LIST_QUERY,
    format: {
      schema: z.enum(['json', 'jsonl', ...Object.keys(EXPORT_TYPES)]).default('json'),
      example: 'json',
      description:
        'The format of the answer; without it, `Accept` decides. All but `json` are files of any length: `limit` is not bounded, and the order is that of `time`',
    },
    bom: {
      schema: FLAG,
      example: 'true',
      description:
        'With `format=csv`: for spreadsheets. The file begins with a byte order mark, and digits that a spreadsheet would change become text: `="8944110068765432109"`',
    },
    gap: GAP,
  },
  answer: {
    description: 'The packets, sorted by `time`, then `_ts`; in a `format` other than JSON, of any number',
    schema: pageOf(named('PacketFields')),
    content: {
      [EXPORT_TYPES.csv]: z.string(),
      [EXPORT_TYPES.ndjson]: z.string(),
      [EXPORT_TYPES.geojson]: FEATURES,
      [EXPORT_TYPES.gpx]: z.string(),
    },
    headers: ['Link', 'Content-Disposition', 'Trailer'],
  },
  errors: [404, 413],
  handle: (deps: PacketDeps) => async (req, res) => {
    const query = parseListQuery(req.query);
    const sendFile = deps.findExport(req, query.kind);
    const source = await sourceIn(deps, req, res);
    if (sendFile !== null) return sendFile(res, source);
    const { objectId } = source;
    const database = listDatabaseFor(deps, req, res);
    if (query.kind === 'summary') sendJson(res, await summarizePackets(database, objectId, query));
    else sendPage(req, res, query, await listPackets(database, objectId, query));
  },
});

const send = defineRoute({
  method: 'POST',
  path: PACKETS,
  name: 'sendPackets',
  tag: 'packets',
  summary: 'Stores one packet or an array of packets; answers when they are durable',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY },
  body: {
    schema: z.union([named('Message'), z.array(named('Message'))]),
    example: { _id: EXAMPLE_ID, speed: 51, lat: 52.52, lon: 13.4 },
    limitBytes: LIMITS.packetsBodyBytes,
  },
  answer: {
    description: 'For one packet, the stored packet; for an array, the number of packets',
    schema: z.union([
      entityOf('Packet'),
      every(SUCCESS, z.object({ count: COUNT.max(LIMITS.packetsPerRequest) })).meta({ id: 'Stored' }),
    ]),
  },
  errors: [404, 409],
  handle: (deps: PacketDeps) => async (req, res) => {
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
  },
});

const remove = defineRoute({
  method: 'DELETE',
  path: PACKETS,
  name: 'removePackets',
  tag: 'packets',
  summary: 'Removes the packets of an interval in the background; `from` or `to` is required',
  docs: '[Removes](history.md#removal) the packets from `from` to `to` in the background; accepts `dryRun`',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY },
  query: { ...INTERVAL_QUERY, ...DRY_RUN_QUERY },
  answer: { description: 'The removal is stored; it survives a crash', schema: REMOVED },
  errors: [404],
  handle: (deps: PacketDeps) => removePacketsOf(deps),
});

const read = defineRoute({
  method: 'GET',
  path: `${PACKETS}/:packetID`,
  name: 'getPacket',
  tag: 'packets',
  summary: 'One packet',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY, packetID: idParameter('The `_id` of the packet') },
  query: ONLY_QUERY,
  answer: { description: 'The packet', schema: entityOf('PacketFields') },
  errors: [404],
  handle: (deps: PacketDeps) => async (req, res) => {
    const only = parseFields(req.query);
    const { objectId } = await sourceIn(deps, req, res);
    sendEntityJson(res, await readPacket(deps.database, objectId, String(req.params.packetID), only));
  },
});

export const PACKET_ROUTES = [list, send, remove, read];

/** Yields to the event loop while it reads many messages. */
function parseAll(body: unknown, declared: Declarations, nowMs: number): Message[] | Promise<Message[]> {
  const isLong = Array.isArray(body) && body.length > LIMITS.slicedPackets && body.length <= LIMITS.packetsPerRequest;
  if (!isLong) return parseMessages(body, declared, nowMs);
  return mapInSlices(body, (item, index) => parseMessageAt(item, `[${index}]`, declared, nowMs));
}
