/**
 * Live events without Socket.IO: as server-sent events, or as pages for polling. Permissions, order and positions are those of the
 * feed.
 */
import type { IncomingMessage } from 'node:http';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { badRequest } from '../core/errors.js';
import {
  type EventBatch,
  type Gap,
  type Listen,
  type Listening,
  type ListenRequest,
  parseEventFilterQuery,
  type Sink,
} from '../core/feed.js';
import { LIMITS } from '../core/limits.js';
import { callerOf } from '../platform/http/caller.js';
import { allowMethods } from '../platform/http/errors.js';
import { parseCount, parseText } from '../platform/http/query-params.js';
import { onClientDisconnect } from '../platform/http/request-log.js';
import { sendJson } from '../platform/http/responses.js';
import { LAYOUT } from '../platform/mongo/bson/raw-cursor.js';

export interface EventDeps {
  readonly listen: Listen;
  readonly addressOf: (req: IncomingMessage) => string;
}

/** `refuseForeign` prevents pages of foreign origins from listening with a user's cookie. */
export function createEventRouter(deps: EventDeps, refuseForeign: RequestHandler): Router {
  const router = Router();
  const refuse: RequestHandler = (req, res, next) =>
    callerOf(res).session === null ? next() : refuseForeign(req, res, next);
  router.route('/events').get(refuse, events(deps)).all(allowMethods('GET'));
  return router;
}

const events =
  (deps: EventDeps): RequestHandler =>
  async (req, res) => {
    const request = parseRequest(deps, req);
    // Clients that accept anything receive JSON, as everywhere.
    const isStream =
      req.method === 'GET' && req.accepts(['application/json', 'text/event-stream']) === 'text/event-stream';
    await (isStream ? stream(deps, request, req, res) : poll(deps, request, req, res));
  };

type EventRequest = Omit<ListenRequest, 'sink'>;

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

/** WHATWG HTML, "Server-sent events": the `id` of each event is its position; comments keep idle connections alive. */
async function stream({ listen }: EventDeps, request: EventRequest, req: Request, res: Response): Promise<void> {
  let listening: Listening | undefined;
  let takenMs = performance.now();
  const sink: Sink = {
    write: (batch) => void res.write(batch.bytes('sse')),
    isDrained: () => res.writableLength === 0,
    gap: (gap) => void res.write(`event: gap\ndata: ${JSON.stringify(gap)}\n\n`),
    // An id without data updates the client's position without an event.
    joined: (position) => void res.write(`: live\nid: ${position}\n\n`),
    end: () => void res.end(),
  };
  listening = await listen({ ...request, sink });
  const stop = (): void => {
    timers.forEach(clearInterval);
    listening.close();
  };
  const cut = (): void => {
    if (res.writableLength === 0) takenMs = performance.now();
    const isStuck = performance.now() - takenMs > LIMITS.slowMs;
    if (!isStuck && res.writableLength <= LIMITS.waitingBytes) return;
    stop();
    res.destroy();
  };
  const sendHeartbeat = (): void => {
    listening.flush();
    res.write(`: alive\nid: ${listening.position()}\n\n`);
  };
  const timers = [setInterval(cut, LIMITS.slowCheckMs), setInterval(sendHeartbeat, LIMITS.pingIntervalMs)];
  const removeListener = onClientDisconnect(req, stop);
  res.once('close', () => {
    removeListener();
    stop();
  });
  // Proxies must not buffer events.
  res.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' });
  res.flushHeaders();
  listening.start();
}

/** Sends one page: the events after `since`, or else the first events within the wait. */
async function poll({ listen }: EventDeps, request: EventRequest, req: Request, res: Response): Promise<void> {
  const page = createPage();
  const untilMs = performance.now() + parseWaitMs(req);
  let listening: Listening | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isDone: boolean = false;
  const finish = (): void => {
    if (isDone) return;
    isDone = true;
    clearTimeout(timer);
    listening?.flush();
    const position = page.position ?? listening?.position() ?? '';
    listening?.close();
    if (!res.destroyed) sendJson(res, page.toJson(position));
  };
  const finishIn = (ms: number): void => {
    clearTimeout(timer);
    timer = setTimeout(finish, ms).unref();
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
      if (page.isEmpty()) finishIn(untilMs - performance.now());
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
