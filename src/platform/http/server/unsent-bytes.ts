/** Limits the bytes of unsent responses, per caller and in total. */
import type { Response } from 'express';
import type { Caller } from '../../../core/access.js';
import type { ApiError } from '../../../core/errors.js';
import { LIMITS } from '../../../core/limits.js';
import type { Budget } from '../../budget.js';

/** Counts the bytes of a response until it is sent. Returns an error if the response would exceed a limit. */
export function countUnsentBytes(res: Response, bytes: number): ApiError | null {
  if (bytes <= LIMITS.smallAnswerBytes || isOver(res)) return null;
  const caller = (res.locals.caller as Caller | undefined)?.userId;
  const budget = res.app.locals.answerBudget as Budget | undefined;
  // Without a caller, responses are small or shared between all clients.
  if (caller === undefined || budget === undefined) return null;
  const { method } = res.req;
  if (method === 'GET' || method === 'HEAD') {
    const refusal = budget.take(caller, bytes);
    if (refusal !== null) return refusal;
  } else {
    // A completed change is always reported, even above the limit.
    budget.add(caller, bytes);
  }
  res.once('close', () => budget.release(caller, bytes));
  return null;
}

/** Runs the callback when the response is sent or its client has disconnected, immediately if that has happened already. */
export function onFinished(res: Response, callback: () => void): void {
  if (isOver(res)) callback();
  else res.once('close', callback);
}

const isOver = (res: Response): boolean => res.destroyed || res.closed;
