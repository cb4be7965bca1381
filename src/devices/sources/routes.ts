/** Routes of sources beside the generic ones: the entrance, another key, the last refused payloads. */
import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import type { Attempts } from '../../accounts/attempts.js';
import { forbidden, methodNotAllowed, unauthorized, unavailable } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import { builtInStore } from '../../core/stores.js';
import { getEntity } from '../../entities/read.js';
import { getChangeable } from '../../entities/write.js';
import type { BodyDeps } from '../../platform/http/body.js';
import { callerOf, scopeIn } from '../../platform/http/caller.js';
import { ENTITY_KEY } from '../../platform/http/parameters.js';
import { consumeForRequest, mayBeBig, type RateLimitDeps } from '../../platform/http/rate-limit.js';
import { sendArray, sendEntity, sendJson } from '../../platform/http/responses.js';
import { defineRoute, type Parameter } from '../../platform/http/route.js';
import { ANY_OBJECT, COUNT, every, named, SUCCESS, TIME } from '../../platform/http/schema.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import type { Receive } from './entrance.js';
import { KINDS } from './kinds.js';
import type { RefusedPayloads } from './refused-payloads.js';
import { assertCanSend } from './source-hooks.js';
import { createKey, replaceKey, type SourceFinder, type SourceRecord } from './source-store.js';

export interface SourceDeps extends BodyDeps, RateLimitDeps {
  readonly database: Database;
  /** Wrong keys. Failed logins are counted apart from them. */
  readonly keyAttempts: Attempts;
  readonly sources: SourceFinder;
  readonly receiveFromSource: Receive;
  readonly refusedPayloads: RefusedPayloads;
  readonly invalidate: (store: string, id: string) => void;
  readonly now: () => number;
}

const SOURCES = builtInStore('sources');

const sourceOf = (res: Response): SourceRecord => res.locals.source as SourceRecord;

/** The key of a request: the last segment of its path, `?key=`, the password of Basic, or a Bearer token; null without one. */
function keyIn({ params, query, headers }: Request): string | null {
  const [scheme = '', credentials = ''] = (headers.authorization ?? '').split(/ +/, 2);
  const decoded = /^basic$/i.test(scheme) ? Buffer.from(credentials, 'base64').toString() : '';
  const password = decoded.includes(':') ? decoded.slice(decoded.indexOf(':') + 1) : '';
  const token = /^bearer$/i.test(scheme) ? credentials : '';
  const given = [params.key, query.key, password, token];
  return (given.find((one) => typeof one === 'string' && one !== '') as string | undefined) ?? null;
}

/**
 * Finds the source by its key, before the body is read. The right key always passes, also where others fail, since senders behind one
 * address share their count: it is too long to be guessed. Throws 401, 429.
 */
const authenticateSource =
  ({ sources, keyAttempts, consume, isOverloaded }: SourceDeps): RequestHandler =>
  async (req, res, next) => {
    const id = String(req.params.source);
    const key = keyIn(req);
    if (key === null) throw unauthorized();
    const source = await sources.authenticate(id, key);
    if (source === null) {
      const address = req.ip ?? 'unknown';
      const name = id.slice(0, LIMITS.idCharacters);
      res.locals.action = 'login failed';
      res.locals.userId = (await sources.find(id))?.ownerId;
      await keyAttempts.check(name, address);
      await keyAttempts.failed(name, address);
      throw unauthorized();
    }
    if (mayBeBig(req) && isOverloaded()) {
      throw unavailable('the service is overloaded; the request was not processed');
    }
    if (consume !== null) await consumeForRequest(req, res, (points) => consume(source._id, points));
    res.locals.source = source;
    next();
  };

/** Calls this if the answer does not go out: also if the connection has ended before there was one. */
function ifUnanswered(res: Response, act: () => void): void {
  if (res.destroyed) act();
  else res.once('close', () => res.writableFinished || act());
}

const receive =
  ({ receiveFromSource, now }: SourceDeps): RequestHandler =>
  async (req, res) => {
    const source = sourceOf(res);
    const isRead = req.method === 'GET' || req.method === 'HEAD';
    if (isRead && (req.method === 'HEAD' || !KINDS[source.kind].isQuery)) {
      throw methodNotAllowed(KINDS[source.kind].isQuery ? ['GET', 'POST'] : ['POST']);
    }
    const { key: _key, ...query } = req.query as Record<string, string | string[]>;
    const { authorization: _, ...headers } = req.headers;
    const body = Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
    const request = {
      query,
      headers,
      body,
      map: source.map,
      zone: source.zone,
      nowMs: now(),
    };
    const origin = { address: req.ip ?? 'unknown', requestId: res.locals.requestId as string, method: req.method };
    const { count, refused, answer, returnCommands } = await receiveFromSource(source, request, origin);
    if (returnCommands !== null) ifUnanswered(res, returnCommands);
    if (answer !== null) sendJson(res, answer.body, 200, answer.type);
    else sendJson(res, JSON.stringify({ success: true, count, ...(refused.length > 0 && { refused }) }));
  };

const SOURCE_ID: Parameter = { schema: z.string(), example: 'phones', description: 'The `id` of the source' };
const KEY: Parameter = { schema: z.string(), example: 'k', description: 'The key of the source' };
const KEY_QUERY: Parameter = {
  component: 'sourceKey',
  schema: z.string(),
  example: 'k',
  description:
    'The key of the source, which may also be the password of Basic, the token of Bearer, or the last segment of the path',
};
const DEVICE: Parameter = {
  component: 'sourceDevice',
  schema: z.string(),
  example: 'truck-7',
  description: 'The `id` of the object, in place of what the payload says',
};

