/** Routes of schedules beside the generic ones: sends a report now. */
import { z } from 'zod';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { getChangeable } from '../entities/write.js';
import type { AssertSendsMail } from '../notifications/channels.js';
import type { TestLimits } from '../notifications/test-limits.js';
import type { BodyDeps } from '../platform/http/body.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { ENTITY_KEY } from '../platform/http/parameters.js';
import { sendEntity } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { ANY_OBJECT, every, SUCCESS, TIME } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { askForRun } from './schedule-store.js';

export interface ScheduleDeps extends BodyDeps {
  readonly database: Database;
  readonly now: () => number;
  readonly testLimits: TestLimits;
  readonly assertSendsMail: AssertSendsMail;
}

const SCHEDULES = builtInStore('schedules');

const runNow = defineRoute({
  method: 'POST',
  path: '/api/v1/schedules/:id/run',
  name: 'runSchedule',
  tag: 'schedules',
  summary: 'Sends a report by mail now, whether its schedule is active or not',
  docs: 'Sends the [report of a schedule](reports.md#by-mail) now; `lastRun` says what became of it',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY },
  body: { schema: ANY_OBJECT.describe('Nothing'), example: {}, limitBytes: LIMITS.entityBodyBytes },
  answer: { description: 'When it is due: now', schema: every(SUCCESS, z.object({ due: TIME })) },
  errors: [404, 429],
  handle: (deps: ScheduleDeps) => async (req, res) => {
    const { _id } = await getChangeable(deps.database, SCHEDULES, scopeIn(res), String(req.params.id));
    deps.assertSendsMail();
    await deps.testLimits.countRun(callerOf(res).userId);
    const due = deps.now();
    res.locals.action = 'report asked for';
    res.locals.entityId = _id;
    await askForRun(deps.database, _id, due);
    sendEntity(res, { due });
  },
});

export const SCHEDULE_ROUTES = [runNow];
