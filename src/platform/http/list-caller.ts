/** Binds list reads to their caller, for fair queueing, rate limiting and cancellation. */
import type { Request, Response } from 'express';
import { badRequest } from '../../core/errors.js';
import type { Budget } from '../budget.js';
import type { Database } from '../mongo/driver/client.js';
import type { ListCaller, ListQueues } from '../mongo/driver/list-caller.js';
import { withListRequest } from '../mongo/driver/list-queue.js';
import { callerOf } from './caller.js';
import { consumeForMs } from './rate-limit.js';
import { onClientDisconnect } from './request-log.js';

export interface ListDeps {
  /** The database through a connection pool reserved for lists. */
  readonly listDatabase: Database;
  readonly listQueues: ListQueues;
  readonly answerBudget: Budget;
}

/** `turn`: whose queue it waits in; by default the caller's. */
export function listDatabaseFor(deps: ListDeps, req: Request, res: Response, turn = callerOf(res).userId): Database {
  let disconnected: AbortSignal | undefined;
  const caller: ListCaller = {
    userId: turn,
    tenantId: callerOf(res).tenantId ?? null,
    disconnectSignal() {
      disconnected ??= createDisconnectSignal(req, res);
      return disconnected;
    },
    consumeForMs: (ms) => consumeForMs(res, ms),
  };
  return withListRequest(deps.listDatabase, { queues: deps.listQueues, budget: deps.answerBudget, caller });
}

function createDisconnectSignal(req: Request, res: Response): AbortSignal {
  const controller = new AbortController();
  // The message appears only in the log.
  res.once(
    'close',
    onClientDisconnect(req, () => controller.abort(badRequest('the client disconnected before the end of the list'))),
  );
  return controller.signal;
}
