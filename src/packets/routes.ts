/** Routes: store, list, read and remove the packets of objects. */

import type { Request, Response } from 'express';
import { z } from 'zod';
import { ApiError, badRequest } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { ListQuery } from '../core/list.js';
import type { BodyDeps } from '../platform/http/body.js';
import { scopeIn } from '../platform/http/caller.js';
import { listDatabaseFor } from '../platform/http/list-caller.js';
import { LIST_QUERY, parseListQuery } from '../platform/http/list-params.js';
import {
  DRY_RUN_QUERY,
  ENTITY_KEY,
  EXAMPLE_ID,
  FLAG,
  INTERVAL_QUERY,
  idParameter,
  ONLY_QUERY,
} from '../platform/http/parameters.js';
import { parseFields, parseFlag } from '../platform/http/query-params.js';
import { sendArray, sendEntity, sendEntityJson, sendJson, sendPage } from '../platform/http/responses.js';
import { defineRoute, type Parameter } from '../platform/http/route.js';
import { ANY_OBJECT, COUNT, entityOf, every, named, pageOf, SUCCESS, TIME } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { EXPORT_TYPES } from './export-format.js';
import type { Ingest } from './ingest.js';
import type { ModelFinder } from './models.js';
import {
  type Batch,
  inOrder,
  type Packet,
  parseInTurns,
  type Refusal,
  refusalError,
  refusalsIn,
  withoutRefused,
} from './packet.js';
import { listPackets, readPacket, summarizePackets } from './packets.js';
import { othersStored } from './reasons.js';
import type { RefusedPackets } from './refused-packets.js';
import { REMOVED, type RemovalDeps, removePacketsOf } from './removal-routes.js';
import { getSource, type Source } from './source.js';

export interface PacketDeps extends RemovalDeps, BodyDeps {
  readonly database: Database;
  readonly models: ModelFinder;
  readonly ingest: Ingest;
  readonly refusedPackets: RefusedPackets;
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

/** How CSV is written. */
export const CSV_QUERY = {
  bom: {
    schema: FLAG,
    example: 'true',
    description:
      'With `format=csv`: for spreadsheets. The file begins with a byte order mark, and digits that a spreadsheet would change become text: `="8944110068765432109"`',
  },
  separator: {
    schema: z.enum(['comma', 'semicolon', 'tab']).default('comma'),
    example: 'semicolon',
    description:
      'With `format=csv`: what is between the cells. Spreadsheets expect a semicolon where numbers have a decimal comma',
  },
  decimal: {
    schema: z.enum(['point', 'comma']).default('point'),
    example: 'comma',
    description: 'With `format=csv`: the decimal sign of numbers; `comma` not with `separator=comma`',
  },
} satisfies Record<string, Parameter>;

const PACKETS = '/api/v1/objects/:id/packets';

const list = defineRoute({
  method: 'GET',
  path: PACKETS,
  name: 'listPackets',
  tag: 'packets',
  summary: 'The packets of an object, also as a file',
  docs: 'The packets of an object; accepts [list parameters](#list-parameters). Also as a file of [any length](history.md#exports): CSV, NDJSON, GeoJSON, GPX, Parquet',
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
    ...CSV_QUERY,
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
      [EXPORT_TYPES.parquet]: z.string().meta({ format: 'binary' }),
    },
    headers: ['Link', 'Content-Disposition', 'Trailer', 'X-Interval'],
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

const REFUSAL = z
  .object({
    index: z.int().min(0).describe('The place in the array'),
    reason: z.string().max(LIMITS.refusedReasonCharacters).describe('The first fields, and what was expected'),
  })
  .meta({ id: 'Refusal' });

const send = defineRoute({
  method: 'POST',
  path: PACKETS,
  name: 'sendPackets',
  tag: 'packets',
  summary: 'Stores one packet or an array of packets; answers when they are durable',
  docs: 'Stores one packet or an array of [packets](history.md#arrays-of-packets); answers when they are durable. Accepts `atomic`',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY },
  query: {
    atomic: {
      schema: FLAG,
      example: 'false',
      description: 'Of an array: whether no packet is stored if one cannot be stored',
    },
  },
  body: {
    schema: z.union([named('Message'), z.array(named('Message'))]),
    example: { _id: EXAMPLE_ID, speed: 51, lat: 52.52, lon: 13.4 },
    isRequired: true,
    limitBytes: LIMITS.packetsBodyBytes,
  },
  answer: {
    description:
      'For one packet, the stored packet; for an array, the number of stored packets, and the packets that cannot be stored. ' +
      'If none of them can be stored, the answer is a 400 that also has `count` and `refused`',
    schema: z.union([
      entityOf('Packet'),
      every(
        SUCCESS,
        z.object({
          count: COUNT.max(LIMITS.packetsPerRequest),
          refused: z.array(REFUSAL).optional().describe('Absent if all packets are stored'),
          incomplete: z
            .array(REFUSAL)
            .optional()
            .describe('Packets that are stored without the fields of these reasons; absent if all are stored whole'),
        }),
      ).meta({ id: 'Stored' }),
    ]),
  },
  errors: [404, 409],
  handle: (deps: PacketDeps) => async (req, res) => {
    const isAtomic = parseFlag(req.query, 'atomic');
    const source = await sourceIn(deps, req, res);
    try {
      await receive(deps, source, { body: req.body, isAtomic }, res);
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) recordRefused(deps, source, error);
      throw error;
    }
  },
});

