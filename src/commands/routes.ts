/** Routes: send commands to objects, list them or wait for them, and report their results. */

import type { Request, Response } from 'express';
import { z } from 'zod';
import { authorize } from '../accounts/authenticate.js';
import type { Identify } from '../accounts/identify.js';
import { COMMAND_STATUSES, newCommand, parseCommand, parseOutcome, parseStatuses, parseTtl } from '../core/command.js';
import type { Entity } from '../core/entity.js';
import { badRequest, tooManyRequests } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { getEntity } from '../entities/read.js';
import { createEntity } from '../entities/write.js';
import type { ModelFinder } from '../packets/models.js';
import { clock } from '../platform/clock.js';
import type { BodyDeps } from '../platform/http/body.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { LIST_QUERY, parseListQuery } from '../platform/http/list-params.js';
import { ENTITY_KEY, idParameter } from '../platform/http/parameters.js';
import { parseText } from '../platform/http/query-params.js';
import { onClientDisconnect } from '../platform/http/request-log.js';
import { sendEntity, sendJson, sendPage, toAddress } from '../platform/http/responses.js';
import { defineRoute, type Route } from '../platform/http/route.js';
import { ANY_OBJECT, entityOf, named, pageOf, SUCCESS } from '../platform/http/schema.js';
import type { JsonPage } from '../platform/mongo/bson/raw-cursor.js';
import type { Database } from '../platform/mongo/driver/client.js';
import {
  finishCommand,
  followObject,
  isHiddenFromOwner,
  isQueueFull,
  listCommands,
  newCommandId,
  summarizeCommands,
} from './command-store.js';
import type { CommandWaiters } from './waiters.js';

export interface CommandDeps extends ListDeps, BodyDeps {
  readonly database: Database;
  readonly models: ModelFinder;
  readonly commandWaiters: CommandWaiters;
  readonly identify: Identify;
  readonly now: () => number;
}

const OBJECTS = builtInStore('objects');
const COMMANDS = builtInStore('commands');

/** What a device reports about a command. */
export const OUTCOME = z
  .object({
    status: z.enum(['done', 'failed']),
    result: z.unknown().optional().describe(`Any JSON of at most ${LIMITS.commandResultCharacters} characters`),
  })
  .meta({ id: 'Outcome' });

