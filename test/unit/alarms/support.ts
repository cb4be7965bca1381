/** Runs rules over packets, as rows of a table. */
import { createDryRun, type TestedAlarm } from '../../../src/alarms/dry-run.js';
import { type CompiledRule, compileRule } from '../../../src/alarms/evaluate.js';
import { createZone } from '../../../src/core/geofence.js';
import type { JsonObject } from '../../../src/core/json.js';
import { parseRule } from '../../../src/core/rule/rule.js';

/** A circle of 100 m around 50, 10. */
export const FENCE = 'f'.repeat(24);

export const compile = (fields: JsonObject): CompiledRule =>
  compileRule(parseRule({ name: 'rule', ...fields }), () =>
    createZone([{ geometry: { type: 'Point', coordinates: [10, 50] }, radius: 100 }]),
  );

/** Packets by the minute at which they were sent; with only `online`, one that reports presence. */
export type Sent = readonly [minute: number, fields: JsonObject];

export const MINUTE_MS = 60_000;

export const toPacket = ([minute, fields]: Sent, index: number): JsonObject => ({
  _id: `p${index}`,
  time: minute * MINUTE_MS,
  online: true,
  ...fields,
});

export function run(
  fields: JsonObject,
  sent: readonly Sent[],
  { object = {}, end = 1_000 }: { object?: JsonObject; end?: number } = {},
) {
  const dryRun = createDryRun(compile(fields), { object, fromMs: 0 });
  for (const packet of sent.map(toPacket)) dryRun.add(packet);
  return dryRun.end(end * MINUTE_MS);
}

/** From when to when alarms were raised, in minutes. */
export const spansOf = (alarms: readonly Pick<TestedAlarm, 'raised' | 'cleared'>[]): (number | null)[][] =>
  alarms.map(({ raised, cleared }) => [raised / MINUTE_MS, cleared === null ? null : cleared / MINUTE_MS]);
