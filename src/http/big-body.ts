/**
 * Bodies that are not small: counted, of each caller and in all; checked for how they are built while they arrive; and the big
 * ones dealt with in turn, a list in pieces, so that the process does not stand still for any of them.
 */
import { isUtf8 } from 'node:buffer';
import { setImmediate as turn } from 'node:timers/promises';
import type { Request } from 'express';
import { badRequest, tooLarge } from '../errors.js';
import type { Budget } from '../fairness/budget.js';
import { JsonScan, type Piece } from '../model/json-scan.js';
import { LIMITS } from '../model/limits.js';

/** Nobody reads this but whoever reads the log. */
export const GONE = 'the sender went before the end of the body';

/** What a body takes of the budget until it is given back. */
export interface HeldBody {
  /** There are so many bytes. Throws 429, 503. */
  growTo(bytes: number): void;
  giveBack(): void;
}

export function holdBody(budget: Budget, caller: string): HeldBody {
  let held = 0;
  return {
    growTo(bytes) {
      if (bytes <= held) return;
      const refusal = budget.take(caller, bytes - held);
      if (refusal !== null) throw refusal;
      held = bytes;
    },
    giveBack() {
      if (held > 0) budget.giveBack(caller, held);
      held = 0;
    },
  };
}

export interface CheckedBytes {
  readonly bytes: Buffer;
  readonly pieces: readonly Piece[] | null;
}

/** The whole body, if it may be parsed. Throws 400, 413, and what `held` throws. */
export function readChecked(req: Request, limitBytes: number, held: HeldBody): Promise<CheckedBytes> {
  const scan = new JsonScan();
  const told = Number(req.headers['content-length'] ?? Number.NaN);
  return new Promise((resolve, reject) => {
    let bytes: Buffer = Buffer.alloc(0);
    let length = 0;
    let pauseAt: number = LIMITS.bodyPieceBytes;
    const end = (error: unknown): void => {
      req.off('data', take).off('end', finish).off('close', leave);
      if (error === null) resolve({ bytes: bytes.subarray(0, length), pieces: scan.pieces() });
      else reject(error);
    };
    const grow = (needed: number): void => {
      if (needed > limitBytes) throw tooLarge('the body is larger than this path accepts (docs/reference/limits.md)');
      if (needed <= bytes.length) return;
      const room = Math.min(limitBytes, Math.max(needed, 2 * bytes.length));
      held.growTo(room);
      const grown = Buffer.allocUnsafeSlow(room);
      bytes.copy(grown, 0, 0, length);
      bytes = grown;
    };
    const take = (chunk: Buffer): void => {
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
      // Else all that the network holds would be read before anything of others.
      pauseAt = length + LIMITS.bodyPieceBytes;
      req.pause();
      setImmediate(() => req.resume());
    };
    const finish = (): void => end(null);
    const leave = (): void => end(badRequest(GONE));
    try {
      if (!Number.isNaN(told)) grow(told);
    } catch (error) {
      reject(error);
      return;
    }
    req.on('data', take).once('end', finish).once('close', leave);
  });
}

/** Bytes that are no UTF-8 would be stored as other text than was sent. */
export function checkUtf8(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw badRequest('the body is not UTF-8');
}

/** The value of the text; a long list with turns of the event loop for others between its pieces. Throws 400, SyntaxError. */
export async function parseChecked({ bytes, pieces }: CheckedBytes): Promise<unknown> {
  checkUtf8(bytes);
  if (pieces === null || pieces.length < 2 || !isBlankAround(bytes, pieces)) return JSON.parse(withoutMark(bytes));
  const items: unknown[] = [];
  for (const piece of pieces) {
    for (const item of parsePiece(bytes, piece)) items.push(item);
    await turn();
  }
  return items;
}

const [ARRAY_BEGIN, ARRAY_END] = [0x5b, 0x5d];

/** Every piece is a list of as many items as it has commas, and one: then all of them together are a list as well. */
function parsePiece(bytes: Buffer, { begin, end, items }: Piece): unknown[] {
  // What is there are commas, or the brackets of the whole list.
  bytes[begin - 1] = ARRAY_BEGIN;
  bytes[end] = ARRAY_END;
  const parsed: unknown[] = JSON.parse(bytes.toString('utf8', begin - 1, end + 1));
  if (parsed.length !== items) throw new SyntaxError('a comma without a value');
  return parsed;
}

function isBlankAround(bytes: Buffer, pieces: readonly Piece[]): boolean {
  const [first, last] = [pieces[0] as Piece, pieces.at(-1) as Piece];
  const around = withoutMark(bytes.subarray(0, first.begin - 1)) + bytes.toString('utf8', last.end + 1);
  return /^[ \t\r\n]*$/.test(around);
}

const BYTE_ORDER_MARK = '\ufeff';

export function withoutMark(bytes: Buffer): string {
  const text = bytes.toString();
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}
