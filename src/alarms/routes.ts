/** Routes of rules and alarms beside the generic ones: dry runs, and what people do with alarms. */
import type { Request, Response } from 'express';
import { z } from 'zod';
import { mayCallObject, scopeOf } from '../core/access.js';
import { type Entity, isId, parseNewEntity } from '../core/entity.js';
import { badRequest, forbidden, toApiError } from '../core/errors.js';
import { isObject, type JsonObject, parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { parseRule, type RuleSettings } from '../core/rule/rule.js';
import { builtInStore } from '../core/stores.js';
import { getEntity } from '../entities/read.js';
import type { BodyDeps } from '../platform/http/body.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { ENTITY_KEY, EXAMPLE_ID, ID } from '../platform/http/parameters.js';
import { sendEntity } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { ANY_OBJECT, every, literal, SUCCESS } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { readHistory } from '../platform/mongo/driver/list-queue.js';
import { type Actor, acknowledgeAlarm, acknowledgeMany, addNote, clearAlarm, parseNote } from './alarm-store.js';
import { parseInterval, testRule } from './rule-test.js';

export interface AlarmDeps extends ListDeps, BodyDeps {
  readonly database: Database;
  readonly now: () => number;
}

const OBJECTS = builtInStore('objects');
const RULES = builtInStore('rules');

const TIME_GIVEN = literal({ type: ['integer', 'string'] });
const TIME_OR_NULL = z.int().nullable();
const TESTED = {
  object: z.string().describe('The object, by `_id` or own id'),
  from: TIME_GIVEN.describe('Milliseconds since the epoch, or ISO 8601; by default seven days before `to`'),
  to: TIME_GIVEN.describe('The same, included; now by default'),
};
const WHY = z.object({
  place: z.string().describe('Where the part is in the rule'),
  condition: z.string().describe('The part in words'),
  holds: z.boolean().nullable().describe('`null`: not known'),
  value: z.unknown().describe('What it read'),
  since: TIME_OR_NULL.describe('Since when that is so'),
});
const RESULT = every(
  SUCCESS,
  z.object({
    alarms: z
      .array(
        z.object({
          raised: z.int(),
          cleared: TIME_OR_NULL,
          packet: z.string().nullable().describe('The packet that completed it'),
          values: z.record(z.string(), z.unknown()),
          why: z.array(WHY),
        }),
      )
      .describe(`The alarms that the rule would have raised, the first ${LIMITS.testedAlarms}`),
    evaluated: z.int().describe('How many packets were evaluated'),
    nearly: z
      .array(
        z.object({
          place: z.string(),
          condition: z.string(),
          heldMs: z.int().describe('The longest time for which it held'),
          since: TIME_OR_NULL.describe('Since when it held that long'),
          forMs: z.int().describe('How long it has to hold'),
          closest: z.unknown().describe('The value that was closest to what is wanted, where that has a measure'),
          at: TIME_OR_NULL.describe('When that was'),
        }),
      )
      .describe('How near each part came'),
  }),
);

const testGiven = defineRoute({
  method: 'POST',
  path: '/api/v1/rules/test',
  name: 'testRule',
  tag: 'rules',
  summary: 'Evaluates a rule, which is not stored, over packets of the past',
  docs: 'Evaluates a rule, which is not stored, over [packets of the past](alarms.md#try-a-rule): `{rule, object, from, to}`',
  auth: 'permission',
  limit: 'list',
  body: {
    schema: z.object({ rule: z.record(z.string(), z.unknown()), ...TESTED }).partial({ from: true, to: true }),
    example: { rule: { name: 'Too warm', when: { param: 'temperature', op: '>', value: 8 } }, object: 'truck-7' },
    isRequired: true,
    limitBytes: LIMITS.entityBodyBytes,
  },
  answer: { description: 'What the rule would have done', schema: RESULT },
  errors: [413],
  handle: (deps: AlarmDeps) => async (req, res) => {
    const { rule, ...asked } = parseObject(req.body ?? {});
    if (!isObject(rule)) throw badRequest('rule: expected a rule');
    await sendTest(deps, req, res, {
      settings: parseRule(parseNewEntity(RULES, { name: 'rule', ...rule }).fields),
      asked,
    });
  },
});

const testStored = defineRoute({
  method: 'POST',
  path: '/api/v1/rules/:id/test',
  name: 'testStoredRule',
  tag: 'rules',
  summary: 'Evaluates a rule over packets of the past',
  docs: 'Evaluates a rule over [packets of the past](alarms.md#try-a-rule): `{object, from, to}`',
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  body: {
    schema: z.object(TESTED).partial({ from: true, to: true }),
    example: { object: 'truck-7', from: '2026-01-01' },
    isRequired: true,
    limitBytes: LIMITS.entityBodyBytes,
  },
  answer: { description: 'What the rule would have done', schema: RESULT },
  errors: [404, 413],
  handle: (deps: AlarmDeps) => async (req, res) => {
    const stored = await getEntity(deps.database, RULES, scopeIn(res), String(req.params.id));
    await sendTest(deps, req, res, { settings: parseRule(stored), asked: parseObject(req.body ?? {}) });
  },
});

async function sendTest(
  deps: AlarmDeps,
  req: Request,
  res: Response,
  { settings, asked }: { settings: RuleSettings; asked: JsonObject },
): Promise<void> {
  const caller = callerOf(res);
  const interval = parseInterval(asked, deps.now());
  if (typeof asked.object !== 'string') throw badRequest('object: expected the _id or own id of an object');
  const object = await findObject(deps, res, asked.object);
  // Its packets are read.
  const named = { objectId: object._id, ownId: String(object.id) };
  if (!mayCallObject(caller, named, 'GET', ['packets'])) throw forbidden();
  const result = await readHistory(listDatabaseFor(deps, req, res), (database) =>
    testRule(database, { caller, settings, object, interval }),
  );
  sendEntity(res, { ...result } as unknown as JsonObject);
}

async function findObject({ database }: AlarmDeps, res: Response, key: string): Promise<Entity> {
  try {
    return await getEntity(database, OBJECTS, scopeIn(res), key);
  } catch (error) {
    throw toApiError(error).status === 404 ? badRequest('object: there is no such object') : error;
  }
}

const ALARM_ANSWER = every(SUCCESS, ANY_OBJECT);
const ALARM = { id: ENTITY_KEY };
const NOTE = {
  schema: z.object({ note: z.string().max(LIMITS.alarmNoteCharacters).nullish() }),
  example: { note: 'Someone is on the way' },
  limitBytes: LIMITS.entityBodyBytes,
};

const actorIn = ({ now }: AlarmDeps, res: Response): Actor => {
  const caller = callerOf(res);
  return { userId: caller.userId, scope: scopeOf(caller), nowMs: now() };
};

const acknowledge = defineRoute({
  method: 'POST',
  path: '/api/v1/alarms/:id/acknowledge',
  name: 'acknowledgeAlarm',
  tag: 'alarms',
  summary: 'Acknowledges an alarm',
  docs: 'Acknowledges an [alarm](alarms.md#alarms): `{note}`; the first acknowledgement counts',
  auth: 'permission',
  limit: 'request',
  params: ALARM,
  body: NOTE,
  answer: { description: 'The alarm', schema: ALARM_ANSWER },
  errors: [404],
  handle: (deps: AlarmDeps) => async (req, res) => {
    const note = parseNote(parseObject(req.body ?? {}).note, 'note');
    sendEntity(res, await acknowledgeAlarm(deps.database, String(req.params.id), actorIn(deps, res), note));
  },
});

const clear = defineRoute({
  method: 'POST',
  path: '/api/v1/alarms/:id/clear',
  name: 'clearAlarm',
  tag: 'alarms',
  summary: 'Clears an alarm',
  docs: 'Clears an alarm, whatever its condition: `{note}`',
  auth: 'permission',
  limit: 'request',
  params: ALARM,
  body: NOTE,
  answer: { description: 'The alarm', schema: ALARM_ANSWER },
  errors: [404],
  handle: (deps: AlarmDeps) => async (req, res) => {
    const note = parseNote(parseObject(req.body ?? {}).note, 'note');
    sendEntity(res, await clearAlarm(deps.database, String(req.params.id), actorIn(deps, res), note));
  },
});

const note = defineRoute({
  method: 'POST',
  path: '/api/v1/alarms/:id/notes',
  name: 'addAlarmNote',
  tag: 'alarms',
  summary: 'Adds a note to an alarm',
  docs: 'Adds a note to an alarm: `{text}`',
  auth: 'permission',
  limit: 'request',
  params: ALARM,
  body: {
    schema: z.object({ text: z.string().min(1).max(LIMITS.alarmNoteCharacters) }),
    example: { text: 'The door was open' },
    isRequired: true,
    limitBytes: LIMITS.entityBodyBytes,
  },
  answer: { description: 'The alarm', schema: ALARM_ANSWER },
  errors: [404, 409],
  handle: (deps: AlarmDeps) => async (req, res) => {
    const text = parseNote(parseObject(req.body ?? {}).text, 'text', true) as string;
    sendEntity(res, await addNote(deps.database, String(req.params.id), actorIn(deps, res), text));
  },
});

const acknowledgeAll = defineRoute({
  method: 'POST',
  path: '/api/v1/alarms/acknowledge',
  name: 'acknowledgeAlarms',
  tag: 'alarms',
  summary: 'Acknowledges many alarms',
  docs: 'Acknowledges many alarms: `{ids, note}`',
  auth: 'permission',
  limit: 'list',
  body: {
    schema: z.object({ ids: z.array(ID).max(LIMITS.bulkEntities), note: z.string().nullish() }),
    example: { ids: [EXAMPLE_ID] },
    isRequired: true,
    limitBytes: LIMITS.entityBodyBytes,
  },
  answer: {
    description: 'How many were acknowledged now',
    schema: every(
      SUCCESS,
      z.object({
        count: z.int().describe('How many were named'),
        done: z.int().describe('How many of these were acknowledged now'),
        failed: z.array(z.object({ _id: z.string(), code: z.string() })).describe('Those that are not there'),
      }),
    ),
  },
  handle: (deps: AlarmDeps) => async (req, res) => {
    const { ids, note: text } = parseObject(req.body ?? {});
    if (!Array.isArray(ids) || ids.length > LIMITS.bulkEntities || !ids.every(isId)) {
      throw badRequest(`ids: expected a list of at most ${LIMITS.bulkEntities} _ids`);
    }
    const named = [...new Set(ids.map((id) => id.toLowerCase()))];
    const { done, missing } = await acknowledgeMany(deps.database, named, actorIn(deps, res), parseNote(text, 'note'));
    const failed = missing.map((_id) => ({ _id, code: '404' }));
    sendEntity(res, { count: named.length, done, failed });
  },
});

export const ALARM_ROUTES = [testGiven, testStored, acknowledgeAll, acknowledge, clear, note];
