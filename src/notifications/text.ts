/** What messages say. In English: the users of a rule may speak any language, and its text is theirs. Pure. */
import { isObject, type Json, type JsonObject } from '../core/json.js';
import type { Severity } from '../core/rule/severity.js';
import { renderTemplate, toOneLine, toTimeText } from '../core/rule/template.js';
import { type Message, toText, toTitle } from './message.js';
import { type Notification, severityOf } from './outbox.js';

const LABELS: Readonly<Record<Severity, string>> = { info: 'Info', warning: 'Warning', critical: 'Critical' };

export interface Facts {
  readonly alarm: JsonObject;
  /** The object; empty where it was removed. */
  readonly object: JsonObject;
  readonly publicUrl: string | null;
}

export function toMessage({ id, step, severity, text }: Notification, { alarm, object, publicUrl }: Facts): Message {
  const isCleared = alarm.status === 'cleared';
  const own = isCleared && step === 'cleared' ? null : text;
  const facts = { alarm, object, values: alarm.values ?? null, position: alarm.position ?? null };
  const lines = [
    ...(own === null ? describe(alarm) : [renderTemplate(own, facts)]),
    `Since ${toTimeText(Number(alarm.raised))}${alarm.late === true ? ' (recorded late)' : ''}`,
    ...(isCleared ? [`Cleared ${toTimeText(Number(alarm.cleared))}: ${String(alarm.clearReason)}`] : []),
  ];
  const named = typeof object.name === 'string' && object.name !== '' ? object.name : String(object.id ?? '');
  const title = `${toHeading(step, severity, isCleared)}: ${String(alarm.name)}${named === '' ? '' : ` – ${named}`}`;
  const link = publicUrl === null ? null : `${publicUrl}/alarms/${String(alarm._id)}`;
  return { id, title: toTitle(title), text: toText(lines.join('\n')), link, severity: severityOf(severity, isCleared) };
}

function toHeading(step: string, severity: Severity, isCleared: boolean): string {
  if (isCleared) return step === 'cleared' ? 'Cleared' : `${LABELS[severity]}, cleared`;
  const [kind, count] = step.split('-');
  if (kind === 'reminder') return `Reminder ${count} (${LABELS[severity].toLowerCase()})`;
  if (kind === 'escalated') return `Not acknowledged (${LABELS[severity].toLowerCase()})`;
  return LABELS[severity];
}

/** The parts of the condition that hold, with what they read. */
function describe({ why }: JsonObject): string[] {
  const parts = Array.isArray(why) ? why.filter(isObject) : [];
  return parts
    .filter(({ holds }) => holds !== false)
    .map(({ condition, value }) => toPart(String(condition), value ?? null));
}

/** The words of other conditions, such as `silent for 30 min` and `offline`, say what was read. */
const COMPARISON = / (?:[<>]=?|[!=]=|in|between|changed)(?: |$)/;

/** A geofence may be called `Bin in use`. */
const FENCE = /^(?:inside|outside|entered|left) "/;

function toPart(condition: string, value: Json): string {
  const isPlain = typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean';
  return isPlain && COMPARISON.test(condition) && !FENCE.test(condition)
    ? `${condition}: ${toOneLine(String(value))}`
    : condition;
}

/** One message instead of many. */
export function toDigest(
  { id, severity }: Notification,
  held: readonly { readonly severity: Severity; readonly isEnd: boolean; readonly count: number }[],
  publicUrl: string | null,
): Message {
  const total = held.reduce((sum, { count }) => sum + count, 0);
  const parts = held.filter(({ isEnd }) => !isEnd).map((one) => `${one.count} × ${LABELS[one.severity].toLowerCase()}`);
  const ends = held.filter(({ isEnd }) => isEnd).reduce((sum, { count }) => sum + count, 0);
  const text = [
    `Too many at once: ${total} ${total === 1 ? 'message was' : 'messages were'} held back.`,
    ...(parts.length === 0 ? [] : [`Alarms: ${parts.join(', ')}`]),
    ...(ends === 0 ? [] : [`Cleared: ${ends}`]),
  ];
  const link = publicUrl === null ? null : `${publicUrl}/alarms`;
  const title = `${total} more ${total === 1 ? 'message' : 'messages'} about alarms`;
  return { id, title: toTitle(title), text: toText(text.join('\n')), link, severity };
}