const sendCommand = defineRoute({
  method: 'POST',
  path: '/api/v1/objects/:id/commands/:command',
  name: 'sendCommand',
  tag: 'commands',
  summary: 'Creates a command',
  docs: 'Creates a command. The body contains its parameters or is empty; accepts `ttl`',
  auth: 'permission',
  limit: 'request',
  params: {
    id: ENTITY_KEY,
    command: {
      schema: z.string().regex(/^[^\s/+#]{1,64}$/),
      example: 'setInterval',
      description: 'The name of the command',
    },
  },
  query: {
    ttl: {
      schema: z.string().meta({ examples: ['10 min'] }),
      example: '10 min',
      description: 'The lifetime of the command: a duration or milliseconds; one day by default',
    },
  },
  body: {
    schema: ANY_OBJECT.describe('The parameters, merged over the defaults of the model'),
    example: { seconds: 10 },
    limitBytes: LIMITS.entityBodyBytes,
  },
  answer: {
    description: 'The command is in the journal; `Location` contains its path',
    schema: SUCCESS,
    headers: ['Location'],
  },
  errors: [404, 409],
  handle: (deps: CommandDeps) => async (req, res) => {
    const caller = callerOf(res);
    const nowMs = deps.now();
    const object = await getObject(deps, req, res);
    const declared = await deps.models.declarationsOf(object.model as string);
    const command = parseCommand(String(req.params.command), req.body, declared);
    const ttlMs = parseTtl(parseText(req.query, 'ttl'));
    if (await isQueueFull(deps.database, object._id)) {
      const retryAfterS = LIMITS.expiryCheckMs / 1_000;
      throw tooManyRequests(retryAfterS, `${LIMITS.commandsWaiting} commands wait for the object already`);
    }
    const { group, branch, access } = object;
    // A command has the same audience as its object.
    const common = { _id: newCommandId(nowMs), owner: caller.userId, group, branch, access, time: nowMs };
    const stored = await createEntity(deps.database, COMMANDS, {
      ...newCommand(object._id, { ...command, ttlMs }, nowMs),
      ...common,
      _withoutOwner: isHiddenFromOwner(object, caller.userId),
    });
    // The object may have been shared or moved since it was read.
    await followObject(deps.database, object._id, { entityId: stored._id, access, branch });
    res.setHeader('Location', toAddress(req, `/api/v1/commands/${stored._id}`));
    sendJson(res, JSON.stringify({ success: true }));
  },
});

const sendCommandUnprefixed: Route<CommandDeps> = {
  ...sendCommand,
  path: '/objects/:id/commands/:command',
  name: 'sendCommandUnprefixed',
  docs: 'The same',
};

const listCommandsOfObject = defineRoute({
  method: 'GET',
  path: '/api/v1/objects/:id/commands',
  name: 'listCommandsOfObject',
  tag: 'commands',
  summary: 'The commands of an object',
  docs: 'The [commands](commands.md) of an object; accepts [list parameters](#list-parameters), `status` and `wait`',
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  query: {
    ...LIST_QUERY,
    status: {
      schema: z.array(z.enum(COMMAND_STATUSES)),
      example: ['queued'],
      description: 'Only commands with these statuses; expired commands do not count as waiting',
    },
    wait: {
      schema: z
        .number()
        .min(0)
        .max(LIMITS.commandWaitMs / 1_000)
        .default(0),
      example: 0,
      description: 'Seconds to wait until there is a command; not with `meta`',
    },
  },
  answer: {
    description: 'The commands, in the order of their execution',
    schema: pageOf(named('CommandFields')),
    headers: ['Link'],
  },
  errors: [404, 413],
  handle: (deps: CommandDeps) => async (req, res) => {
    const query = parseListQuery(req.query);
    const statuses = parseStatuses(parseText(req.query, 'status'));
    const waitMs = parseWait(parseText(req.query, 'wait'));
    const { _id: objectId } = await getObject(deps, req, res);
    const selection = () => ({ objectId, statuses, nowMs: deps.now() });
    const database = listDatabaseFor(deps, req, res);
    if (query.kind === 'summary') {
      if (waitMs > 0) throw badRequest('wait: cannot be combined with meta');
      sendJson(res, await summarizeCommands(database, scopeIn(res), selection(), query));
      return;
    }
    const read = () => listCommands(database, scopeIn(res), selection(), query);
    const page = await (waitMs > 0 && query.limit > 0 ? awaitPage(deps, req, res, { objectId, waitMs, read }) : read());
    sendPage(req, res, query, page);
  },
});

const endCommand = defineRoute({
  method: 'POST',
  path: '/api/v1/objects/:id/commands/:commandID/result',
  name: 'endCommand',
  tag: 'commands',
  summary: 'Reports the result of a command',
  docs: 'Reports the result of a command: `{status, result}`; returns the command',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY, commandID: idParameter('The `_id` of the command') },
  body: {
    schema: OUTCOME,
    example: { status: 'done', result: { seconds: 10 } },
    isRequired: true,
    limitBytes: LIMITS.entityBodyBytes,
  },
  answer: { description: 'The command with its final status', schema: entityOf('CommandFields') },
  errors: [404, 409],
  handle: (deps: CommandDeps) => async (req, res) => {
    const { _id: objectId } = await getObject(deps, req, res);
    const named = { objectId, commandId: String(req.params.commandID) };
    sendEntity(res, await finishCommand(deps.database, named, parseOutcome(req.body ?? {}), deps.now()));
  },
});

/** The command path exists with and without the prefix `/api/v1` (docs/reference/http-api.md). */
export const COMMAND_ROUTES = [sendCommand, sendCommandUnprefixed, listCommandsOfObject, endCommand];

/** A device carries out what follows from the right to see its object, which an election must not undo. */
const getObject = ({ database }: CommandDeps, req: Request, res: Response): Promise<Entity> =>
  getEntity(database, OBJECTS, scopeIn(res), String(req.params.id), { isCommitted: true });

/** Reads the list, and reads again at each change of the object's commands, until it is not empty or the time is over. */
async function awaitPage(
  deps: CommandDeps,
  req: Request,
  res: Response,
  { objectId, waitMs, read }: { objectId: string; waitMs: number; read: () => Promise<JsonPage> },
): Promise<JsonPage> {
  const untilMs = clock.steadyMs() + waitMs;
  const waiter = deps.commandWaiters.add(objectId, callerOf(res).userId);
  res.once('close', onClientDisconnect(req, waiter.end));
  try {
    for (;;) {
      const page = await read();
      if (page.count > 0 || !(await waiter.next(untilMs - clock.steadyMs()))) return page;
      // The caller may have lost permissions while the request was waiting.
      await authorize(deps.identify, req, res);
      await getObject(deps, req, res);
    }
  } finally {
    waiter.end();
  }
}

function parseWait(text: string | null): number {
  if (text === null) return 0;
  const waitMs = /^\d{1,3}(\.\d{1,3})?$/.test(text) ? Number(text) * 1_000 : Number.NaN;
  if (waitMs <= LIMITS.commandWaitMs) return waitMs;
  throw badRequest(`wait: expected seconds, at most ${LIMITS.commandWaitMs / 1_000}`);
}
