/** Routes for visitors of a share link, without an account: open it, then see the object, its past packets and its live events. */
import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { Attempts } from '../accounts/attempts.js';
import type { Passwords } from '../accounts/passwords.js';
import { ApiError, badRequest, unauthorized, unavailable, wrongAddress } from '../core/errors.js';
import type { EventBatch, EventName, Listen } from '../core/feed.js';
import { isObject, type JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { isShownParameter, LINK_HISTORIES, toShownPacket, toShownUpdate } from '../core/link.js';
import { MEANINGS } from '../core/model-meanings.js';
import { networkOf } from '../core/network.js';
import { parseSeriesQuery } from '../history/series/query.js';
import { readSeries } from '../history/series.js';
import { toSeriesBody } from '../history/series-body.js';
import { streamEvents } from '../live/stream.js';
import { listPackets } from '../packets/packets.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { INTERVAL_QUERY } from '../platform/http/parameters.js';
import { parseCount, parseInterval, parseText } from '../platform/http/query-params.js';
import type { RateLimitDeps } from '../platform/http/rate-limit.js';
import { sendArray, sendEntity, sendJson } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { ANY_OBJECT, every, SUCCESS, TIME } from '../platform/http/schema.js';
import { readHistory } from '../platform/mongo/driver/list-queue.js';
import { countView } from './link-store.js';
import { readView } from './view.js';
import { findBySecret, findByViewToken, type Viewer, type ViewerDeps } from './viewer.js';

export interface ViewDeps extends ViewerDeps, ListDeps, RateLimitDeps {
  readonly attempts: Attempts;
  readonly passwords: Passwords;
  readonly listen: Listen;
  readonly addressOf: (req: IncomingMessage) => string;
}

/** The same for a link that never existed, so that nobody learns which ones did. */
const linkEnded = (): ApiError => wrongAddress('this link is not valid, or has expired');

const SHARED = '/api/v1/shared';

const openLink = defineRoute({
  method: 'POST',
  path: SHARED,
  name: 'openLink',
  tag: 'links',
  summary: 'Opens a share link: answers the token of a view',
  docs: 'Opens a [share link](share-links.md#for-visitors): `{secret, pin}`; answers the token of a view',
  auth: 'none',
  limit: 'request',
  body: {
    schema: z.object({ secret: z.string(), pin: z.string().optional() }).meta({ id: 'LinkOpening' }),
    example: { secret: 'ZaAAAAAAAAAAAAAKq3u0', pin: '2468' },
    isRequired: true,
    isForm: true,
    limitBytes: LIMITS.loginBodyBytes,
  },
  answer: {
    description: 'The token for the routes below `/shared`',
    schema: every(SUCCESS, z.object({ token: z.string(), expiresAt: TIME.describe('When the token expires') })),
  },
  errors: [401, 404, 429],
  handle: (deps: ViewDeps) => async (req, res) => {
    const address = req.ip ?? 'unknown';
    await deps.consume?.(`link opening ${networkOf(address)}`, 1);
    const { secret, pin } = isObject(req.body) ? req.body : ({} as JsonObject);
    const viewer = await findBySecret(deps, secret);
    // The path alone says nothing about a link.
    res.locals.action = viewer === null ? 'link refused' : 'link opened';
    res.locals.userId = viewer?.caller.userId;
    res.locals.entityId = viewer?.linkId;
    if (viewer === null) throw linkEnded();
    await checkPin(deps, viewer, { pin, address }).catch((error) => {
      res.locals.action = 'link refused';
      throw error;
    });
    await countView(deps.database, viewer.linkId, deps.now());
    const issuedAt = Math.floor(deps.now() / 1_000) * 1_000;
    const expiresAt = Math.min(viewer.expiresAtMs, issuedAt + LIMITS.linkViewMs);
    const claims = { userId: viewer.caller.userId, tokenId: viewer.linkId, expiresAtMs: expiresAt };
    sendEntity(res, { token: deps.tokens.sign(claims, issuedAt), expiresAt });
  },
});

/** Wrong PINs count as failed logins, of the address and of the link. Throws 401, 429. */
async function checkPin(
  { attempts, passwords }: ViewDeps,
  { linkId, terms: { pinHash } }: Viewer,
  { pin, address }: { readonly pin: unknown; readonly address: string },
): Promise<void> {
  if (pinHash === null) return;
  if (pin === undefined || pin === null || pin === '') throw new ApiError(401, 'pin: required');
  const login = `link ${linkId}`;
  await attempts.check(login, address);
  await passwords.withHashSlot(async (verify) => {
    // Checked again: of many guesses sent at once, earlier ones have failed by now.
    await attempts.check(login, address);
    if (!(await verify(pinHash, String(pin).slice(0, LIMITS.passwordCharactersMax)))) {
      await attempts.failed(login, address);
      throw new ApiError(401, 'pin: wrong');
    }
    await attempts.succeeded(login, address);
  });
}

const VALUES = z.record(z.string(), z.object({ value: z.unknown(), time: TIME }));
const SHOWN_PACKET = ANY_OBJECT.describe('`time`, `online`, and the parameters that the link shows');

const readShared = defineRoute({
  method: 'GET',
  path: SHARED,
  name: 'readShared',
  tag: 'links',
  summary: 'The object of a share link, as far as the link shows it; with the token of a view',
  docs: 'The object of a [share link](share-links.md#for-visitors), as far as the link shows it; with the token of a view',
  auth: 'none',
  limit: 'request',
  answer: {
    description: 'What the link shows',
    schema: every(
      SUCCESS,
      z.object({
        name: z.string(),
        expiresAt: TIME,
        history: z.enum(LINK_HISTORIES),
        object: ANY_OBJECT.describe('The fields of the object that the link shows'),
        state: SHOWN_PACKET.nullable().describe('The last packet with data'),
        latest: VALUES.describe('The last known value of each parameter'),
        parameters: z
          .array(z.object({ id: z.string(), name: z.string().nullable(), unit: z.string().nullable(), ...MEANINGS }))
          .describe('What the model says about the parameters'),
      }),
    ).meta({ id: 'SharedObject' }),
  },
  errors: [401, 429],
  handle: (deps: ViewDeps) => async (req, res) => {
    const viewer = await identifyViewer(deps, req, res);
    sendEntity(res, await readView(deps.database, viewer));
  },
});

const listSharedPackets = defineRoute({
  method: 'GET',
  path: `${SHARED}/packets`,
  name: 'listSharedPackets',
  tag: 'links',
  summary: 'The past packets that a share link shows; with the token of a view',
  docs: 'The past packets that a [share link](share-links.md#for-visitors) shows, none or those of the last 24 hours; accepts `begin`, `end` and `limit`',
  auth: 'none',
  limit: 'request',
  query: {
    ...INTERVAL_QUERY,
    limit: {
      component: 'sharedLimit',
      schema: z.int().min(0).max(LIMITS.linkPackets).default(LIMITS.linkPackets),
      example: 100,
      description: `At most so many packets, from \`begin\` on; at most ${LIMITS.linkPackets}`,
    },
  },
  answer: { description: 'The packets, by time', schema: z.array(SHOWN_PACKET).max(LIMITS.linkPackets) },
  errors: [401, 429],
  handle: (deps: ViewDeps) => async (req, res) => {
    const interval = parseInterval(req.query);
    const limit = Math.min(parseCount(req.query, 'limit') ?? LIMITS.linkPackets, LIMITS.linkPackets);
    const viewer = await identifyViewer(deps, req, res);
    const { terms } = viewer;
    if (terms.history === 'none') {
      sendArray(res, []);
      return;
    }
    // Not of the user's share: visitors must not keep the user waiting.
    const database = listDatabaseFor(deps, req, res, `link ${viewer.linkId}`);
    const fromMs = Math.max(interval.fromMs ?? 0, deps.now() - LIMITS.linkHistoryMs);
    const page = { kind: 'page', offset: 0, limit, after: null, sort: null } as const;
    const none = { filters: [], search: null, only: null };
    const found = await listPackets(database, terms.objectId, { ...page, ...none, fromMs, toMs: interval.toMs });
    const packets = JSON.parse(found.body.toString()) as JsonObject[];
    found.release?.();
    sendArray(
      res,
      packets.map((packet) => toShownPacket(packet, terms.fields)),
    );
  },
});

const readSharedSeries = defineRoute({
  method: 'GET',
  path: `${SHARED}/series`,
  name: 'readSharedSeries',
  tag: 'links',
  summary: 'The last 24 hours of parameters that a share link shows, in buckets; with the token of a view',
  docs: 'The last 24 hours of parameters that a [share link](share-links.md#for-visitors) shows, in buckets; accepts `params` and `points`',
  auth: 'none',
  limit: 'request',
  query: {
    params: {
      component: 'sharedParams',
      schema: z.array(z.string()).max(LIMITS.seriesParameters),
      example: ['speed'],
      isRequired: true,
      description: 'The parameters; nested ones are possible (`engine.rpm`)',
    },
    points: {
      component: 'sharedPoints',
      schema: z.int().min(1).max(LIMITS.linkPackets).default(LIMITS.linkPackets),
      example: 600,
      description: `The maximal number of buckets, which are equally long; at most ${LIMITS.linkPackets}`,
    },
  },
  answer: {
    description: 'The columns `last`, `min` and `max` of each parameter; none of a link without history',
    schema: z
      .object({ time: z.array(z.int()).describe('The beginning of each bucket') })
      .catchall(z.union([z.null(), z.record(z.string(), z.array(z.number().nullable()))])),
  },
  errors: [401, 413, 429],
  handle: (deps: ViewDeps) => async (req, res) => {
    const texts = { params: parseText(req.query, 'params'), fn: 'last,min,max', every: null, tz: null, gap: null };
    const points = Math.min(parseCount(req.query, 'points') ?? LIMITS.linkPackets, LIMITS.linkPackets);
    const nowMs = deps.now();
    const interval = { fromMs: nowMs - LIMITS.linkHistoryMs, toMs: nowMs };
    const query = parseSeriesQuery({ ...texts, points, wrap: null, ...interval });
    const viewer = await identifyViewer(deps, req, res);
    const { fields, history, objectId } = viewer.terms;
    if (query.patterns.length > 0) throw badRequest('params: a share link knows no patterns');
    const hidden = query.paths.find((path) => !isShownParameter(path, fields));
    if (hidden !== undefined) throw badRequest(`params: the link does not show ${JSON.stringify(hidden.slice(0, 64))}`);
    if (history === 'none') {
      sendJson(res, JSON.stringify({ time: [], ...Object.fromEntries(query.paths.map((path) => [path, null])) }));
      return;
    }
    const series = await readHistory(listDatabaseFor(deps, req, res, `link ${viewer.linkId}`), (database) =>
      readSeries(database, [objectId], { query, nowMs }),
    );
    sendJson(res, await toSeriesBody(query, series));
  },
});

const listenToShared = defineRoute({
  method: 'GET',
  path: `${SHARED}/events`,
  name: 'listenToShared',
  tag: 'links',
  summary: 'The live events of the object of a share link, as a stream; with the token of a view',
  docs: 'The live events of the object of a [share link](share-links.md#for-visitors), as server-sent events; with the token of a view',
  auth: 'none',
  limit: 'request',
  answer: {
    description:
      '`object-packet` and `object-update`, with what the link shows. The stream ends with the link, and when packets were removed: connect again',
    content: { 'text/event-stream': z.string() },
  },
  errors: [401, 429],
  handle: (deps: ViewDeps) => async (req, res) => {
    const viewer = await identifyViewer(deps, req, res);
    if (req.method === 'HEAD') {
      res.type('text/event-stream').end();
      return;
    }
    const token = tokenIn(req);
    const { linkId, terms } = viewer;
    const identify = async () => (await findByViewToken(deps, token))?.caller ?? null;
    const request = {
      credentials: {},
      guest: { id: `link ${linkId}`, identify },
      address: deps.addressOf(req),
      filter: { groups: null, objects: [terms.objectId], events: SHOWN_EVENTS },
      since: null,
    };
    const { state } = await readView(deps.database, viewer);
    const lastMs = isObject(state) ? Number(state.time) : 0;
    const encode = createEncoder(viewer, { lastMs, now: deps.now, end: () => void res.end() });
    await streamEvents(deps.listen, request, req, res, { encode, hasPositions: false });
  },
});

export const VIEW_ROUTES = [openLink, readShared, listSharedPackets, readSharedSeries, listenToShared];

const SHOWN_EVENTS: readonly EventName[] = ['object-packet', 'object-update', 'object-removed'];

const isRemoval = (event: string, { after }: JsonObject): boolean =>
  event === 'object-update' && isObject(after) && 'packetsRemoved' in after;

/**
 * Writes events as far as the link shows them. Ends the stream with the object, when the user no longer sees it, or when packets were
 * removed.
 */
function createEncoder(
  { terms: { fields, history } }: Viewer,
  stream: { readonly lastMs: number; readonly now: () => number; readonly end: () => void },
): (batch: EventBatch) => string {
  let lastMs = stream.lastMs;
  // Packets that come late are the past.
  const isShown = (timeMs: number): boolean =>
    history === 'none' ? timeMs >= lastMs : timeMs >= stream.now() - LIMITS.linkHistoryMs;
  const toData = (event: string, data: JsonObject): JsonObject | null => {
    if (event === 'object-update') return toShownUpdate(data, fields);
    if (event !== 'object-packet' || !isShown(Number(data.time))) return null;
    lastMs = Math.max(lastMs, Number(data.time));
    return toShownPacket(data, fields);
  };
  return (batch) => {
    let text = '';
    for (const { bytes } of batch.pieces('item')) {
      const { event, data } = JSON.parse(bytes.toString());
      // What a visitor has seen of packets that were removed goes with the next read.
      if (event === 'object-removed' || isRemoval(event, data)) {
        stream.end();
        return '';
      }
      const shown = toData(event, data);
      if (shown !== null) text += `event: ${event}\ndata: ${JSON.stringify(shown)}\n\n`;
    }
    return text;
  };
}

const tokenIn = ({ headers }: Request): string => (headers.authorization ?? '').replace(/^bearer\s+/i, '').trim();

/** Throws 401, 429, 503. */
async function identifyViewer(deps: ViewDeps, req: Request, res: Response): Promise<Viewer> {
  if (deps.isOverloaded()) throw unavailable('the service is overloaded; the request was not processed');
  const viewer = await findByViewToken(deps, tokenIn(req));
  if (viewer === null) throw unauthorized();
  await deps.consume?.(`link ${viewer.linkId} ${networkOf(req.ip ?? 'unknown')}`, 1);
  res.locals.caller = viewer.caller;
  return viewer;
}
