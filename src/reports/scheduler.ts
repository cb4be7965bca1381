/**
 * Sends the reports that are due. One instance at a time has the lease, and works on one report at a time; tenants take turns. What was
 * due several times while no instance ran is sent once.
 */
import { toApiError } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { parseScheduledReport, type Turn, turnOf } from '../core/scheduled-report.js';
import { addReportMail } from '../notifications/report-mails.js';
import { clock } from '../platform/clock.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { acquireLease, type Lease } from '../platform/mongo/driver/lease.js';
import { composeMail, type Run, type RunDeps } from './mailed-run.js';
import { type DueOfTenant, type DueSchedule, findDue, type LastRun, loadDue, storeRun } from './schedule-store.js';

export interface SchedulerOptions extends RunDeps {
  readonly log: RunDeps['log'] & { warn(details: object, message: string): void };
}

interface State extends SchedulerOptions {
  /** The tenants that had a turn, by the number of their last one; forgotten when nothing is due. */
  readonly turns: Map<string, number>;
  turnsTaken: number;
  /** Schedules whose last run could not read the database, until when they rest, and how often that was. */
  readonly resting: Map<string, { readonly untilMs: number; readonly failures: number }>;
}

export function startScheduler(options: SchedulerOptions): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const running = run({ ...options, turns: new Map(), turnsTaken: 0, resting: new Map() }, stopping.signal);
  return {
    stop() {
      stopping.abort();
      return running;
    },
  };
}

async function run(state: State, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await workThrough(state, signal);
    } catch (error) {
      if (!signal.aborted) state.log.warn({ err: error }, 'failed to send reports that are due; retrying');
    }
    await clock.wait(LIMITS.scheduleCheckMs, { signal }).catch(() => undefined);
  }
}

async function workThrough(state: State, signal: AbortSignal): Promise<void> {
  const next = await findNext(state);
  if (next === null) return;
  const lease = await acquireLease(state.database, 'schedules', LIMITS.leaseMs);
  if (lease === null) return;
  const until = AbortSignal.any([signal, lease.lost]);
  try {
    for (let due = await findNext(state); due !== null && !until.aborted; due = await findNext(state)) {
      await work(state, due, lease, until);
    }
  } finally {
    await lease.release();
  }
}

/** Of the tenant whose last turn is the longest ago. */
async function findNext({ database, turns, resting, now }: State): Promise<DueOfTenant | null> {
  const resters = [...resting].filter(([, { untilMs }]) => untilMs > clock.steadyMs()).map(([id]) => id);
  const due = await findDue(database, now(), resters);
  const turnOf = ({ tenant }: DueOfTenant): number => turns.get(tenant) ?? 0;
  const [first = null, ...others] = due;
  if (first === null) turns.clear();
  return others.reduce((best, one) => (best !== null && turnOf(one) < turnOf(best) ? one : best), first);
}

async function work(
  state: State,
  { tenant, scheduleId }: DueOfTenant,
  lease: Lease,
  signal: AbortSignal,
): Promise<void> {
  const { turns, resting, log, now } = state;
  turns.set(tenant, ++state.turnsTaken);
  const schedule = await loadDue(state.database, scheduleId, now());
  if (schedule === null) return;
  try {
    await runSchedule(state, schedule, lease, signal);
    resting.delete(scheduleId);
  } catch (error) {
    if (signal.aborted) return;
    const failures = (resting.get(scheduleId)?.failures ?? 0) + 1;
    resting.set(scheduleId, { untilMs: clock.steadyMs() + LIMITS.scheduleRetryMs, failures });
    log.warn({ err: error, schedule: scheduleId }, 'failed to send a report; retrying');
  }
}

/** Throws 503 where another attempt may succeed, and the reason of the signal. */
async function runSchedule(state: State, schedule: DueSchedule, lease: Lease, signal: AbortSignal): Promise<void> {
  const { database, now } = state;
  const settings = parseScheduledReport(schedule.fields);
  const timeMs = now();
  const turn = turnOf(settings, schedule.waiting, timeMs);
  const run = turn.atMs === null ? null : { schedule, settings, atMs: turn.atMs, isLate: isLate(turn, timeMs) };
  const composed = run === null ? null : await compose(state, run, signal);
  signal.throwIfAborted();
  const lastRun = run === null || composed === null ? null : toLastRun(run, composed, timeMs);
  await mapDriverErrors(() =>
    database.client.withSession((session) =>
      session.withTransaction(async () => {
        await lease.fence(session);
        await storeRun(database, schedule, turn, { lastRun, session });
        if (composed === null || typeof composed === 'string') return;
        await addReportMail(database, composed.mail, { lanes: composed.lanes, nowMs: now(), session });
      }),
    ),
  );
}

const isLate = ({ sinceMs }: Turn, nowMs: number): boolean => nowMs - sinceMs > LIMITS.scheduleLateMs;

type Composed = Awaited<ReturnType<typeof composeMail>>;

const toLastRun = (run: Run, composed: Composed | string, timeMs: number): LastRun => ({
  time: timeMs,
  due: run.atMs,
  late: run.isLate,
  status: typeof composed === 'string' ? 'failed' : 'sending',
  mails: typeof composed === 'string' ? 0 : composed.lanes.open.length + composed.lanes.full.length,
  error: typeof composed === 'string' ? composed : null,
});

/** The mail, or why there is none. */
async function compose(state: State, run: Run, signal: AbortSignal): Promise<Composed | string> {
  try {
    return await composeMail(state, run, signal);
  } catch (thrown) {
    signal.throwIfAborted();
    const error = toApiError(thrown);
    const { failures = 0 } = state.resting.get(run.schedule.id) ?? {};
    if (error.status === 503 && failures + 1 < LIMITS.scheduleAttempts) throw error;
    if (error.status === 500) state.log.error({ err: error.cause, schedule: run.schedule.id }, 'report not sent');
    return error.status === 500 ? 'internal error' : error.message;
  }
}
