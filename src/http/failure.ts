/** The end of every request that nobody answered: 404 for the unknown, 405 for the wrong method, an error's body. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import type { Logger } from 'pino';
import { badRequest, errorBody, methodNotAllowed, notFound, toApiError, unavailable } from '../errors.js';
import { sendError } from './answer.js';

export const unknownPath: RequestHandler = () => {
  throw notFound();
};

/** For the last handler of a route: the path is known, the method is not. */
export function only(...methods: string[]): RequestHandler {
  const allowed = methods.includes('GET') ? [...methods, 'HEAD'] : methods;
  return () => {
    throw methodNotAllowed(allowed);
  };
}

/** Expected errors are one line of the log; those nobody expected come with their stack. */
export function answerError(log: Logger): ErrorRequestHandler {
  return (thrown, req, res, _next) => {
    const error = toApiError(thrown);
    const { requestId } = res.locals;
    if (error.status === 500) log.error({ requestId, err: error.cause }, 'a fault of ours');
    else if (error.status === 503) log.warn({ requestId, reason: error.message, err: error.cause }, 'unavailable');
    else if (error.help !== undefined) log.debug({ requestId, status: error.status, reason: error.help }, 'refused');
    if (res.headersSent || (isEventSource(req) && comesAgain(req, error.status))) {
      res.destroy();
      return;
    }
    sendError(res, error);
  };
}

/** Node notes on each connection the answer that is under way there. */
type AnsweringSocket = Socket & { readonly _httpMessage?: ServerResponse | null };

/** For what is no HTTP request that could be answered in the usual way: too large a header, a broken line, a stall. */
export function answerClientError(error: NodeJS.ErrnoException, socket: AnsweringSocket): void {
  // What comes after the last request is nobody's: the connection ends with that one's answer.
  if (error.code === 'HPE_CLOSED_CONNECTION') return;
  const answering = socket._httpMessage;
  if (!socket.destroyed && answering?.req.complete && !answering.writableFinished) {
    // The requests before this one were whole: their answers come first, each in its turn.
    answering.once('close', () => answerClientError(error, socket));
    return;
  }
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = JSON.stringify(errorBody(badRequest('not a well-formed HTTP request')));
  const head = [
    'HTTP/1.1 400 Bad Request',
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${randomUUID()}`,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/**
 * WHATWG HTML, "Server-sent events": an EventSource takes any status but 200 as final, and connects again when its
 * connection ends. What passes is therefore not answered.
 */
const isEventSource = ({ headers }: IncomingMessage): boolean => /^\s*text\/event-stream/i.test(headers.accept ?? '');

/** Whether it is a matter of time: one that reconnects was let in before, and is refused while many do. */
const comesAgain = (req: IncomingMessage, status: number): boolean =>
  status === 503 || (status === 429 && req.headers['last-event-id'] !== undefined);

/** For every request of a service that has no database yet. */
export const answerNotYet: RequestListener = (req, res) => {
  if (isEventSource(req)) {
    req.destroy();
    return;
  }
  req.resume();
  const error = unavailable('the service is starting: it waits for its database');
  const body = JSON.stringify(errorBody(error));
  res.writeHead(error.status, {
    ...error.headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Request-Id': randomUUID(),
  });
  res.end(body);
};