/** Stores the packets of a body, and answers. */
async function receive(
  deps: PacketDeps,
  source: Source,
  { body, isAtomic }: { readonly body: unknown; readonly isAtomic: boolean },
  res: Response,
): Promise<void> {
  if (body === undefined) throw badRequest('the body is empty: expected a packet, or an array of packets');
  const declared = await deps.models.declarationsOf(source.modelId);
  const batch = await parseInTurns(body, declared, deps.now());
  const isList = Array.isArray(body);
  if (isAtomic && isList) refuseAny(batch);
  const { packets, refused } = await deps.ingest(source, batch.messages, { isAtomic });
  const all = inOrder(batch.refused.concat(refused));
  const incomplete = withoutRefused(batch.incomplete, refused);
  const error = all.length === 0 ? null : refusalError(all, packets.length);
  if (error !== null && packets.length === 0) throw error;
  if (error !== null) recordRefused(deps, source, error);
  if (incomplete.length > 0) recordIncomplete(deps, source, incomplete, isList);
  if (!isList) sendEntity(res, packets[0] as Packet);
  else {
    const answer = { success: true, count: packets.length, refused: orNothing(all), incomplete: orNothing(incomplete) };
    sendJson(res, JSON.stringify(answer));
  }
}

function refuseAny({ refused, incomplete }: Batch): void {
  const all = inOrder(refused.concat(incomplete));
  if (all.length > 0) throw refusalError(all, 0);
}

const orNothing = (refused: readonly Refusal[]): readonly Refusal[] | undefined =>
  refused.length === 0 ? undefined : refused;

/** Of packets that are stored without some of their fields. */
function recordIncomplete(
  { refusedPackets, now }: PacketDeps,
  { objectId }: Source,
  incomplete: readonly Refusal[],
  isList: boolean,
): void {
  const common = { time: now(), via: 'http', topic: null } as const;
  const last = incomplete.slice(-LIMITS.refusedPerObject);
  refusedPackets.record(
    objectId,
    last.map(({ index, reason }) => ({
      ...common,
      index: isList ? index : null,
      reason: othersStored(reason),
    })),
  );
}

function recordRefused({ refusedPackets, now }: PacketDeps, { objectId }: Source, error: ApiError): void {
  const refused = refusalsIn(error) ?? [{ index: null, reason: error.message }];
  const common = { time: now(), via: 'http', topic: null } as const;
  refusedPackets.record(
    objectId,
    refused.slice(-LIMITS.refusedPerObject).map((one) => ({ ...common, ...one })),
  );
}

const listRefused = defineRoute({
  method: 'GET',
  path: '/api/v1/objects/:id/refused',
  name: 'listRefusedPackets',
  tag: 'packets',
  summary: 'The last packets and messages of an object that could not be stored, and why',
  docs: `The last ${LIMITS.refusedPerObject} packets and messages of an object that [could not be stored](history.md#refused-packets), and why`,
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  answer: {
    description: 'The refused packets, the oldest first',
    schema: z
      .array(
        z
          .object({
            time: TIME,
            via: z.enum(['http', 'mqtt']),
            topic: z.string().nullable().describe('The topic of the message; null over HTTP'),
            index: z.int().min(0).nullable().describe('The place in the array that was sent; null for a single packet'),
            reason: z.string().max(LIMITS.refusedReasonCharacters),
          })
          .meta({ id: 'RefusedPacket' }),
      )
      .max(LIMITS.refusedPerObject),
  },
  errors: [404],
  handle: (deps: PacketDeps) => async (req, res) => {
    const { objectId } = await sourceIn(deps, req, res);
    sendArray(res, await deps.refusedPackets.list(objectId));
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
  limit: 'list',
  params: { id: ENTITY_KEY },
  query: { ...INTERVAL_QUERY, ...DRY_RUN_QUERY },
  answer: { description: 'The removal is stored; it survives a crash', schema: REMOVED },
  errors: [404],
  handle: removePacketsOf,
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

export const PACKET_ROUTES = [list, send, remove, read, listRefused];
