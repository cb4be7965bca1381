/** Schedules of reports: checks what they ask for, to whom, and how many there are; and says when they are due. */
import { isDeepStrictEqual } from 'node:util';
import { type Caller, scopeOf, withObjectIds } from '../core/access.js';
import { merge, ownFields } from '../core/entity.js';
import { ApiError, badRequest, forbidden } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { dueAfter, intervalAt, parseScheduledReport, type ScheduledReport } from '../core/scheduled-report.js';
import { builtInStore } from '../core/stores.js';
import { getReferenced, type HookDeps, type StoreHooks, toNewEntity } from '../entities/hooks.js';
import { inSequence } from '../entities/in-sequence.js';
import { findPlace } from '../entities/place.js';
import { getEntity } from '../entities/read.js';
import { createEntity } from '../entities/write.js';
import type { AssertSendsMail } from '../notifications/channels.js';
import { parseReportInterval } from './interval.js';
import { createReport } from './kinds.js';
import { parseObjectSelection } from './objects.js';
import { countSchedules } from './schedule-store.js';

const SCHEDULES = builtInStore('schedules');

/** What decides what is sent, and to whom: with the rights of its owner, whom nobody else may use for it. */
const DECISIVE = ['report', 'query', 'interval', 'hours', 'to'];
/** What decides when. */
const TIMES = ['cron', 'tz', 'active'];

export interface ScheduleHookDeps extends HookDeps {
  readonly assertSendsMail: AssertSendsMail;
}

export function scheduleHooks({ database, now, assertSendsMail }: ScheduleHookDeps): StoreHooks {
  const check = async (caller: Caller, settings: ScheduledReport): Promise<void> => {
    assertSendsMail();
    checkQuery(settings, now());
    const deps = { database, caller };
    const { users, group } = settings.to;
    const see = (field: string, store: string, id: string) => getReferenced(deps, field, builtInStore(store), id);
    if (settings.query.group) await see('query.group', 'groups', settings.query.group);
    if (group !== null) await see('to.group', 'groups', group);
    for (const [index, id] of users.entries()) await see(`to.users[${index}]`, 'users', id);
  };
  const toDue = ({ isActive, ...times }: ScheduledReport, lastDueMs: number | null): number | null =>
    isActive ? dueAfter(times, now(), lastDueMs) : null;
  return {
    async create(caller, { fields, group }) {
      const settings = parseScheduledReport(fields);
      const place = await findPlace(database, scopeOf(caller), group);
      await check(caller, settings);
      const started = { due: toDue(settings, null), asked: null, lastDue: null, lastRun: null };
      const stored = { ...fields, ...toScopes(caller), ...started };
      return inSequence(`schedules of ${place.branch[1] ?? place.branch[0]}`, async () => {
        if ((await countSchedules(database, place.branch)) >= LIMITS.schedulesPerTenant) {
          throw badRequest(`there are ${LIMITS.schedulesPerTenant} schedules of your organisation already`);
        }
        return createEntity(database, SCHEDULES, toNewEntity(caller, stored, place, now()));
      });
    },
    async preparePatch(caller, key, patch) {
      const stored = await getEntity(database, SCHEDULES, scopeOf(caller), key);
      const isOther = (name: string): boolean => name in patch && !isDeepStrictEqual(patch[name], stored[name]);
      const settings = parseScheduledReport(ownFields(SCHEDULES, merge(stored, patch, SCHEDULES.replaced)));
      const isDecided = DECISIVE.some(isOther);
      if (isDecided && stored.owner !== caller.userId) {
        throw forbidden(`only its owner changes ${DECISIVE.join(', ')}: it is sent with the owner's rights`);
      }
      if (isDecided) await check(caller, settings);
      return {
        ...patch,
        ...(isDecided && toScopes(caller)),
        ...(TIMES.some(isOther) && { due: toDue(settings, stored.lastDue as number | null) }),
      };
    },
  };
}

/** A token with scopes sets up nothing that sends more than it may read. */
const toScopes = (caller: Caller): JsonObject => ({
  _scopes: caller.scopes && withObjectIds(caller.scopes, scopeOf(caller)),
});

/** As the report itself checks it. */
function checkQuery(settings: ScheduledReport, nowMs: number): void {
  const { report, query, tz } = settings;
  const { fromMs, toMs } = intervalAt(settings, nowMs);
  try {
    parseObjectSelection(query);
    const interval = parseReportInterval({ ...query, tz, from: String(fromMs), to: String(toMs) }, nowMs);
    createReport(report, query, interval, nowMs);
  } catch (error) {
    throw error instanceof ApiError && error.status === 400 ? badRequest(`query.${error.message}`) : error;
  }
}
