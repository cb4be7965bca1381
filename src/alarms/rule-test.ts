/** Dry runs: a rule over the stored packets of an object. */
import type { Caller } from '../core/access.js';
import { type Scope, scopeOf } from '../core/access.js';
import type { Entity } from '../core/entity.js';
import { badRequest, tooLarge } from '../core/errors.js';
import type { Json, JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { RuleSettings } from '../core/rule/rule.js';
import { type Edge, explainQueryTime, parseQueryTime } from '../core/time.js';
import { DAY_MS } from '../core/units.js';
import { startTurnClock, type TurnClock } from '../live/turn-clock.js';
import { streamPackets } from '../packets/packet-stream.js';
import { toJson } from '../platform/mongo/bson/json-writer.js';
import { documentAt } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { createDryRun, type DryRun } from './dry-run.js';
import { compileRule } from './evaluate.js';
import { createReportReader, readsPresence } from './past-presence.js';
import { checkReferences, loadZones } from './references.js';

export interface TestedInterval {
  readonly fromMs: number;
  readonly toMs: number;
  /** Whether it lasts until now. */
  readonly isOpen: boolean;
}

/** Parses `from` and `to`; by default the last seven days. Throws a 400 that names the field. */
export function parseInterval({ from = null, to = null }: JsonObject, nowMs: number): TestedInterval {
  const toMs = Math.min(nowMs, to === null ? nowMs : timeIn('to', to, 'last'));
  const fromMs = from === null ? toMs - 7 * DAY_MS : timeIn('from', from, 'first');
  if (fromMs > toMs) throw badRequest('from: expected a time before to');
  return { fromMs, toMs, isOpen: toMs === nowMs };
}

function timeIn(name: string, value: Json, edge: Edge): number {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  const timeMs = parseQueryTime(text, edge);
  if (timeMs !== null) return timeMs;
  throw badRequest(`${name}: ${explainQueryTime(text)}`);
}

export interface RuleTest {
  readonly caller: Caller;
  readonly settings: RuleSettings;
  readonly object: Entity;
  readonly interval: TestedInterval;
}

/** Throws a 400 for an unknown reference, and a 413 for too many packets, or too much work with them. */
export async function testRule(
  database: Database,
  { caller, settings, object, interval }: RuleTest,
): Promise<ReturnType<DryRun['end']>> {
  await checkReferences(database, caller, settings);
  const scope: Scope = scopeOf(caller);
  const { zoneOf, names } = await loadZones(database, scope, settings);
  const rule = compileRule(settings, zoneOf, names);
  const { fromMs, toMs, isOpen } = interval;
  const parts = { database, objectId: object._id, interval, turn: startTurnClock() };
  const reader = readsPresence(rule) ? createReportReader() : null;
  if (reader !== null) await readAll(parts, (packet) => reader.add(packet));
  // Nobody missed an object before there was one.
  const silentMs = Math.max(fromMs, object.time as number);
  const options = { object: toRuleObject(object), fromMs: silentMs, reports: reader?.end() ?? [] };
  const dryRun = createDryRun(rule, options);
  await readAll(parts, (packet) => dryRun.add(packet));
  return isOpen ? dryRun.end(toMs, toMs) : dryRun.end(toMs);
}

interface Reading {
  readonly database: Database;
  readonly objectId: string;
  readonly interval: TestedInterval;
  readonly turn: TurnClock;
}

/** Reads the packets in the order of time. Throws a 413 for too many, or too much work with them. */
async function readAll(
  { database, objectId, interval, turn }: Reading,
  read: (packet: JsonObject) => void,
): Promise<void> {
  const time = { from: interval.fromMs, to: interval.toMs };
  const reading = { objectIds: [objectId], time, fields: null, batchPackets: 1_000 };
  let count = 0;
  turn.pause();
  for await (const { memory, starts } of streamPackets(database, reading)) {
    count += starts.length;
    if (count > LIMITS.testedPackets)
      throw tooLarge(`more than ${LIMITS.testedPackets} packets: name a shorter interval`);
    turn.resume();
    for (const start of starts) {
      read(JSON.parse(toJson(documentAt(memory, start)).toString()) as JsonObject);
      await turn.yieldIfLong();
      if (turn.busyMs() > LIMITS.testBusyMs) {
        const limit = `takes more than ${LIMITS.testBusyMs / 1_000} s of computing time`;
        throw tooLarge(`the rule ${limit}, after ${count} packets: name a shorter interval, or a simpler condition`);
      }
    }
    turn.pause();
  }
}

/** What rules read of an object. */
export const toRuleObject = ({
  _id,
  id,
  name,
  model,
  status,
  labels,
  description,
  config,
}: JsonObject): JsonObject => ({
  _id: _id ?? null,
  id: id ?? null,
  name: name ?? null,
  model: model ?? null,
  status: status ?? null,
  labels: labels ?? null,
  description: description ?? null,
  config: config ?? {},
});
