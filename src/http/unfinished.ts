/** Answers that have not left yet: how large they are, of each caller and in all. */
import type { Response } from 'express';
import type { ApiError } from '../errors.js';
import type { Budget } from '../fairness/budget.js';
import type { Caller } from '../model/access.js';
import { LIMITS } from '../model/limits.js';

/** Counts the bytes of an answer until they have left; or gives why they may not even begin to. */
export function countUnfinished(res: Response, bytes: number): ApiError | null {
  if (bytes <= LIMITS.smallAnswerBytes || isOver(res)) return null;
  const caller = (res.locals.caller as Caller | undefined)?.userId;
  const budget = res.app.locals.answerBudget as Budget | undefined;
  // What strangers are answered is the same bytes for all of them.
  if (caller === undefined || budget === undefined) return null;
  const { method } = res.req;
  if (method === 'GET' || method === 'HEAD') {
    const refusal = budget.take(caller, bytes);
    if (refusal !== null) return refusal;
  } else {
    // What was done is said.
    budget.add(caller, bytes);
  }
  res.once('close', () => budget.giveBack(caller, bytes));
  return null;
}

/** Acts when the answer has left, or its client has; at once, where that is so already. */
export function whenOver(res: Response, act: () => void): void {
  if (isOver(res)) act();
  else res.once('close', act);
}

const isOver = (res: Response): boolean => res.destroyed || res.closed;
