/**
 * Live events without Socket.IO: as server-sent events, or as pages for polling. Permissions, order and positions are those of the
 * feed.
 */

import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { refuseForeignPage } from '../accounts/authenticate.js';
import { badRequest } from '../core/errors.js';
import {
  EVENT_NAMES,
  type EventBatch,
  type Gap,
  type Listen,
  type Listening,
  parseEventFilterQuery,
  type Sink,
} from '../core/feed.js';
import { LIMITS } from '../core/limits.js';
import {
  EVENTS_PARAMETER,
  EXCLUDED_EVENTS_PARAMETER,
  PAST_EVENTS,
  PAST_PAGE_QUERY,
  type PastEventDeps,
  sendPastEvents,
} from '../history/past-event-routes.js';
import { clock, type Timer } from '../platform/clock.js';
import { callerOf } from '../platform/http/caller.js';
import { EXAMPLE_ID, ID, INTERVAL_QUERY } from '../platform/http/parameters.js';
import { parseCount, parseText } from '../platform/http/query-params.js';
import { onClientDisconnect } from '../platform/http/request-log.js';
import { sendJson } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { ANY_OBJECT } from '../platform/http/schema.js';
import { LAYOUT } from '../platform/mongo/bson/raw-cursor.js';
import { type EventRequest, streamEvents } from './stream.js';

export interface EventDeps extends PastEventDeps {
  readonly listen: Listen;
  readonly addressOf: (req: IncomingMessage) => string;
  /** The origins whose pages may listen with their user's cookie, besides the service's own. */
  readonly corsOrigins: readonly string[];
}

/** What polling receives. */
const EVENT_PAGE = z
  .object({
    events: z
      .array(z.object({ event: z.enum(EVENT_NAMES), data: ANY_OBJECT, position: z.string() }))
      .max(LIMITS.pollEvents),
    position: z.string().describe('The `since` of the next request'),
    gap: z.object({ reason: z.string(), from: z.string() }).optional(),
  })
  .meta({ id: 'EventPage' });

const listen = defineRoute({
  method: 'GET',
  path: '/api/v1/events',
  name: 'listen',
  tag: 'events',
  summary: 'Live events, as a stream or in pages; with an interval, past events',
  docs: '[Live events](live-events.md#without-socketio), as a stream or in pages; with an interval, [events of the past](history.md#events-of-the-past)',
  auth: 'caller',
  limit: 'interval',
  query: {
    since: {
      schema: z.string(),
      example: 'gmsAVhMAAAACKwQsAQ',
      description: 'A position; returns the events after it. The header `Last-Event-ID` has the same effect',
    },
    objects: {
      schema: z.array(z.string()).max(LIMITS.subscribedObjects),
      example: ['truck-7'],
      description: 'Only events of these objects, by `_id` or own `id`',
    },
    groups: {
      schema: z.array(ID).max(LIMITS.subscribedGroups),
      example: [EXAMPLE_ID],
      description: 'Live: only events of objects in these groups or below them, by `_id`; not with `objects`',
    },
    events: EVENTS_PARAMETER,
    'events!': EXCLUDED_EVENTS_PARAMETER,
    wait: {
      component: 'waitForEvents',
      schema: z
        .int()
        .min(0)
        .max(LIMITS.pollMs / 1_000)
        .default(0),
      example: 0,
      description: 'Seconds to wait until there is an event',
    },
    ...INTERVAL_QUERY,
    ...PAST_PAGE_QUERY,
  },
  answer: {
    description:
      'With `from` or `to` a list, with `Accept: text/event-stream` a stream, otherwise a page and the next position',
    schema: z.union([EVENT_PAGE, PAST_EVENTS]),
    content: { 'text/event-stream': z.string() },
    headers: ['Link'],
  },
  errors: [403],
  handle: (deps: EventDeps) => async (req, res) => {
    if (await sendPastEvents(deps, req, res)) return;
    // Pages of foreign origins must not listen with their user's cookie.
    if (callerOf(res).session !== null) refuseForeignPage(req, deps.corsOrigins);
    const request = parseRequest(deps, req);
    // Clients that accept anything receive JSON, as everywhere.
    const isStream =
      req.method === 'GET' && req.accepts(['application/json', 'text/event-stream']) === 'text/event-stream';
    await (isStream ? streamEvents(deps.listen, request, req, res) : poll(deps, request, req, res));
  },
});

