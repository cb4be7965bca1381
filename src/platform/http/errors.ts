/** Error responses: 404 for an unknown path, 405 for a wrong method, and the body of each error. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorRequestHandler, Request, RequestHandler } from 'express';
import type { Logger } from 'pino';
import {
  type ApiError,
  badRequest,
  errorBody,
  methodNotAllowed,
  notFound,
  toApiError,
  unavailable,
  wrongAddress,
} from '../../core/errors.js';
import { sendError } from './responses.js';

export const unknownPath: RequestHandler = (req) => {
  refuseReadings(req);
  throw req.method === 'POST' && !req.path.startsWith('/api/') ? wrongAddress(PACKETS_GO) : notFound();
};

const PACKETS_GO = 'nothing was stored: packets are sent as JSON to POST /api/v1/objects/<id>/packets, with a token';

/** Parameters of trackers and sensors (OsmAnd, Traccar, OwnTracks, GPSLogger), which the pages of the console do not have. */
const READINGS =
  /^(id|(device|unit|unique|tracker)_?id|imei|lat|latitude|lon|lng|long|longitude|coords|location|timestamp|temp|temperature|hum|humidity)$/i;

/** Refuses measurements in the query of an address that does not store them: a device drops what was answered with 200. */
export const refuseReadings = ({ query }: Pick<Request, 'query'>): void => {
  if (Object.keys(query).some((name) => READINGS.test(name))) {
    throw wrongAddress(PACKETS_GO);
  }
};

/** The last handler of each route: no earlier handler accepted the method. */
export function allowMethods(...methods: string[]): RequestHandler {
  const allowed = methods.includes('GET') ? [...methods, 'HEAD'] : methods;
  return () => {
    throw methodNotAllowed(allowed);
  };
}

/** Sends the error. Expected errors are logged as one line, unexpected ones with their stack. */
export function handleError(log: Logger): ErrorRequestHandler {
  return (thrown, req, res, _next) => {
    const error = toApiError(thrown);
    const { requestId } = res.locals;
    if (error.status === 500) log.error({ requestId, err: error.cause }, 'internal error');
    else if (error.status === 503) log.warn({ requestId, reason: error.message, err: error.cause }, 'unavailable');
    else if (error.help !== undefined) log.debug({ requestId, status: error.status, reason: error.help }, 'refused');
    if (res.headersSent || (isEventSource(req) && shouldReconnect(req, error.status))) {
      res.destroy();
      return;
    }
    sendError(res, error);
  };
}

/**
 * Answers connections without a valid request: too large a header, a malformed line, a timeout. `responseOn` finds the response in
 * progress on a connection.
 */
export function handleClientError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  responseOn: (socket: Socket) => ServerResponse | null,
): void {
  // Bytes after the last request are ignored: the connection ends with the answer to that request.
  if (error.code === 'HPE_CLOSED_CONNECTION') return;
  const answering = responseOn(socket);
  if (!socket.destroyed && answering?.req.complete && !answering.writableFinished) {
    // The preceding requests were valid: their answers are sent first, in order.
    answering.once('close', () => handleClientError(error, socket, responseOn));
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
 * WHATWG HTML, "Server-sent events": an EventSource treats any status but 200 as final, and reconnects if its connection ends
 * without an answer. For temporary errors the connection is therefore closed.
 */
const isEventSource = ({ headers }: IncomingMessage): boolean => /^\s*text\/event-stream/i.test(headers.accept ?? '');

/** Temporary errors: 503, and 429 for a client that reconnects, which is refused only while many clients reconnect. */
const shouldReconnect = (req: IncomingMessage, status: number): boolean =>
  status === 503 || (status === 429 && req.headers['last-event-id'] !== undefined);

/** Answers every request until the database is available. */
export const sendUnavailable: RequestListener = (req, res) => {
  if (isEventSource(req)) {
    req.destroy();
    return;
  }
  req.resume();
  refuseAtOnce(res, unavailable('the service is starting: it waits for its database'));
};

/** Sends an error without Express. */
export function refuseAtOnce(res: ServerResponse, error: ApiError): void {
  const body = JSON.stringify(errorBody(error));
  res.writeHead(error.status, {
    ...error.headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Request-Id': randomUUID(),
  });
  res.end(body);
}
