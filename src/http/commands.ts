/** Commands to control objects: sent, listed, waited for, and ended by the device that fetched them. */
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { Identify } from '../auth/identify.js';
import {
  finishCommand,
  followAccess,
  isQueueFull,
  isWithoutOwner,
  listCommands,
  newCommandId,
  summarizeCommands,
} from '../db/commands.js';
import type { Database } from '../db/connect.js';
import { getEntity } from '../db/entities.js';
import type { ModelFinder } from '../db/models.js';
import type { JsonPage } from '../db/pages.js';
import { createEntity } from '../db/writes.js';
import { badRequest, tooManyRequests } from '../errors.js';
import { newCommand, readCommand, readOutcome, readStatuses, readTtl } from '../model/command.js';
import type { Entity } from '../model/entity.js';
import { LIMITS } from '../model/limits.js';
import { builtInStore } from '../model/stores.js';
import { sendEntity, sendJson, sendPage } from './answer.js';
import type { Arrivals } from './arrivals.js';
import { type BodyParts, jsonBody } from './body.js';
import { callerOf, checkCaller, scopeIn } from './caller.js';
import { only } from './failure.js';
import { type ListParts, listDatabaseFor } from './lists.js';
import { readListQuery, readText } from './query.js';
import { whenGone } from './requests.js';

export interface CommandParts extends ListParts, BodyParts {
  readonly database: Database;
  readonly models: ModelFinder;
  readonly arrivals: Arrivals;
  readonly identify: Identify;
  readonly now: () => number;
}

type Handler = (parts: CommandParts) => RequestHandler;

const OBJECTS = builtInStore('objects');
const COMMANDS = builtInStore('commands');

export function createCommandRouter(parts: CommandParts): Router {
  const router = Router();
  router.route('/objects/:id/commands').get(list(parts)).all(only('GET'));
  router
    .route('/objects/:id/commands/:commandID/result')
    .post(jsonBody(LIMITS.entityBodyBytes, parts, finish(parts)))
    .all(only('POST'));
  router.use(createSendRouter(parts));
  return router;
}

/** interface, "Object endpoints": the command path exists with the prefix api/v1 and without it. */
export function createSendRouter(parts: CommandParts): Router {
  const router = Router();
  router
    .route('/objects/:id/commands/:command')
    .post(jsonBody(LIMITS.entityBodyBytes, parts, send(parts)))
    .all(only('POST'));
  return router;
}

const getObject = ({ database }: CommandParts, req: Request, res: Response): Promise<Entity> =>
  getEntity(database, OBJECTS, scopeIn(res), String(req.params.id));

const send: Handler = (parts) => async (req, res) => {
  const [caller, nowMs] = [callerOf(res), parts.now()];
  const object = await getObject(parts, req, res);
  const declared = await parts.models.declarationsOf(object.model as string);
  const wanted = readCommand(String(req.params.command), req.body, declared);
  const ttlMs = readTtl(readText(req.query, 'ttl'));
  if (await isQueueFull(parts.database, object._id)) {
    const retryAfterS = LIMITS.expiryCheckMs / 1_000;
    throw tooManyRequests(retryAfterS, `${LIMITS.commandsWaiting} commands wait for the object already`);
  }
  const { group, branch, access } = object;
  // Who sees the object sees what was commanded to it.
  const common = { _id: newCommandId(nowMs), owner: caller.userId, group, branch, access, time: nowMs };
  const stored = await createEntity(parts.database, COMMANDS, {
    ...newCommand(object._id, { ...wanted, ttlMs }, nowMs),
    ...common,
    _withoutOwner: isWithoutOwner(object, caller.userId),
  });
  // Shared, or not any more, since the object was read.
  await followAccess(parts.database, object._id, { commandId: stored._id, access });
  res.setHeader('Location', `/api/v1/commands/${stored._id}`);
  sendJson(res, JSON.stringify({ success: true }));
};

const list: Handler = (parts) => async (req, res) => {
  const query = readListQuery(req.query);
  const statuses = readStatuses(readText(req.query, 'status'));
  const waitMs = readWait(readText(req.query, 'wait'));
  const { _id: objectId } = await getObject(parts, req, res);
  const selection = () => ({ objectId, statuses, nowMs: parts.now() });
  const database = listDatabaseFor(parts, req, res);
  if (query.kind === 'summary') {
    if (waitMs > 0) throw badRequest('wait: cannot be combined with meta');
    sendJson(res, await summarizeCommands(database, scopeIn(res), selection(), query));
    return;
  }
  const read = () => listCommands(database, scopeIn(res), selection(), query);
  const page = await (waitMs > 0 && query.limit > 0 ? awaitPage(parts, req, res, { objectId, waitMs, read }) : read());
  sendPage(req, res, query, page);
};

/** Reads, and again at every news of the object's commands, until there is something or the time is over. */
async function awaitPage(
  parts: CommandParts,
  req: Request,
  res: Response,
  { objectId, waitMs, read }: { objectId: string; waitMs: number; read: () => Promise<JsonPage> },
): Promise<JsonPage> {
  const untilMs = performance.now() + waitMs;
  const watch = parts.arrivals.watch(objectId, callerOf(res).userId);
  res.once('close', whenGone(req, watch.end));
  try {
    for (;;) {
      const page = await read();
      if (page.count > 0 || !(await watch.next(untilMs - performance.now()))) return page;
      // Rights that were lost meanwhile are lost for this request, too.
      await checkCaller(parts.identify, req, res);
      await getObject(parts, req, res);
    }
  } finally {
    watch.end();
  }
}

function readWait(text: string | null): number {
  if (text === null) return 0;
  const waitMs = /^\d{1,3}(\.\d{1,3})?$/.test(text) ? Number(text) * 1_000 : Number.NaN;
  if (waitMs <= LIMITS.commandWaitMs) return waitMs;
  throw badRequest(`wait: expected seconds, at most ${LIMITS.commandWaitMs / 1_000}`);
}

const finish: Handler = (parts) => async (req, res) => {
  const { _id: objectId } = await getObject(parts, req, res);
  const named = { objectId, commandId: String(req.params.commandID) };
  sendEntity(res, await finishCommand(parts.database, named, readOutcome(req.body ?? {}), parts.now()));
};
