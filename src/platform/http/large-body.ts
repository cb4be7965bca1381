/**
 * Reads bodies above the small size. They are limited per caller and in total, and their structure is checked while they arrive.
 * Long lists are parsed in pieces, so that no body blocks the event loop.
 */
import { isUtf8 } from 'node:buffer';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Request } from 'express';
import { badRequest, tooLarge } from '../../core/errors.js';
import { parseExactJson } from '../../core/exact-json.js';
import { JsonScan, type Piece } from '../../core/json-scan.js';
import { LIMITS } from '../../core/limits.js';
import type { Budget } from '../budget.js';

/** Appears only in the log: the client is disconnected. */
export const CLIENT_DISCONNECTED = 'the client disconnected before the end of the body';

/** The share of a budget that a body has reserved. */
export interface BodyReservation {
  /** Throws 429, 503. */
  growTo(bytes: number): void;
  release(): void;
}

export function reserveBody(budget: Budget, caller: string): BodyReservation {
  let reservedBytes = 0;
  return {
    growTo(bytes) {
      if (bytes <= reservedBytes) return;
      const refusal = budget.take(caller, bytes - reservedBytes);
      if (refusal !== null) throw refusal;
      reservedBytes = bytes;
    },
    release() {
      if (reservedBytes > 0) budget.release(caller, reservedBytes);
      reservedBytes = 0;
    },
  };
}

export interface CheckedBytes {
  readonly bytes: Buffer;
  readonly pieces: readonly Piece[] | null;
}

/** Reads the whole body and checks its structure. Throws 400, 413, and the errors of the reservation. */
export function readChecked(req: Request, limitBytes: number, reservation: BodyReservation): Promise<CheckedBytes> {
  const scan = new JsonScan();
  const announcedBytes = Number(req.headers['content-length'] ?? Number.NaN);
  return new Promise((resolve, reject) => {
    let bytes: Buffer = Buffer.alloc(0);
    let length = 0;
    let pauseAt: number = LIMITS.bodyPieceBytes;
    const end = (error: unknown): void => {
      req.off('data', onData).off('end', onEnd).off('close', onClose);
      if (error === null) resolve({ bytes: bytes.subarray(0, length), pieces: scan.pieces() });
      else reject(error);
    };
    const grow = (needed: number): void => {
      if (needed > limitBytes) throw tooLarge('the body is larger than this path accepts (docs/reference/limits.md)');
      if (needed <= bytes.length) return;
      const capacity = Math.min(limitBytes, Math.max(needed, 2 * bytes.length));
      reservation.growTo(capacity);
      const grown = Buffer.allocUnsafeSlow(capacity);
      bytes.copy(grown, 0, 0, length);
      bytes = grown;
    };
    const onData = (chunk: Buffer): void => {
      try {
        grow(length + chunk.length);
        const fault = scan.take(chunk);
        if (fault !== null) throw badRequest(`the body: ${fault}`);
      } catch (error) {
        end(error);
        return;
      }
      length += chunk.copy(bytes, length);
      if (length < pauseAt) return;
      // Otherwise all received bytes of this connection would be read before other connections are served.
      pauseAt = length + LIMITS.bodyPieceBytes;
      req.pause();
      setImmediate(() => req.resume());
    };
    const onEnd = (): void => end(null);
    const onClose = (): void => end(badRequest(CLIENT_DISCONNECTED));
    try {
      if (!Number.isNaN(announcedBytes)) grow(announcedBytes);
    } catch (error) {
      reject(error);
      return;
    }
    req.on('data', onData).once('end', onEnd).once('close', onClose);
  });
}

/** Throws 400. Decoding invalid UTF-8 would replace bytes: the stored text would differ from the sent text. */
export function checkUtf8(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw badRequest('the body is not UTF-8');
}

/** Parses JSON; yields to the event loop between the pieces of a long list. Throws 400, SyntaxError. */
export async function parseChecked({ bytes, pieces }: CheckedBytes): Promise<unknown> {
  checkUtf8(bytes);
  if (pieces === null || pieces.length < 2 || !isBlankAround(bytes, pieces)) {
    return parseExactJson(withoutByteOrderMark(bytes));
  }
  const items: unknown[] = [];
  for (const piece of pieces) {
    for (const item of parsePiece(bytes, piece)) items.push(item);
    await yieldToEventLoop();
  }
  return items;
}

/** Checks and parses JSON that has arrived; yields to the event loop in between. Throws 400, SyntaxError. */
export async function parseInPieces(bytes: Buffer): Promise<unknown> {
  const scan = new JsonScan();
  for (let at = 0; at < bytes.length; at += LIMITS.bodyPieceBytes) {
    const fault = scan.take(bytes.subarray(at, at + LIMITS.bodyPieceBytes));
    if (fault !== null) throw badRequest(`the body: ${fault}`);
    await yieldToEventLoop();
  }
  return parseChecked({ bytes, pieces: scan.pieces() });
}

const ARRAY_BEGIN = 0x5b;
const ARRAY_END = 0x5d;

/** Parses one piece as a list. The whole text is a valid list only if each piece holds one item more than commas. */
function parsePiece(bytes: Buffer, { begin, end, items }: Piece): unknown[] {
  // In place of the commas around the piece, or the brackets of the whole list, for as long as its text is read.
  const before = bytes[begin - 1] as number;
  const after = bytes[end] as number;
  bytes[begin - 1] = ARRAY_BEGIN;
  bytes[end] = ARRAY_END;
  const text = bytes.toString('utf8', begin - 1, end + 1);
  bytes[begin - 1] = before;
  bytes[end] = after;
  const parsed = parseExactJson(text) as unknown[];
  if (parsed.length !== items) throw new SyntaxError('a comma without a value');
  return parsed;
}

function isBlankAround(bytes: Buffer, pieces: readonly Piece[]): boolean {
  const first = pieces[0] as Piece;
  const last = pieces.at(-1) as Piece;
  const around = withoutByteOrderMark(bytes.subarray(0, first.begin - 1)) + bytes.toString('utf8', last.end + 1);
  return /^[ \t\r\n]*$/.test(around);
}

const BYTE_ORDER_MARK = '\ufeff';

export function withoutByteOrderMark(bytes: Buffer): string {
  const text = bytes.toString();
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}
