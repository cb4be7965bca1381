/**
 * Live events without Socket.IO: as server-sent events, or page by page for systems that poll. The same feed as the
 * sockets': same rights, same order, same positions.
 */
import type { IncomingMessage } from 'node:http';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { LAYOUT } from '../db/pages.js';
import { badRequest } from '../errors.js';
import {
  type Batch,
  type Gap,
  type Listen,
  type Listening,
  type ListenRequest,
  readNarrowingQuery,
  type Sink,
} from '../model/feed.js';
import { LIMITS } from '../model/limits.js';
import { sendJson } from './answer.js';
import { callerOf } from './caller.js';
import { only } from './failure.js';
import { readCount, readText } from './query.js';
import { whenGone } from './requests.js';

export interface EventParts {
  readonly listen: Listen;
  readonly addressOf: (req: IncomingMessage) => string;
}

/** `refuseForeign` keeps pages of foreign origins from listening with a user's cookie. */
export function createEventRouter(parts: EventParts, refuseForeign: RequestHandler): Router {
  const router = Router();
  const refuse: RequestHandler = (req, res, next) =>
    callerOf(res).session === null ? next() : refuseForeign(req, res, next);
  router.route('/events').get(refuse, events(parts)).all(only('GET'));
  return router;
}

const events =
  (parts: EventParts): RequestHandler =>
  async (req, res) => {
    const request = readRequest(parts, req);
    // Text is asked for by name; whoever takes anything gets JSON, like everywhere.
    const isStream =
      req.method === 'GET' && req.accepts(['application/json', 'text/event-stream']) === 'text/event-stream';
    await (isStream ? stream(parts, request, req, res) : poll(parts, request, req, res));
  };

type Asked = Omit<ListenRequest, 'sink'>;

function readRequest({ addressOf }: EventParts, req: Request): Asked {
  const { authorization, cookie } = req.headers;
  // A browser that comes back by itself tells where it was in the header, and still has the address it began with.
  const since = req.get('last-event-id') || readText(req.query, 'since');
  const [objects, names] = [readText(req.query, 'objects'), readText(req.query, 'events')];
  return {
    proof: { authorization, cookie },
    address: addressOf(req),
    wanted: readNarrowingQuery({ objects: objects ?? undefined, events: names ?? undefined }),
    since: since === '' ? null : since,
  };
}

function readWaitMs(req: Request): number {
  const seconds = readCount(req.query, 'wait') ?? 0;
  if (seconds * 1_000 > LIMITS.pollMs) throw badRequest(`wait: at most ${LIMITS.pollMs / 1_000} seconds`);
  return seconds * 1_000;
}

/** WHATWG HTML, "Server-sent events": each with its position as `id`; a comment where nothing else is said. */
async function stream({ listen }: EventParts, asked: Asked, req: Request, res: Response): Promise<void> {
  let listening: Listening | undefined;
  let takenMs = performance.now();
  const sink: Sink = {
    write: (batch) => void res.write(batch.bytes('sse')),
    isDrained: () => res.writableLength === 0,
    gap: (gap) => void res.write(`event: gap\ndata: ${JSON.stringify(gap)}\n\n`),
    // An id without data moves the client's position and tells it nothing.
    joined: (position) => void res.write(`: live\nid: ${position}\n\n`),
    end: () => void res.end(),
  };
  listening = await listen({ ...asked, sink });
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
  const beat = (): void => {
    listening.flush();
    res.write(`: alive\nid: ${listening.position()}\n\n`);
  };
  const timers = [setInterval(cut, LIMITS.slowCheckMs), setInterval(beat, LIMITS.pingIntervalMs)];
  const forget = whenGone(req, stop);
  res.once('close', () => {
    forget();
    stop();
  });
  // Proxies must not keep back what is told now.
  res.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' });
  res.flushHeaders();
  listening.start();
}

/** One page: what came after `since`; or, when that is nothing, what comes within the time. */
async function poll({ listen }: EventParts, asked: Asked, req: Request, res: Response): Promise<void> {
  const page = createPage();
  const untilMs = performance.now() + readWaitMs(req);
  let listening: Listening | undefined;
  let [timer, isDone]: [NodeJS.Timeout | undefined, boolean] = [undefined, false];
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
      // What is live is told at once; what was missed, until the page is full.
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
  listening = await listen({ ...asked, sink });
  res.once('close', whenGone(req, finish));
  finishIn(LIMITS.pollHistoryMs);
  listening.start();
}

/** `{"events": [{"event", "data", "position"}, …], "position", "gap"?}`: as many events as go into one page. */
function createPage() {
  const items: Buffer[] = [];
  let [bytes, found]: [number, Gap | null] = [0, null];
  const isFull = (): boolean => items.length >= LIMITS.pollEvents || bytes >= LIMITS.pollBytes;
  return {
    isLive: false,
    /** Up to where all is in it; null when nothing is known of that. */
    position: null as string | null,
    isFull,
    isEmpty: (): boolean => items.length === 0 && found === null,
    gap(gap: Gap): void {
      found = gap;
    },
    /** What came up to there is in it, or is not for whoever asked: nor later, when rights have changed. */
    passed(position: string): void {
      if (!isFull()) this.position = position;
    },
    add(batch: Batch): void {
      for (const { position, bytes: item } of batch.pieces('item')) {
        if (isFull()) return;
        items.push(item);
        bytes += item.length;
        this.position = position;
      }
    },
    toJson(position: string): Buffer {
      const parts = items.flatMap((item, at) => (at === 0 ? [BEGIN, item] : [BETWEEN, item]));
      const gap = found === null ? '' : `,"gap":${JSON.stringify(found)}`;
      return Buffer.concat([
        HEAD,
        ...(items.length === 0 ? [EMPTY] : [...parts, END]),
        Buffer.from(`,"position":"${position}"${gap}}\n`),
      ]);
    },
  };
}

const HEAD = Buffer.from('{"events":');
const BEGIN = Buffer.from(LAYOUT.begin);
const BETWEEN = Buffer.from(LAYOUT.between);
const [END, EMPTY] = [LAYOUT.end, LAYOUT.empty].map((text) => Buffer.from(text.trimEnd())) as [Buffer, Buffer];
