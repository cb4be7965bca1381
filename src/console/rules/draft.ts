/** A rule while somebody edits it: what forms can show of it, and what a change sends. Pure. */

/** As the page has it; its own module knows the browser, which this file does not need. */
type Json = Record<string, unknown>;

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

/** Whether an object has no other members than these. */
const hasOnly = (value: Json, names: readonly string[]): boolean =>
  Object.keys(value).every((name) => names.includes(name));

/** The object with a member of this value; without it where the value is undefined. */
export function withMember(value: Json, name: string, member: unknown): Json {
  const { [name]: _before, ...rest } = value;
  return member === undefined ? rest : { ...value, [name]: member };
}

export const OPERATORS = ['>', '>=', '<', '<=', '==', '!=', 'between', 'in', 'changed'] as const;
export type Operator = (typeof OPERATORS)[number];

/** The kinds of conditions as the form offers them; `json` is whatever it cannot show. */
export const CONDITION_KINDS = [
  'param',
  'offline',
  'online',
  'silent',
  'geofence',
  'all',
  'any',
  'not',
  'expr',
  'json',
] as const;
export type ConditionKind = (typeof CONDITION_KINDS)[number];

/** What a condition of a kind begins with. */
export const NEW_CONDITIONS: Readonly<Record<ConditionKind, Json>> = {
  param: { param: '', op: '>', value: 0 },
  offline: { online: false },
  online: { online: true },
  silent: { silent: '10 min' },
  geofence: { geofence: [], is: 'outside' },
  all: { all: [{ param: '', op: '>', value: 0 }] },
  any: { any: [{ param: '', op: '>', value: 0 }] },
  not: { not: { param: '', op: '>', value: 0 } },
  expr: { expr: '' },
  json: {},
};

/** The kind of form that shows all of the condition. */
export function kindOf(condition: unknown): ConditionKind {
  if (!isObject(condition)) return 'json';
  if (typeof condition.online === 'boolean' && hasOnly(condition, ['online']))
    return condition.online ? 'online' : 'offline';
  const fits = (kind: 'silent' | 'expr'): boolean => typeof condition[kind] === 'string' && hasOnly(condition, [kind]);
  if (fits('silent')) return 'silent';
  if (fits('expr')) return 'expr';
  for (const kind of ['all', 'any'] as const)
    if (Array.isArray(condition[kind]) && hasOnly(condition, [kind])) return kind;
  if (isObject(condition.not) && hasOnly(condition, ['not'])) return 'not';
  if (isFence(condition)) return 'geofence';
  return isParameter(condition) ? 'param' : 'json';
}

const isFence = (condition: Json): boolean =>
  (typeof condition.geofence === 'string' || isTexts(condition.geofence)) &&
  hasOnly(condition, ['geofence', 'is', 'on']) &&
  (typeof condition.is === 'string') !== (typeof condition.on === 'string');

function isParameter(condition: Json): boolean {
  const { param, op, value } = condition;
  if (typeof param !== 'string' || !OPERATORS.includes(op as Operator)) return false;
  return hasOnly(condition, ['param', 'op', 'value']) && isShown(op as Operator, value);
}

/** Whether the field of an operator shows the value without changing it. */
function isShown(op: Operator, value: unknown): boolean {
  if (op === 'changed') return value === undefined;
  if (isObject(value)) return typeof value.config === 'string' && hasOnly(value, ['config']);
  if (op === 'between') return Array.isArray(value) && value.length === 2 && value.every(isScalar);
  if (op === 'in') return Array.isArray(value) && value.every(isScalar);
  return isScalar(value);
}

const isScalar = (value: unknown): boolean => ['string', 'number', 'boolean'].includes(typeof value);

// `1,5` is one and a half; `1,500` is that to some and 1500 to others, so it is no number.
const NUMBER = /^-?(?:0[.,]\d+|(?:0|[1-9]\d*)(?:\.\d+|,(?!\d{3}(?!\d))\d+)?)(?:e[+-]?\d+)?$/i;

/** Whether nothing is left to fill in, as far as forms know. */
export function isComplete(condition: unknown): boolean {
  if (!isObject(condition)) return false;
  const values = Object.values(condition);
  return values.length > 0 && values.every(isFilled);
}

const isFilled = (value: unknown): boolean => {
  if (Array.isArray(value)) return value.length > 0 && value.every(isFilled);
  return isObject(value) ? isComplete(value) : value !== '';
};

/** What somebody types as a value: a number, true or false, or a text; a text in quotes is that text. */
export function toScalar(typed: string): string | number | boolean {
  const text = typed.trim();
  if (text === 'true' || text === 'false') return text === 'true';
  if (NUMBER.test(text)) {
    const number = Number(text.replace(',', '.'));
    if (String(number) === text || !/\d{16}/.test(text)) return number;
  }
  return /^".*"$/.test(text) ? text.slice(1, -1) : text;
}