const STORED = every(
  SUCCESS,
  z.object({
    count: COUNT.describe('How many packets are stored'),
    refused: z.array(named('Refusal')).optional().describe('Packets that cannot be stored; absent if all are stored'),
  }),
).meta({ id: 'SourceStored' });

/** What the entrance has in common, with the key in the path or elsewhere. */
const ENTRANCE = {
  tag: 'sources',
  auth: 'none',
  limit: 'request',
  query: { device: DEVICE },
  answer: {
    description:
      'What can be stored is durable. The answer is what senders of the kind take as done: this object, `[]`, `{"result":"ok"}`, or nothing',
    schema: z.union([STORED, z.array(z.unknown()), ANY_OBJECT]),
    content: { 'text/plain': z.string() },
  },
  errors: [401, 404, 429],
  before: authenticateSource,
  handle: receive,
} as const;

const BODY = {
  schema: {},
  // Of Traccar Client.
  example: {
    location: { timestamp: '2026-11-24T06:00:00Z', coords: { latitude: 52.52, longitude: 13.4, speed: 14.2 } },
    device_id: 'truck-7',
  },
  limitBytes: LIMITS.packetsBodyBytes,
  raw: (res: Response) => sourceOf(res)._id,
} as const;

const PATH = '/api/v1/in/:source';
const READING = 'Stores the measurements in the query, of sources of the kind `osmand`';
const SENDING = 'Stores what a sender of the kind of the source sends';

const sendInQuery = defineRoute({
  ...ENTRANCE,
  method: 'GET',
  path: PATH,
  name: 'sendToSourceInQuery',
  summary: READING,
  docs: `${READING.replace('sources', '[sources](sources.md)')}. The key is \`?key=\`, or in \`Authorization\``,
  params: { source: SOURCE_ID },
  query: { ...ENTRANCE.query, key: KEY_QUERY },
  errors: [...ENTRANCE.errors, 405],
});

const send = defineRoute({
  ...ENTRANCE,
  method: 'POST',
  path: PATH,
  name: 'sendToSource',
  summary: SENDING,
  docs: `${SENDING.replace('kind', '[kind](sources.md#kinds)')}. The key is \`?key=\`, or in \`Authorization\``,
  params: { source: SOURCE_ID },
  query: { ...ENTRANCE.query, key: KEY_QUERY },
  body: BODY,
});

const sendInQueryWithKey = defineRoute({
  ...ENTRANCE,
  method: 'GET',
  path: `${PATH}/:key`,
  name: 'sendToSourceInQueryWithKey',
  summary: `${READING}; with the key in the path`,
  docs: 'The same with the key in the path',
  params: { source: SOURCE_ID, key: KEY },
  errors: [...ENTRANCE.errors, 405],
});

const sendWithKey = defineRoute({
  ...ENTRANCE,
  method: 'POST',
  path: `${PATH}/:key`,
  name: 'sendToSourceWithKey',
  summary: `${SENDING}; with the key in the path`,
  docs: 'The same with the key in the path',
  params: { source: SOURCE_ID, key: KEY },
  body: BODY,
});

const rotateKey = defineRoute({
  method: 'POST',
  path: '/api/v1/sources/:id/key',
  name: 'rotateSourceKey',
  tag: 'sources',
  summary: 'Creates a new key; the previous one ends',
  docs: 'Creates a new key of a [source](sources.md) and returns it; the previous one ends',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY },
  body: { schema: ANY_OBJECT.describe('Nothing'), example: {}, limitBytes: LIMITS.entityBodyBytes },
  answer: {
    description: 'The key',
    schema: every(SUCCESS, z.object({ key: z.string().describe('The new key; Vigil does not show it again') })),
  },
  errors: [403, 404],
  handle: (deps: SourceDeps) => async (req, res) => {
    const source = await getChangeable(deps.database, SOURCES, scopeIn(res), String(req.params.id));
    const caller = callerOf(res);
    assertCanSend(caller, source);
    // The key writes into the whole group, which those with whom only the source is shared do not see.
    if (!source.branch.includes(caller.groupId)) throw forbidden('the source belongs to a group that is not yours');
    const key = createKey();
    await replaceKey(deps.database, source._id, key);
    deps.invalidate('sources', source._id);
    res.locals.action = 'source key created';
    res.locals.entityId = source._id;
    sendEntity(res, { key });
  },
});

const listRefused = defineRoute({
  method: 'GET',
  path: '/api/v1/sources/:id/refused',
  name: 'listRefusedPayloads',
  tag: 'sources',
  summary: 'The last payloads of a source that could not be stored, and why',
  docs: `The last ${LIMITS.refusedPerSource} [payloads](sources.md#refused-payloads) of a source that could not be stored, and why`,
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  answer: {
    description: 'The refused payloads, the oldest first',
    schema: z
      .array(
        z
          .object({
            time: TIME,
            device: z.string().nullable().describe('The device that the payload names'),
            index: z.int().min(0).nullable().describe('The place among the packets of the request'),
            reason: z.string().max(LIMITS.refusedReasonCharacters),
            payload: z
              .string()
              .describe('The beginning of the body, or of the query; of one of several samples, its packet'),
          })
          .meta({ id: 'RefusedPayload' }),
      )
      .max(LIMITS.refusedPerSource),
  },
  errors: [404],
  handle: (deps: SourceDeps) => async (req, res) => {
    const { _id } = await getEntity(deps.database, SOURCES, scopeIn(res), String(req.params.id));
    sendArray(res, await deps.refusedPayloads.list(_id));
  },
});

export const SOURCE_ROUTES = [sendInQuery, send, sendInQueryWithKey, sendWithKey, rotateKey, listRefused];
