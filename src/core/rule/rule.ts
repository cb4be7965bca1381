/** The settings of rules: their parsing, with errors that name the place. Pure. */
import { badRequest } from '../errors.js';
import { isObject, type Json, type JsonObject } from '../json.js';
import { LIMITS } from '../limits.js';
import { ID } from '../own-id.js';
import { type EscalationStep, parseActions, parseEscalation, type RuleAction } from './action.js';
import { type Condition, parseCondition, parseSpan, singlesOf } from './condition.js';
import { parseRemind } from './notifying.js';
import { parseSchedule, type Schedule } from './schedule.js';
import { SEVERITIES, type Severity } from './severity.js';

/** The objects of a rule: those that meet every member which is not null. */
export interface RuleSelection {
  /** By `_id` or own id. */
  readonly objects: readonly string[] | null;
  readonly group: string | null;
  readonly model: string | null;
  readonly labels: readonly string[] | null;
}

export interface RuleSettings {
  readonly name: string;
  readonly isActive: boolean;
  readonly severity: Severity;
  readonly select: RuleSelection;
  readonly when: Condition;
  readonly forMs: number;
  /** Null: the opposite of `when`. */
  readonly clear: Condition | null;
  readonly clearForMs: number;
  /** Packets that came later than this after their own time cause no action. */
  readonly controlMs: number;
  readonly schedule: Schedule | null;
  readonly actions: readonly RuleAction[];
  /** How often those who were notified are reminded, until somebody acknowledges the alarm; null for never. */
  readonly remindMs: number | null;
  readonly escalation: readonly EscalationStep[];
}

/** Parses the fields of a rule. Throws a 400 that names the place. */
export function parseRule(fields: JsonObject): RuleSettings {
  if (JSON.stringify(fields).length > LIMITS.ruleCharacters)
    throw badRequest(`a rule has at most ${LIMITS.ruleCharacters} characters`);
  if ((fields.when ?? null) === null) throw badRequest('when: required');
  const when = parseCondition(fields.when, 'when');
  const clear = (fields.clear ?? null) === null ? null : parseCondition(fields.clear, 'clear');
  const count = singlesOf(when).length + (clear === null ? 0 : singlesOf(clear).length);
  if (count > LIMITS.ruleConditions) throw badRequest(`when: a rule has at most ${LIMITS.ruleConditions} conditions`);
  return {
    name: String(fields.name),
    isActive: parseActive(fields.active ?? true),
    severity: parseSeverity(fields.severity ?? 'warning'),
    select: parseSelection(fields.select ?? null),
    when,
    forMs: parseSpan(fields.for ?? 0, 'for'),
    clear,
    clearForMs: parseSpan(fields.clearFor ?? 0, 'clearFor'),
    controlMs: parseSpan(fields.control ?? LIMITS.ruleControlMs, 'control'),
    schedule: parseSchedule(fields.schedule),
    ...parseReaction(fields),
  };
}

function parseReaction(fields: JsonObject): Pick<RuleSettings, 'actions' | 'remindMs' | 'escalation'> {
  const actions = parseActions(fields.then ?? null, 'then');
  const remindMs = parseRemind(fields.remind ?? null);
  const escalation = parseEscalation(fields.escalate ?? null);
  const all = [actions, ...escalation.map((step) => step.actions)].flat();
  if (remindMs !== null && !all.some(({ kind }) => kind === 'notify')) {
    throw badRequest('remind: the rule notifies nobody; add {"notify": …} to then');
  }
  return { actions, remindMs, escalation };
}

function parseActive(value: Json): boolean {
  if (typeof value === 'boolean') return value;
  throw badRequest('active: expected true or false');
}

function parseSeverity(value: Json): Severity {
  if ((SEVERITIES as readonly Json[]).includes(value)) return value as Severity;
  throw badRequest(`severity: expected ${SEVERITIES.join(', ')}`);
}

const SELECTING = ['objects', 'group', 'model', 'labels'];

function parseSelection(value: Json): RuleSelection {
  if (value !== null && !isObject(value))
    throw badRequest(`select: expected an object with some of ${SELECTING.join(', ')}`);
  const select = value ?? {};
  const other = Object.keys(select).find((name) => !SELECTING.includes(name));
  if (other !== undefined) throw badRequest(`select.${other}: not known; expected some of ${SELECTING.join(', ')}`);
  return {
    objects: parseTexts('select.objects', select.objects ?? null, LIMITS.ruleObjects),
    group: parseId('select.group', select.group ?? null),
    model: parseId('select.model', select.model ?? null),
    labels: parseTexts('select.labels', select.labels ?? null, LIMITS.ruleLabels),
  };
}

function parseTexts(place: string, value: Json, max: number): readonly string[] | null {
  if (value === null) return null;
  const isText = (item: Json): item is string => typeof item === 'string' && item !== '' && item.length <= 256;
  if (Array.isArray(value) && value.length > 0 && value.length <= max && value.every(isText))
    return [...new Set(value)];
  throw badRequest(`${place}: expected a list of 1 to ${max} texts`);
}

function parseId(place: string, value: Json): string | null {
  if (value === null) return null;
  if (typeof value === 'string' && ID.test(value)) return value.toLowerCase();
  throw badRequest(`${place}: expected an _id, 24 hexadecimal digits`);
}
