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

/** For so long the condition of the last rule must hold. */
const FOR_MS = 2_000;

/** Of the last one, alarms follow from time alone. All end at once. */
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
  {
    fields: { when: { param: 't', op: '>', value: 3 }, for: '2 s' },
    forMs: FOR_MS,
    clearForMs: 0,
    hot: ({ t }) => above(t, 3),
    over: ({ t }) => below(t, 4),
  },
];

/** Says nothing, long after everything else: what holds at the end has held for long enough by then. */
const END: Document = { time: Number.MAX_SAFE_INTEGER, n: 0 };

export interface Watched {
  readonly rules: readonly SimulatedRule[];
  readonly objectIds: readonly string[];
  /** The history of some partition was gone: packets were evaluated in the order of their stamps. */
  readonly hasRefilled: boolean;
}

export function checkAlarms(server: SimulatedServer, { rules, objectIds, hasRefilled }: Watched): void {
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
      const isTimed = rule.forMs > 0;
      // A packet that was stored late may say that what time alone has raised was over before: it is cleared as it was raised.
      const spans = own.map(toSpan).filter(([raised, cleared]) => !isTimed || raised !== cleared);
      const [found, wanted] = [spans, naiveSpans(rule, isTimed ? [...packets, END] : packets)].map(inOrder);
      if (found !== wanted && !(hasRefilled && !isInOrder(packets)))
        fail(`rule ${rule.id}, object ${objectId}: alarms ${found}, and not ${wanted}`);
    }
  }
  checkCommands(alarms, server.committed('commands'));
}

/** Whether packets were stored in the order of their stamps: not where clocks differed, or an instance waited long for the database. */
const isInOrder = (packets: readonly Document[]): boolean =>
  packets.every(({ _ts }, at) => at === 0 || Number(packets[at - 1]?._ts) <= Number(_ts));

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
