/** What rules do exactly once, their commands and webhooks: what they need to know of the database is read of many alarms together. */
import type { AnyBulkWriteOperation } from 'mongodb';
import { countSentByRules, countWaiting, isHiddenFromOwner, newCommandId } from '../commands/command-store.js';
import { newCommand, parseCommand } from '../core/command.js';
import { toApiError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { Declarations } from '../core/model.js';
import type { ExactAction } from '../core/rule/action.js';
import { builtInStore } from '../core/stores.js';
import type { ModelFinder } from '../packets/models.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { toDocument } from '../platform/mongo/schema/mapping.js';
import type { ActiveRule } from './active-rule.js';
import { findVisibleHandlers } from './references.js';
import type { RuleObject } from './rule-objects.js';
import type { MayCommand, RuleRegistry } from './rule-registry.js';

export const COMMANDS = builtInStore('commands');

export interface AlarmParts {
  readonly database: Database;
  readonly registry: RuleRegistry;
  readonly models: ModelFinder;
  readonly now: () => number;
  /** A rule has sent so many commands to an object that it sends no more for some time. */
  readonly onHeldBack: (held: HeldBack) => void;
}

/** What a round acts with. */
export interface ActingParts extends AlarmParts {
  /** How many commands it has prepared, by object, and by rule and object. They are not stored yet. */
  readonly prepared: Map<string, number>;
}

export interface HeldBack {
  readonly ruleId: string;
  readonly ownerId: string;
  readonly objectId: string;
  readonly command: string;
}

/** What a rule does with an object. */
export interface Acting {
  readonly rule: ActiveRule;
  readonly object: RuleObject;
  readonly actions: readonly ExactAction[];
}

/** What was done. */
export interface Acted {
  readonly commands: AnyBulkWriteOperation[];
  /** The handlers that are told from now on. */
  readonly webhooks: string[];
  /** As the alarm shows it. */
  readonly actions: JsonObject[];
  /** The first action that its rule cannot take, and why; null for none. */
  refusal: string | null;
}

/** What actions depend on, as it is when a transaction is prepared. */
export interface Known {
  /** The handlers that the owner of a rule sees. */
  readonly handlers: ReadonlyMap<ActiveRule, ReadonlySet<string>>;
  readonly mayCommand: ReadonlyMap<ActiveRule, MayCommand>;
  /** By model. */
  readonly declared: ReadonlyMap<string, Declarations>;
  /** How many commands wait, by object. */
  readonly waiting: ReadonlyMap<string, number>;
  /** How many commands a rule has sent within the time that is counted, by rule and object. */
  readonly sent: ReadonlyMap<string, number>;
}

const modelOf = ({ object }: RuleObject): string => String(object.model);
const keyOf = (ruleId: string, objectId: string): string => `${ruleId} ${objectId}`;
const isCommanding = ({ actions }: Acting): boolean => actions.some(({ kind }) => kind === 'command');

/** Throws 503. */
export async function readKnown(parts: AlarmParts, all: readonly Acting[]): Promise<Known> {
  const commanding = all.filter(isCommanding);
  const mayCommand = new Map<ActiveRule, MayCommand>();
  const declared = new Map<string, Declarations>();
  for (const { rule, object } of commanding) {
    const model = modelOf(object);
    if (!mayCommand.has(rule)) mayCommand.set(rule, await parts.registry.findMayCommand(rule));
    if (!declared.has(model)) declared.set(model, await parts.models.declarationsOf(model));
  }
  const handlers = await findHandlers(parts, all);
  return { handlers, mayCommand, declared, ...(await countCommands(parts, commanding)) };
}

/** Those that actions name, as far as the owner of their rule sees them. */
async function findHandlers({ database }: AlarmParts, all: readonly Acting[]): Promise<Known['handlers']> {
  const named = new Map<ActiveRule, Set<string>>();
  for (const { rule, actions } of all) {
    const ids = named.get(rule) ?? new Set();
    for (const action of actions) if (action.kind === 'webhook') ids.add(action.handlerId);
    named.set(rule, ids);
  }
  const handlers = new Map<ActiveRule, ReadonlySet<string>>();
  for (const [rule, ids] of named) {
    if (rule.scope === null || ids.size === 0) continue;
    handlers.set(rule, new Set(await findVisibleHandlers(database, rule.scope, [...ids])));
  }
  return handlers;
}

async function countCommands(
  { database, now }: AlarmParts,
  commanding: readonly Acting[],
): Promise<Pick<Known, 'waiting' | 'sent'>> {
  const objectIds = [...new Set(commanding.map(({ object }) => object.id))];
  if (objectIds.length === 0) return { waiting: new Map(), sent: new Map() };
  const ruleIds = [...new Set(commanding.map(({ rule }) => rule.id))];
  const sent = await countSentByRules(database, { objectIds, ruleIds }, now() - LIMITS.ruleCommandsMs);
  return {
    waiting: await countWaiting(database, objectIds),
    sent: new Map(sent.map(({ ruleId, objectId, count }) => [keyOf(ruleId, objectId), count])),
  };
}

/** Carries out what can be. */
export function act(parts: ActingParts, acting: Acting, known: Known): Acted {
  const acted: Acted = { commands: [], webhooks: [], actions: [], refusal: null };
  for (const action of acting.actions) {
    const done =
      action.kind === 'webhook'
        ? tell(acting, action, { known, acted })
        : command(parts, acting, action, { known, acted });
    acted.actions.push(done);
  }
  return acted;
}

interface Progress {
  readonly known: Known;
  readonly acted: Acted;
}

/** What was done, or why it was not. */
function tell(
  { rule }: Acting,
  { handlerId }: Extract<ExactAction, { kind: 'webhook' }>,
  { known, acted }: Progress,
): JsonObject {
  if (known.handlers.get(rule)?.has(handlerId) === true) {
    acted.webhooks.push(handlerId);
    return { webhook: handlerId };
  }
  const error = 'the owner of the rule sees no such handler';
  acted.refusal ??= `${handlerId}: ${error}`;
  return { webhook: handlerId, error };
}

/** The same for a command. What is refused for a while only is not shown at the rule. */
function command(
  parts: ActingParts,
  { rule, object }: Acting,
  { command, params }: Extract<ExactAction, { kind: 'command' }>,
  { known, acted }: Progress,
): JsonObject {
  const refuse = (error: string): JsonObject => {
    acted.refusal ??= `${command}: ${error}`;
    return { command, error };
  };
  if (known.mayCommand.get(rule)?.(object, command) !== true) return refuse('the owner of the rule may not send it');
  const declared = known.declared.get(modelOf(object));
  const parsed = declared === undefined ? null : parseOrNull(command, params, declared);
  if (parsed === null) return refuse('the model of the object does not declare it');
  const held = findHold(parts, { rule, object, known }, command);
  if (held !== null) return { command, error: held };
  const nowMs = parts.now();
  const _id = newCommandId(nowMs);
  const fields = newCommand(object.id, { ...parsed, ttlMs: LIMITS.commandLifetimeMs }, nowMs);
  const own = { _id, _rule: rule.id, time: nowMs };
  const document = toDocument(COMMANDS, { ...fields, ...placeOf(rule.stored.ownerId, object), ...own });
  acted.commands.push({ insertOne: { document: document as never } });
  for (const key of [object.id, keyOf(rule.id, object.id)]) parts.prepared.set(key, (parts.prepared.get(key) ?? 0) + 1);
  return { command, _id };
}

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
function findHold(
  { prepared, onHeldBack }: ActingParts,
  { rule, object, known }: Pick<Acting, 'rule' | 'object'> & { readonly known: Known },
  command: string,
): string | null {
  const waiting = (known.waiting.get(object.id) ?? 0) + (prepared.get(object.id) ?? 0);
  if (waiting >= LIMITS.commandsWaiting) return 'too many commands wait for the object';
  const key = keyOf(rule.id, object.id);
  if ((known.sent.get(key) ?? 0) + (prepared.get(key) ?? 0) < LIMITS.ruleCommands) return null;
  onHeldBack({ ruleId: rule.id, ownerId: rule.stored.ownerId, objectId: object.id, command });
  return `the rule has sent ${LIMITS.ruleCommands} commands to the object within an hour`;
}

/** The same audience as that of the object. */
export const placeOf = (ownerId: string, object: RuleObject) => ({
  owner: ownerId,
  group: object.group,
  branch: [...object.branch],
  access: [...object.access],
  _withoutOwner: isHiddenFromOwner({ owner: object.owner, access: [...object.access] }, ownerId),
});
