/** What an alarm writes: its entity, the commands of its rule, and whom its webhooks tell. All of it is committed with the state. */
import { type AnyBulkWriteOperation, type Document, ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import { isObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { Position } from '../core/position-fields.js';
import { exactOf, notifiesOf } from '../core/rule/action.js';
import { findObjectIds } from '../entities/object-ids.js';
import type { TurnClock } from '../live/turn-clock.js';
import { NOTICES, toClearedNotice, toNoticeWrite } from '../notifications/notices.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { toDocument } from '../platform/mongo/schema/mapping.js';
import type { OutputWrite } from '../processing/commit.js';
import { partitionOf } from '../processing/processor.js';
import type { ActiveRule } from './active-rule.js';
import {
  type Acted,
  type Acting,
  type ActingParts,
  act,
  COMMANDS,
  type Known,
  placeOf,
  readKnown,
} from './alarm-actions.js';
import { ALARMS, type ClearReason, findStored } from './alarm-store.js';
import { toValues, toWhy } from './describe.js';
import { isKept, type WaitingStep } from './escalation.js';
import type { Raise } from './machine.js';
import type { RuleObject } from './rule-objects.js';

/** What a round writes alarms with. */
export interface WritingParts extends ActingParts {
  /** Many alarms must not hold the process up. */
  readonly turn: TurnClock;
}

/** An alarm to be raised. */
export interface RaisedAlarm extends Pick<Acting, 'rule' | 'object'> {
  readonly raise: Raise;
  readonly packetId: string | null;
  readonly position: Position | null;
  /** Whether actions follow: not from packets that came too late. */
  readonly isActing: boolean;
}

/**
 * The writes of alarms and their actions, by alarm: what they need to know is read of all of them together. Packets may be evaluated again,
 * after the history was gone: an alarm that is stored has acted. Nobody stores it meanwhile, since its partition has one owner at the
 * time of the commit.
 */
export async function raiseAlarms(
  parts: WritingParts,
  alarms: readonly RaisedAlarm[],
): Promise<ReadonlyMap<RaisedAlarm, readonly OutputWrite[]>> {
  const writes = new Map<RaisedAlarm, readonly OutputWrite[]>();
  for (let from = 0; from < alarms.length; from += LIMITS.alarmsRaisedTogether) {
    const some = alarms.slice(from, from + LIMITS.alarmsRaisedTogether);
    const stored = await findStored(
      parts.database,
      some.map(({ raise }) => raise.alarmId),
    );
    const fresh = some.filter(({ raise }) => !stored.has(raise.alarmId));
    const known = await readKnown(parts, fresh.map(toActing));
    for (const alarm of fresh) {
      writes.set(alarm, await raiseAlarm(parts, alarm, known));
      await parts.turn.yieldIfLong();
    }
  }
  return writes;
}

const toActing = ({ rule, object, isActing }: RaisedAlarm): Acting => ({
  rule,
  object,
  actions: isActing ? exactOf(rule.compiled.settings.actions) : [],
});

async function raiseAlarm(parts: WritingParts, alarm: RaisedAlarm, known: Known): Promise<readonly OutputWrite[]> {
  const { rule, object, raise, packetId, position, isActing } = alarm;
  const nowMs = parts.now();
  const { settings } = rule.compiled;
  const { commands, webhooks, actions, refusal } = act(parts, toActing(alarm), known);
  const { _id, ...fields } = toDocument(ALARMS, {
    ...placeOf(rule.stored.ownerId, object),
    _id: raise.alarmId,
    rule: rule.id,
    revision: rule.stored.revision,
    object: object.id,
    name: settings.name,
    severity: settings.severity,
    status: 'raised',
    raised: Math.round(raise.atMs),
    cleared: null,
    acknowledged: null,
    values: toValues(rule.compiled, raise.readings),
    position: position === null ? null : { lat: position.lat, lon: position.lon },
    packet: packetId,
    why: toWhy(rule.compiled, raise.readings, object.object),
    notes: [],
    reminders: 0,
    webhooks,
    actions,
    time: nowMs,
    ...(nowMs - raise.atMs > LIMITS.alarmLateMs && { late: true }),
  });
  // A replay finds it stored.
  const stored: AnyBulkWriteOperation = {
    updateOne: { filter: { _id }, update: { $setOnInsert: fields }, upsert: true },
  };
  return [
    { collection: ALARMS.name, operations: [stored] },
    ...toCommands(commands),
    ...showRefused(rule.id, refusal),
    ...(isActing ? await toNotices(parts, alarm, nowMs) : []),
  ];
}

const toCommands = (operations: AnyBulkWriteOperation[]): OutputWrite[] =>
  operations.length === 0 ? [] : [{ collection: COMMANDS.name, operations }];

/** The writes of what follows because nobody has acknowledged an alarm. */
export async function escalateAlarm(
  parts: WritingParts,
  acting: Pick<Acting, 'rule' | 'object'>,
  { alarmId, steps }: { alarmId: string; steps: readonly WaitingStep[] },
): Promise<OutputWrite[]> {
  const { escalation } = acting.rule.compiled.settings;
  const kept = steps.map(({ step, actions }) => ({
    step,
    acting: { ...acting, actions: actions.filter((action) => isKept(escalation, action)) },
  }));
  const known = await readKnown(
    parts,
    kept.map((one) => one.acting),
  );
  const all: Acted = { commands: [], webhooks: [], actions: [], refusal: null };
  for (const { step, acting: ofStep } of kept) {
    const done = act(parts, ofStep, known);
    all.commands.push(...done.commands);
    all.webhooks.push(...done.webhooks);
    all.refusal ??= done.refusal;
    all.actions.push(...done.actions.map((action) => ({ ...action, step, time: parts.now() })));
  }
  if (all.actions.length === 0) return [];
  const $set = {
    actions: { $concatArrays: [{ $ifNull: ['$actions', []] }, { $literal: all.actions }] },
    webhooks: { $setUnion: [{ $ifNull: ['$webhooks', []] }, { $literal: all.webhooks }] },
    _at: changedAt(parts.now()),
  };
  const filter = { _id: new ObjectId(alarmId) };
  return [
    { collection: ALARMS.name, operations: [{ updateOne: { filter, update: [{ $set }] } }] },
    ...toCommands(all.commands),
    ...showRefused(acting.rule.id, all.refusal),
  ];
}

const changedAt = (nowMs: number): Document => ({ $max: [nowMs, { $add: [{ $ifNull: ['$_at', 0] }, 1] }] });

/** What is to be told of it, and what follows while nobody acknowledges it. */
async function toNotices(
  { database }: WritingParts,
  { rule, object, raise }: RaisedAlarm,
  recordedMs: number,
): Promise<OutputWrite[]> {
  const { actions, escalation, remindMs } = rule.compiled.settings;
  const notify = notifiesOf(actions);
  const steps = escalation.map((step) => ({ afterMs: step.afterMs, notify: notifiesOf(step.actions) }));
  if (notify.length === 0 && steps.every((step) => step.notify.length === 0)) return [];
  const partition = partitionOf(object.id, LIMITS.partitions);
  const gateway = await findGateway(database, rule, object);
  const told = { notify, escalation: steps, remindMs, recordedMs, gateway };
  const notice = { alarmId: raise.alarmId, partition, ...told };
  return [{ collection: NOTICES, operations: [toNoticeWrite(notice)] }];
}

/** The object that `config.parent` names, where the rule asks whether its object is heard; as the owner of the rule sees it. */
async function findGateway(
  database: Database,
  { compiled, scope }: ActiveRule,
  { id, object }: RuleObject,
): Promise<string | null> {
  const parent = isObject(object.config) ? object.config.parent : null;
  const asks = compiled.singles.slice(0, compiled.whenCount).some(({ condition }) => {
    return condition.kind === 'silent' || condition.kind === 'online';
  });
  if (!asks || scope === null || typeof parent !== 'string' || parent === '') return null;
  const [gateway] = await findObjectIds(database, scope, [parent]);
  if (gateway === undefined) return null;
  return (await isBehind(database, scope, gateway, id)) ? null : gateway;
}

/** Whether a gateway is the object itself, or behind it: what goes in a circle tells nothing of who has failed. */
async function isBehind(database: Database, scope: Scope, gateway: string, objectId: string): Promise<boolean> {
  let present = gateway;
  for (let depth = 0; depth < LIMITS.gatewaysInRow; depth++) {
    if (present === objectId) return true;
    const find = () =>
      database.db.collection('objects').findOne({ _id: new ObjectId(present) }, { projection: { 'config.parent': 1 } });
    const parent: unknown = (await mapDriverErrors(find, LIMITS.databaseOperationMs))?.config?.parent;
    if (typeof parent !== 'string' || parent === '') return false;
    const [next] = await findObjectIds(database, scope, [parent]);
    if (next === undefined) return false;
    present = next;
  }
  return present === objectId;
}

/** Shows at the rule what it cannot do; null for nothing. */
export function showRefused(ruleId: string, refusal: string | null): OutputWrite[] {
  if (refusal === null) return [];
  const filter = { _id: new ObjectId(ruleId) };
  return [
    { collection: 'rules', operations: [{ updateOne: { filter, update: { $set: { disabledReason: refusal } } } }] },
  ];
}

/** Clears an alarm, unless somebody has done so, and has those told who were told of it. None ends before it began. */
export function toClearing(alarmId: string, atMs: number, reason: ClearReason, nowMs: number): OutputWrite[] {
  const filter = { _id: new ObjectId(alarmId), status: 'raised' };
  const fields = { status: 'cleared', cleared: { $max: ['$raised', Math.round(atMs)] }, clearReason: reason };
  return [
    {
      collection: ALARMS.name,
      operations: [{ updateOne: { filter, update: [{ $set: { ...fields, _at: changedAt(nowMs) } }] } }],
    },
    tellCleared(alarmId, nowMs),
  ];
}

/** Has those told who were told of an alarm that is cleared. */
export const tellCleared = (alarmId: string, nowMs: number): OutputWrite => ({
  collection: NOTICES,
  operations: [toClearedNotice(alarmId, nowMs)],
});

/** Lets the raised alarms of an object be seen by those who see it now. */
export function toFollowing({ id, owner, group, branch, access }: RuleObject): OutputWrite {
  const toIds = (ids: readonly string[]): ObjectId[] => ids.map((one) => new ObjectId(one));
  const seen = { group: new ObjectId(group), branch: toIds(branch), access: toIds(access) };
  const _withoutOwner = { $not: [{ $in: ['$owner', toIds([...access, owner])] }] };
  const filter = { object: new ObjectId(id), status: 'raised' };
  return {
    collection: ALARMS.name,
    operations: [{ updateMany: { filter, update: [{ $set: { ...seen, _withoutOwner } }] } }],
  };
}