export const EVENT_ROUTES = [listen];

function parseRequest({ addressOf }: EventDeps, req: Request): EventRequest {
  const { authorization, cookie } = req.headers;
  // A browser that reconnects sends its position in the header, and the URL still has the first `since`.
  const since = req.get('last-event-id') || parseText(req.query, 'since');
  const [objects, groups, events] = ['objects', 'groups', 'events'].map(
    (name) => parseText(req.query, name) ?? undefined,
  );
  return {
    credentials: { authorization, cookie },
    address: addressOf(req),
    filter: parseEventFilterQuery({ objects, groups, events }),
    since: since === '' ? null : since,
  };
}

function parseWaitMs(req: Request): number {
  const seconds = parseCount(req.query, 'wait') ?? 0;
  if (seconds * 1_000 > LIMITS.pollMs) throw badRequest(`wait: at most ${LIMITS.pollMs / 1_000} seconds`);
  return seconds * 1_000;
}

/** Sends one page: the events after `since`, or else the first events within the wait. */
async function poll({ listen }: EventDeps, request: EventRequest, req: Request, res: Response): Promise<void> {
  const page = createPage();
  const untilMs = clock.steadyMs() + parseWaitMs(req);
  let listening: Listening | undefined;
  let timer: Timer | undefined;
  let isDone: boolean = false;
  const finish = (): void => {
    if (isDone) return;
    isDone = true;
    clock.clearTimer(timer);
    listening?.flush();
    const position = page.position ?? listening?.position() ?? '';
    listening?.close();
    if (!res.destroyed) sendJson(res, page.toJson(position));
  };
  const finishIn = (ms: number): void => {
    clock.clearTimer(timer);
    timer = clock.setTimeout(finish, ms).unref();
  };
  const sink: Sink = {
    write(batch) {
      page.add(batch);
      // Live events are sent at once; missed events are collected until the page is full.
      if (page.isFull() || page.isLive) finish();
    },
    isDrained: () => true,
    gap: (gap) => page.gap(gap),
    joined(position) {
      page.isLive = true;
      page.passed(position);
      if (page.isEmpty()) finishIn(untilMs - clock.steadyMs());
      else finish();
    },
    end: finish,
  };
  listening = await listen({ ...request, sink });
  res.once('close', onClientDisconnect(req, finish));
  finishIn(LIMITS.pollHistoryMs);
  listening.start();
}

/** `{"events": [{"event", "data", "position"}, …], "position", "gap"?}`, limited to one page. */
function createPage() {
  const items: Buffer[] = [];
  let bytes: number = 0;
  let found: Gap | null = null;
  const isFull = (): boolean => items.length >= LIMITS.pollEvents || bytes >= LIMITS.pollBytes;
  return {
    isLive: false,
    /** The position up to which the page is complete; null if not known. */
    position: null as string | null,
    isFull,
    isEmpty: (): boolean => items.length === 0 && found === null,
    gap(gap: Gap): void {
      found = gap;
    },
    /** All events up to the position are in the page, or not permitted to the caller. */
    passed(position: string): void {
      if (!isFull()) this.position = position;
    },
    add(batch: EventBatch): void {
      for (const { position, bytes: item } of batch.pieces('item')) {
        if (isFull()) return;
        items.push(item);
        bytes += item.length;
        this.position = position;
      }
    },
    toJson(position: string): Buffer {
      const pieces = items.flatMap((item, index) => (index === 0 ? [BEGIN, item] : [BETWEEN, item]));
      const gap = found === null ? '' : `,"gap":${JSON.stringify(found)}`;
      return Buffer.concat([
        HEAD,
        ...(items.length === 0 ? [EMPTY] : [...pieces, END]),
        Buffer.from(`,"position":"${position}"${gap}}\n`),
      ]);
    },
  };
}

const HEAD = Buffer.from('{"events":');
const BEGIN = Buffer.from(LAYOUT.begin);
const BETWEEN = Buffer.from(LAYOUT.between);
const [END, EMPTY] = [LAYOUT.end, LAYOUT.empty].map((text) => Buffer.from(text.trimEnd())) as [Buffer, Buffer];
