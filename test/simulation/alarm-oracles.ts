/**
 * What must be true of alarms: they are raised and cleared as a naive evaluator finds from the packets that a majority has, in the order
 * of the database, and each has sent its command once.
 */
import type { Document } from 'mongodb';
import { above, both, type NaiveRule, naiveSpans, opposite, type Span } from '../support/naive-alarms.js';
import { isNumber, toNumber } from './database/compare.js';
import type { Entry } from './database/oplog.js';
import type { SimulatedServer } from './database/server.js';
import { fail } from './oracles.js';

export interface SimulatedRule extends NaiveRule {
  readonly id: string;
  /** As they are stored. */
  readonly fields: Document;
}

const below = (value: number | null | undefined, than: number): boolean | null => opposite(above(value, than - 1));

/** All three end at once, so that nothing follows from time alone. */
export const RULES: readonly Omit<SimulatedRule, 'id'>[] = [
  {
    fields: { when: { param: 't', op: '>', value: 7 }, clear: { param: 't', op: '<', value: 5 } },
    forMs: 0,
    clearForMs: 0,
    hot: ({ t }) => above(t, 7),
    over: ({ t }) => below(t, 5),
  },
  {
    fields: { when: { param: 'u', op: '>', value: 4 } },
    forMs: 0,
    clearForMs: 0,
    hot: (_, { u }) => above(u, 4),
    over: (_, { u }) => below(u, 5),
  },
  {
    fields: { when: { expr: 'last.u < 5 && p.t > 5' } },
    forMs: 0,
    clearForMs: 0,
    hot: (_, { t }, { u }) => both(below(u, 5), above(t, 5)),
    over: (_, { t }, { u }) => opposite(both(below(u, 5), above(t, 5))),
  },
];

export interface Watched {
  readonly rules: readonly SimulatedRule[];
  readonly objectIds: readonly string[];
  /** The history of some partition was gone: packets were evaluated in the order in which the clocks of the instances have them. */
  readonly hasRefilled: boolean;
  /** These clocks differed. */
  readonly hasSkewed: boolean;
}

export function checkAlarms(server: SimulatedServer, { rules, objectIds, hasRefilled, hasSkewed }: Watched): void {
  const { oplog, majority } = server;
  const entries = oplog.slice(0, majority);
  const removed = new Set(entries.filter(isObjectRemoval).map(({ id }) => String(id)));
  const alarms = server.committed('alarms');
  for (const objectId of objectIds.filter((id) => !removed.has(id))) {
    const packets = entries
      .filter(({ collection, before, after }) => collection === 'packets' && before === null && after !== null)
      .filter(({ after }) => String(after?._oid) === objectId)
      .map(({ after }) => toPlain(after as Document));
    for (const rule of rules) {
      const own = alarms.filter((alarm) => String(alarm.rule) === rule.id && String(alarm.object) === objectId);
      const [found, wanted] = [own.map(toSpan), naiveSpans(rule, packets)].map(inOrder);
      if (found !== wanted && !(hasSkewed && hasRefilled))
        fail(`rule ${rule.id}, object ${objectId}: alarms ${found}, and not ${wanted}`);
    }
  }
  checkCommands(alarms, server.committed('commands'));
}

const isObjectRemoval = ({ collection, after }: Entry): boolean => collection === 'objects' && after === null;

const toPlain = (document: Document): Document =>
  Object.fromEntries(
    Object.entries(document).map(([name, value]) => [name, isNumber(value) ? toNumber(value) : value]),
  );

const toSpan = ({ raised, cleared }: Document): Span => [Number(raised), cleared === null ? null : Number(cleared)];

const inOrder = (spans: readonly Span[]): string =>
  JSON.stringify(spans.toSorted((one, other) => one[0] - other[0] || (one[1] ?? Infinity) - (other[1] ?? Infinity)));

/** Each alarm has one command of its own. */
function checkCommands(alarms: readonly Document[], commands: readonly Document[]): void {
  const done = new Map<string, Document>();
  for (const alarm of alarms) {
    const [action, ...others] = alarm.actions as Document[];
    if (action?._id === undefined || others.length > 0) fail(`alarm ${alarm._id} has not one command`);
    done.set(String(action?._id), alarm);
  }
  for (const { _id, object } of commands) {
    if (!done.delete(String(_id))) fail(`command ${_id} of object ${object} belongs to no alarm`);
  }
  for (const [commandId, { _id }] of done) fail(`command ${commandId} of alarm ${_id} was not sent`);
}