/** The text that `toScalar` reads as this value. */
export function toTyped(value: unknown): string {
  if (typeof value !== 'string') return isAbsent(value) ? '' : String(value);
  return toScalar(value) === value ? value : `"${value}"`;
}

/** `a, b`, where a text in quotes may have commas. */
export function toScalars(typed: string): (string | number | boolean)[] {
  const parts = typed.match(/\s*(?:"[^"]*"|[^,]+)\s*/g) ?? [];
  return parts.map(toScalar).filter((one) => one !== '');
}

export const toTypedList = (values: readonly unknown[]): string =>
  values
    .map((value) => {
      const text = toTyped(value);
      return text.includes(',') && !text.startsWith('"') ? `"${text}"` : text;
    })
    .join(', ');

/** The value that another operator begins with, as near as possible to the one before. */
export function valueFor(op: Operator, value: unknown): unknown {
  if (op === 'changed') return undefined;
  if (isShown(op, value)) return value;
  const first = Array.isArray(value) ? value[0] : value;
  if (op === 'between') return typeof first === 'number' ? [first, first] : [0, 0];
  if (op === 'in') return isScalar(first) ? [first] : [];
  if (isScalar(first)) return first;
  return 0;
}

export const ACTION_KINDS = ['notify', 'webhook', 'command', 'json'] as const;
export type ActionKind = (typeof ACTION_KINDS)[number];

export const NEW_ACTIONS: Readonly<Record<ActionKind, Json>> = {
  notify: { notify: { users: [] } },
  webhook: { webhook: '' },
  command: { command: '' },
  json: {},
};

export function actionKindOf(action: unknown): ActionKind {
  if (!isObject(action)) return 'json';
  if (isObject(action.notify) && hasOnly(action, ['notify'])) return isNotify(action.notify) ? 'notify' : 'json';
  if (typeof action.webhook === 'string' && hasOnly(action, ['webhook'])) return 'webhook';
  const isCommand = typeof action.command === 'string' && hasOnly(action, ['command', 'params']);
  return isCommand && (action.params === undefined || isObject(action.params)) ? 'command' : 'json';
}

const isNotify = (notify: Json): boolean =>
  hasOnly(notify, ['users', 'group', 'text']) &&
  (isAbsent(notify.users) || isTexts(notify.users)) &&
  (isAbsent(notify.group) || typeof notify.group === 'string') &&
  (isAbsent(notify.text) || typeof notify.text === 'string');

export const isSelection = (select: unknown): boolean =>
  isAbsent(select) ||
  (isObject(select) &&
    hasOnly(select, ['objects', 'group', 'model', 'labels']) &&
    [select.objects, select.labels].every((one) => isAbsent(one) || isTexts(one)) &&
    [select.group, select.model].every((one) => isAbsent(one) || typeof one === 'string'));

export const isSchedule = (schedule: unknown): boolean =>
  isAbsent(schedule) ||
  (isObject(schedule) &&
    hasOnly(schedule, ['days', 'from', 'to', 'tz']) &&
    (isAbsent(schedule.days) || isTexts(schedule.days)) &&
    [schedule.from, schedule.to, schedule.tz].every((one) => isAbsent(one) || typeof one === 'string'));

export const isEscalation = (steps: unknown): boolean =>
  isAbsent(steps) ||
  (Array.isArray(steps) &&
    steps.every(
      (step) =>
        isObject(step) &&
        hasOnly(step, ['after', 'then']) &&
        ['string', 'number'].includes(typeof step.after) &&
        Array.isArray(step.then) &&
        step.then.every(isObject),
    ));

/** Fields that a rule can be without. */
const OPTIONAL: ReadonlySet<string> = new Set([
  'select',
  'clear',
  'schedule',
  'for',
  'clearFor',
  'control',
  'then',
  'remind',
  'escalate',
]);

/** What the service says of a rule, which nobody edits. */
const OWN = new Set(['_id', 'owner', 'group', 'branch', 'access', 'time', '_at', 'success', 'disabledReason']);

/** What its creator said of it; members that are `null` are as good as absent. */
export const contentOf = (rule: Json): Json =>
  Object.fromEntries(Object.entries(rule).filter(([name, value]) => !OWN.has(name) && value !== null));

/** The fields that a change sends, and the first one that no change can remove. */
export function toChange(before: Json, after: Json): { change: Json; kept: string | null } {
  const change: Json = {};
  let kept: string | null = null;
  for (const [name, value] of Object.entries(after))
    if (JSON.stringify(value) !== JSON.stringify(before[name])) change[name] = value;
  for (const name of Object.keys(before)) {
    if (name in after) continue;
    if (OPTIONAL.has(name)) change[name] = null;
    else kept ??= name;
  }
  return { change, kept };
}
