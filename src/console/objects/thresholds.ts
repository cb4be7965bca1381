/** The thresholds of rules, as far as they are plain comparisons of a parameter with numbers. */
type Severity = 'critical' | 'warning' | 'info';

/** An alarm from when it was raised until it was cleared, null if it is open; or a note. */
export interface Band {
  readonly fromMs: number;
  readonly toMs: number | null;
  readonly severity: Severity | 'note';
}

export interface Threshold {
  readonly ruleId: string;
  readonly name: string;
  readonly severity: Severity;
  readonly param: string;
  readonly value: number;
  /** `> 8`. */
  readonly sign: string;
}

const SIGNS: Readonly<Record<string, string>> = { '>': '>', '>=': '≥', '<': '<', '<=': '≤', '==': '=', '!=': '≠' };

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `config`: of the object, whose members a rule may compare with. */
export function thresholdsOf(rule: Json, config: unknown = null): Threshold[] {
  const { when, severity } = rule;
  if (!isObject(when) || typeof when.param !== 'string') return [];
  const { param, op } = when;
  const value = resolve(when.value, config);
  const about = {
    ruleId: String(rule._id),
    name: String(rule.name),
    severity: severity === 'critical' || severity === 'info' ? severity : 'warning',
    param,
  } as const;
  const sign = SIGNS[String(op)];
  if (sign !== undefined) return typeof value === 'number' ? [{ ...about, value, sign }] : [];
  if (op !== 'between' || !Array.isArray(value) || value.length !== 2) return [];
  const [from, to] = value as unknown[];
  if (typeof from !== 'number' || typeof to !== 'number') return [];
  return [
    { ...about, value: from, sign: '≥' },
    { ...about, value: to, sign: '≤' },
  ];
}

/** What a value of a rule is for an object: a number, or the member of its `config` that it names. */
function resolve(value: unknown, config: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => resolve(one, config));
  if (!isObject(value) || typeof value.config !== 'string') return value;
  return value.config.split('.').reduce((inner, name) => (isObject(inner) ? inner[name] : undefined), config);
}

/** An object as rules select it. */
export interface Selectable {
  /** Its `_id` and its own `id`. */
  readonly keys: readonly string[];
  /** Its group, and those above. */
  readonly groups: readonly string[];
  readonly model: string;
  readonly labels: readonly string[];
}

/** Members are combined with *and*; one that is absent selects everything. */
export function selectsObject(select: unknown, { keys, groups, model, labels }: Selectable): boolean {
  if (!isObject(select)) return true;
  const hasOne = (wanted: unknown, own: readonly string[]): boolean =>
    !Array.isArray(wanted) || wanted.some((one) => own.includes(String(one)));
  return (
    hasOne(select.objects, keys) &&
    (typeof select.group !== 'string' || groups.includes(select.group)) &&
    (typeof select.model !== 'string' || select.model === model) &&
    hasOne(select.labels, labels)
  );
}
