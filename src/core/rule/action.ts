/** What a rule does, at once and while nobody acknowledges: parsing, with errors that name the place. Pure. */
import { badRequest } from '../errors.js';
import { isObject, type Json, type JsonObject } from '../json.js';
import { LIMITS } from '../limits.js';
import { COMMAND_NAME } from '../model.js';
import { ID } from '../own-id.js';
import { parseSpan } from './condition.js';
import { type Notify, parseNotify } from './notifying.js';

/** What is done exactly once. */
export type ExactAction =
  | { readonly kind: 'webhook'; readonly handlerId: string }
  | { readonly kind: 'command'; readonly command: string; readonly params: JsonObject };

export type RuleAction = ExactAction | { readonly kind: 'notify'; readonly notify: Notify };

/** What follows if nobody has acknowledged the alarm by then. */
export interface EscalationStep {
  readonly afterMs: number;
  readonly actions: readonly RuleAction[];
}

/** Whom actions notify. */
export const notifiesOf = (actions: readonly RuleAction[]): Notify[] =>
  actions.flatMap((action) => (action.kind === 'notify' ? [action.notify] : []));

/** The others. */
export const exactOf = (actions: readonly RuleAction[]): ExactAction[] =>
  actions.flatMap((action) => (action.kind === 'notify' ? [] : [action]));

export function parseActions(value: Json, place: string): readonly RuleAction[] {
  if (value === null) return [];
  if (!Array.isArray(value) || value.length > LIMITS.ruleActions) {
    throw badRequest(`${place}: expected a list of at most ${LIMITS.ruleActions} actions`);
  }
  return value.map((action, index) => parseAction(action, `${place}[${index}]`));
}

function parseAction(value: Json, place: string): RuleAction {
  const expected = `${place}: expected {"notify": {"users": […]}}, {"webhook": "<_id of a handler>"} or {"command": "<name>", "params": {…}}`;
  if (!isObject(value)) throw badRequest(expected);
  const { webhook = null, command = null, params = null, notify = null, ...others } = value;
  const other = Object.keys(others).find((name) => others[name] !== null);
  if (other !== undefined) throw badRequest(`${place}.${other}: not known; expected notify, webhook or command`);
  if ([webhook, command, notify].filter((one) => one !== null).length !== 1) throw badRequest(expected);
  if (notify !== null) {
    if (params !== null) throw badRequest(`${place}.params: not known with notify`);
    return { kind: 'notify', notify: parseNotify(notify, `${place}.notify`) };
  }
  if (webhook !== null) {
    if (params !== null) throw badRequest(`${place}.params: not known with webhook`);
    return { kind: 'webhook', handlerId: parseHandler(webhook, `${place}.webhook`) };
  }
  if (typeof command !== 'string' || !COMMAND_NAME.test(command)) {
    throw badRequest(`${place}.command: expected the name of a command`);
  }
  if (params !== null && !isObject(params)) throw badRequest(`${place}.params: expected an object`);
  return { kind: 'command', command, params: params ?? {} };
}

function parseHandler(value: Json, place: string): string {
  if (typeof value === 'string' && ID.test(value)) return value.toLowerCase();
  throw badRequest(`${place}: expected an _id, 24 hexadecimal digits`);
}

export function parseEscalation(value: Json): readonly EscalationStep[] {
  if (value === null) return [];
  if (!Array.isArray(value) || value.length > LIMITS.escalationSteps) {
    throw badRequest(`escalate: expected a list of at most ${LIMITS.escalationSteps} steps`);
  }
  const steps = value.map((step, index) => parseStep(step, `escalate[${index}]`));
  const early = steps.findIndex(({ afterMs }, index) => index > 0 && afterMs < (steps[index - 1]?.afterMs ?? 0));
  if (early !== -1) throw badRequest(`escalate[${early}].after: expected no less than that of the step before`);
  return steps;
}

function parseStep(value: Json, place: string): EscalationStep {
  if (!isObject(value)) throw badRequest(`${place}: expected an object with after and then`);
  const other = Object.keys(value).find((name) => !['after', 'then'].includes(name));
  if (other !== undefined) throw badRequest(`${place}.${other}: not known; expected after and then`);
  const { after = null, then = null } = value;
  if (after === null) throw badRequest(`${place}.after: required`);
  if (!Array.isArray(then) || then.length === 0 || then.length > LIMITS.ruleActions) {
    throw badRequest(`${place}.then: expected a list of 1 to ${LIMITS.ruleActions} actions`);
  }
  return { afterMs: parseSpan(after, `${place}.after`), actions: parseActions(then, `${place}.then`) };
}
