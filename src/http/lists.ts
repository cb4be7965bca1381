/** What a list is read from: the database as its caller asks it, who waits in turn, pays, and may leave. */
import type { Request, Response } from 'express';
import type { Asker, ListQueues } from '../db/asker.js';
import type { Database } from '../db/connect.js';
import { askedBy } from '../db/lists.js';
import { badRequest } from '../errors.js';
import type { Budget } from '../fairness/budget.js';
import { callerOf } from './caller.js';
import { payForMs } from './meter.js';
import { whenGone } from './requests.js';

export interface ListParts {
  /** The database over connections that lists have for themselves. */
  readonly listDatabase: Database;
  readonly listQueues: ListQueues;
  readonly answerBudget: Budget;
}

export function listDatabaseFor(parts: ListParts, req: Request, res: Response): Database {
  let leaving: AbortSignal | undefined;
  const asker: Asker = {
    caller: callerOf(res).userId,
    gone() {
      leaving ??= signalGone(req, res);
      return leaving;
    },
    spent: (ms) => payForMs(res, ms),
  };
  return askedBy(parts.listDatabase, { queues: parts.listQueues, budget: parts.answerBudget, asker });
}

function signalGone(req: Request, res: Response): AbortSignal {
  const leaving = new AbortController();
  // Nobody reads this but whoever reads the log.
  res.once(
    'close',
    whenGone(req, () => leaving.abort(badRequest('the client went before the end of the list'))),
  );
  return leaving.signal;
}
