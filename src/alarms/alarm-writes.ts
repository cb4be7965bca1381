/** What an alarm writes: its entity, the commands of its rule, and whom its webhooks tell. All of it is committed with the state. */
import { type AnyBulkWriteOperation, type Document, ObjectId } from 'mongodb';
import { countOfRule, isHiddenFromOwner, isQueueFull, newCommandId } from '../commands/command-store.js';
import type { Scope } from '../core/access.js';
import { newCommand, parseCommand } from '../core/command.js';
import { toApiError } from '../core/errors.js';
import { isObject, type JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { Declarations } from '../core/model.js';
import type { Position } from '../core/position-fields.js';
import { type ExactAction, exactOf, notifiesOf } from '../core/rule/action.js';
import { builtInStore } from '../core/stores.js';
import { findObjectIds } from '../entities/object-ids.js';
import { NOTICES, toClearedNotice, toNoticeWrite } from '../notifications/notices.js';
import type { ModelFinder } from '../packets/models.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { toDocument } from '../platform/mongo/schema/mapping.js';
import type { OutputWrite } from '../processing/commit.js';
import { partitionOf } from '../processing/processor.js';
import type { ActiveRule } from './active-rule.js';
import { ALARMS, type ClearReason, isStored } from './alarm-store.js';
import { toValues, toWhy } from './describe.js';
import { isKept, type WaitingStep } from './escalation.js';
import type { Raise } from './machine.js';
import { findVisibleHandlers } from './references.js';
import type { RuleObject } from './rule-objects.js';
import type { RuleRegistry } from './rule-registry.js';

const COMMANDS = builtInStore('commands');

export interface AlarmParts {
  readonly database: Database;
  readonly registry: RuleRegistry;
  readonly models: ModelFinder;
  readonly now: () => number;
  /** A rule has sent so many commands to an object that it sends no more for some time. */
  readonly onHeldBack: (held: HeldBack) => void;
}

/** What a round writes alarms with. */
export interface WritingParts extends AlarmParts {
  /** How many commands it has prepared, by object, and by rule and object. They are not stored yet. */
  readonly prepared: Map<string, number>;
}

export interface HeldBack {
  readonly ruleId: string;
  readonly ownerId: string;
  readonly objectId: string;
  readonly command: string;
}

/** Whose actions follow, and to which object they go. */
interface Acting {
  readonly rule: ActiveRule;
  readonly object: RuleObject;
}

/** An alarm to be raised. */
export interface RaisedAlarm extends Acting {
  readonly raise: Raise;
  readonly packetId: string | null;
  readonly position: Position | null;
  /** Whether actions follow: not from packets that came too late. */
  readonly isActing: boolean;
}

/**
 * The writes of an alarm and its actions. Packets may be evaluated again, after the history was gone: an alarm that is stored has acted.
 * Nobody stores it meanwhile, since its partition has one owner at the time of the commit.
 */
export async function raiseAlarm(parts: WritingParts, alarm: RaisedAlarm): Promise<OutputWrite[]> {
  const { rule, object, raise, packetId, position, isActing } = alarm;
  if (await isStored(parts.database, raise.alarmId)) return [];
  const nowMs = parts.now();
  const { settings } = rule.compiled;
  const { commands, webhooks, actions, refusal } = await actAll(
    parts,
    alarm,
    isActing ? exactOf(settings.actions) : [],
  );
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
  acting: Acting,
  { alarmId, steps }: { alarmId: string; steps: readonly WaitingStep[] },
): Promise<OutputWrite[]> {
  const all: Acted = newActed();
  const { escalation } = acting.rule.compiled.settings;
  for (const { step, actions } of steps) {
    const kept = actions.filter((action) => isKept(escalation, action));
    const done = await actAll(parts, acting, kept);
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

/** What was done. */
interface Acted {
  readonly commands: AnyBulkWriteOperation[];
  /** The handlers that are told from now on. */
  readonly webhooks: string[];
  /** As the alarm shows it. */
  readonly actions: JsonObject[];
  /** The first action that its rule cannot take, and why; null for none. */
  refusal: string | null;
}

const newActed = (): Acted => ({ commands: [], webhooks: [], actions: [], refusal: null });

async function actAll(parts: WritingParts, acting: Acting, actions: readonly ExactAction[]): Promise<Acted> {
  const acted = newActed();
  for (const action of actions) {
    const done =
      action.kind === 'webhook'
        ? await tell(parts, acting, action, acted)
        : await command(parts, acting, action, acted);
    acted.actions.push(done);
  }
  return acted;
}

/** What is to be told of it, and what follows while nobody acknowledges it. */
async function toNotices(
  { database }: AlarmParts,
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

/** The same audience as that of the object. */
const placeOf = (ownerId: string, object: RuleObject) => ({
  owner: ownerId,
  group: object.group,
  branch: [...object.branch],
  access: [...object.access],
  _withoutOwner: isHiddenFromOwner({ owner: object.owner, access: [...object.access] }, ownerId),
});

/** What was done, or why it was not. */
async function tell(
  { database }: WritingParts,
  { rule }: Acting,
  { handlerId }: Extract<ExactAction, { kind: 'webhook' }>,
  acted: Acted,
): Promise<JsonObject> {
  const visible = rule.scope === null ? [] : await findVisibleHandlers(database, rule.scope, [handlerId]);
  if (visible.includes(handlerId)) {
    acted.webhooks.push(handlerId);
    return { webhook: handlerId };
  }
  const error = 'the owner of the rule sees no such handler';
  acted.refusal ??= `${handlerId}: ${error}`;
  return { webhook: handlerId, error };
}

/** The same for a command. What is refused for a while only is not shown at the rule. */
async function command(
  parts: WritingParts,
  { rule, object }: Acting,
  { command, params }: Extract<ExactAction, { kind: 'command' }>,
  acted: Acted,
): Promise<JsonObject> {
  const refuse = (error: string): JsonObject => {
    acted.refusal ??= `${command}: ${error}`;
    return { command, error };
  };
  if (!(await parts.registry.mayCommand(rule, object, command))) return refuse('the owner of the rule may not send it');
  const declared = await parts.models.declarationsOf(String(object.object.model));
  const parsed = parseOrNull(command, params, declared);
  if (parsed === null) return refuse('the model of the object does not declare it');
  const held = await findHold(parts, { rule, object }, command);
  if (held !== null) return { command, error: held };
  const nowMs = parts.now();
  const _id = newCommandId(nowMs);
  const fields = newCommand(object.id, { ...parsed, ttlMs: LIMITS.commandLifetimeMs }, nowMs);
  const own = { _id, _rule: rule.id, time: nowMs };
  const document = toDocument(COMMANDS, { ...fields, ...placeOf(rule.stored.ownerId, object), ...own });
  acted.commands.push({ insertOne: { document: document as never } });
  for (const key of [object.id, keyOf(rule, object)]) parts.prepared.set(key, (parts.prepared.get(key) ?? 0) + 1);
  return { command, _id };
}

const keyOf = (rule: ActiveRule, object: RuleObject): string => `${rule.id} ${object.id}`;

function parseOrNull(
  command: string,
  params: JsonObject,
  declared: Declarations,
): ReturnType<typeof parseCommand> | null {
  try {
    return parseCommand(command, params, declared);
  } catch (error) {
    const { status } = toApiError(error);
    if (status !== 404 && status !== 400) throw error;
    return null;
  }
}

/** Why no command can be sent for now, counting what is prepared; null for no reason. */
async function findHold(
  { database, now, prepared, onHeldBack }: WritingParts,
  { rule, object }: Acting,
  command: string,
): Promise<string | null> {
  if (await isQueueFull(database, object.id, prepared.get(object.id))) return 'too many commands wait for the object';
  const counted = { sinceMs: now() - LIMITS.ruleCommandsMs, limit: LIMITS.ruleCommands };
  const sent = await countOfRule(database, { objectId: object.id, ruleId: rule.id }, counted);
  if (sent + (prepared.get(keyOf(rule, object)) ?? 0) < LIMITS.ruleCommands) return null;
  onHeldBack({ ruleId: rule.id, ownerId: rule.stored.ownerId, objectId: object.id, command });
  return `the rule has sent ${LIMITS.ruleCommands} commands to the object within an hour`;
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
