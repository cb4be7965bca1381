/** Reads bodies of any type as bytes, within the budgets of bodies. For routes whose senders set what content type they like. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Request, RequestHandler, Response } from 'express';
import { badRequest, tooLarge, unsupportedMediaType } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import type { BodyDeps } from './body.js';
import { type BodyReservation, CLIENT_DISCONNECTED, reserveBody } from './large-body.js';

const inflate = promisify(gunzip);

const TOO_LARGE = 'the body is larger than this path accepts (docs/reference/limits.md)';

/**
 * Reads the body into `req.body`, plain or compressed with gzip, and calls the handler; a large one waits in the queue of its caller.
 * `callerOf` names whose bytes they are. Throws 400, 413, 415, 429, 503.
 */
export function rawBody(
  limitBytes: number,
  deps: BodyDeps,
  callerOf: (res: Response) => string,
  handler: RequestHandler,
): RequestHandler {
  return async (req, res, next) => {
    const encoding = (req.headers['content-encoding'] ?? 'identity').toLowerCase();
    if (encoding !== 'identity' && encoding !== 'gzip') {
      throw unsupportedMediaType('the body must be plain, or compressed with gzip');
    }
    const caller = callerOf(res);
    const reservation = reserveBody(deps.bodyBudget, caller);
    try {
      const sent = await readBytes(req, limitBytes, reservation);
      req.body = encoding === 'gzip' && sent.length > 0 ? await decompress(sent, limitBytes, reservation) : sent;
      const { length } = req.body as Buffer;
      const handle = async (): Promise<void> => void (await handler(req, res, next));
      const queue = length > LIMITS.hugeBodyBytes ? deps.hugeBodyQueue : deps.bodyQueue;
      await (length > LIMITS.bigBodyBytes ? queue.run(caller, handle) : handle());
    } finally {
      reservation.release();
    }
  };
}

async function decompress(sent: Buffer, limitBytes: number, reservation: BodyReservation): Promise<Buffer> {
  try {
    const bytes = await inflate(sent, { maxOutputLength: limitBytes });
    reservation.growTo(bytes.length);
    return bytes;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(TOO_LARGE);
    if (code?.startsWith('Z_')) throw badRequest('the body is not gzip, as Content-Encoding says');
    throw error;
  }
}

function readBytes(req: Request, limitBytes: number, reservation: BodyReservation): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const end = (error: unknown): void => {
      req.off('data', onData).off('end', onEnd).off('close', onClose);
      if (error === null) resolve(Buffer.concat(chunks));
      else reject(error);
    };
    const grow = (bytes: number): void => {
      if (bytes > limitBytes) throw tooLarge(TOO_LARGE);
      if (bytes > LIMITS.checkedBodyBytes) reservation.growTo(bytes);
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      chunks.push(chunk);
      try {
        grow(length);
      } catch (error) {
        end(error);
      }
    };
    const onEnd = (): void => end(null);
    const onClose = (): void => end(badRequest(CLIENT_DISCONNECTED));
    try {
      grow(Number(req.headers['content-length'] ?? 0) || 0);
    } catch (error) {
      reject(error);
      return;
    }
    req.on('data', onData).once('end', onEnd).once('close', onClose);
  });
}
