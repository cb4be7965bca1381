/** Live events as server-sent events. */
import type { Request, Response } from 'express';
import type { EventBatch, Listen, Listening, ListenRequest, Sink } from '../core/feed.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import { onClientDisconnect } from '../platform/http/request-log.js';

export type EventRequest = Omit<ListenRequest, 'sink'>;

/** How the stream is written; by default with all events as they are, and with positions to resume from. */
export interface StreamForm {
  readonly encode: (batch: EventBatch) => Buffer | string;
  readonly hasPositions: boolean;
}

const WHOLE: StreamForm = { encode: (batch) => batch.bytes('sse'), hasPositions: true };

/** WHATWG HTML, "Server-sent events": the `id` of each event is its position; comments keep idle connections alive. */
export async function streamEvents(
  listen: Listen,
  request: EventRequest,
  req: Request,
  res: Response,
  { encode, hasPositions }: StreamForm = WHOLE,
): Promise<void> {
  let listening: Listening | undefined;
  let takenMs = clock.steadyMs();
  const write = (text: Buffer | string): void => {
    if (text.length > 0 && !res.writableEnded) res.write(text);
  };
  // An id without data updates the client's position without an event.
  const comment = (text: string, position: string): void =>
    write(hasPositions ? `: ${text}\nid: ${position}\n\n` : `: ${text}\n\n`);
  const sink: Sink = {
    write: (batch) => write(encode(batch)),
    isDrained: () => res.writableLength === 0,
    gap: (gap) => write(`event: gap\ndata: ${JSON.stringify(gap)}\n\n`),
    joined: (position) => comment('live', position),
    end: () => void res.end(),
  };
  listening = await listen({ ...request, sink });
  const stop = (): void => {
    timers.forEach(clock.clearTimer);
    listening.close();
  };
  const cut = (): void => {
    if (res.writableLength === 0) takenMs = clock.steadyMs();
    const isStuck = clock.steadyMs() - takenMs > LIMITS.slowMs;
    if (!isStuck && res.writableLength <= LIMITS.waitingBytes) return;
    stop();
    res.destroy();
  };
  const sendHeartbeat = (): void => {
    listening.flush();
    comment('alive', listening.position());
  };
  const timers = [clock.setInterval(cut, LIMITS.slowCheckMs), clock.setInterval(sendHeartbeat, LIMITS.pingIntervalMs)];
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
