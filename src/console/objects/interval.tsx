/** Chooses an interval of the past. */
import { useSignal } from '@preact/signals';
import { useEffect, useId, useRef } from 'preact/hooks';
import { parseQueryTime } from '../../core/time.js';
import { Icon, type IconName } from '../parts/icon.js';
import { serverNowMs } from '../state/clock.js';
import { useLocation } from '../state/location.js';
import { firstDayOfWeek } from '../text/calendar.js';
import { type TextKey, t } from '../text/language.js';
import { type Days, daysAt, type IntervalMs } from './days.js';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const LENGTHS: readonly [TextKey, number][] = [
  ['interval.hour', HOUR_MS],
  ['interval.sixHours', 6 * HOUR_MS],
  ['interval.day', 24 * HOUR_MS],
  ['interval.week', 7 * 24 * HOUR_MS],
  ['interval.month', 30 * 24 * HOUR_MS],
];

const DAYS: readonly [TextKey, Days][] = [
  ['interval.today', 'today'],
  ['interval.yesterday', 'yesterday'],
  ['interval.thisWeek', 'week'],
];

const isSame = (one: IntervalMs, other: IntervalMs): boolean => one.fromMs === other.fromMs && one.toMs === other.toMs;

/**
 * What the address says, by the rule of the interface. Without `to`, it ends with the last packet; without `from`, or with one that is
 * no time, it is the day before its end. The last day for what is no interval.
 */
export function intervalOf(query: Record<string, string>, lastMs: number | undefined): IntervalMs {
  // Whole minutes, so that the same page is not another one each time it is drawn.
  const endMs = Math.ceil((lastMs ?? serverNowMs()) / MINUTE_MS) * MINUTE_MS;
  const lastDay = { fromMs: endMs - 24 * HOUR_MS, toMs: endMs };
  const toMs = query.to ? parseQueryTime(query.to, 'last') : endMs;
  if (toMs === null) return lastDay;
  const fromMs = parseQueryTime(query.from ?? '', 'first') ?? toMs - 24 * HOUR_MS;
  return fromMs < toMs ? { fromMs, toMs } : lastDay;
}

/** The same interval as the address says it: numbers that could be something else are no times there. */
function toQuery({ fromMs, toMs }: IntervalMs): string {
  const textOf = (ms: number): string =>
    parseQueryTime(String(ms), 'first') === ms ? String(ms) : new Date(ms).toISOString();
  return `from=${textOf(Math.round(fromMs))}&to=${textOf(Math.round(toMs))}`;
}

/** The same query with another interval: what is shown of it stays. */
export function withInterval(query: Readonly<Record<string, string>>, interval: IntervalMs): string {
  const { from: _from, to: _to, ...kept } = query;
  const rest = new URLSearchParams(kept).toString();
  return rest === '' ? toQuery(interval) : `${toQuery(interval)}&${rest}`;
}

/** Three times as long, with the same middle. */
export function widen({ fromMs, toMs }: IntervalMs): IntervalMs {
  const lengthMs = toMs - fromMs;
  return { fromMs: fromMs - lengthMs, toMs: toMs + lengthMs };
}

/** The interval before or after it, which has none of its moments: before a day is a day. */
function shift({ fromMs, toMs }: IntervalMs, count: 1 | -1): IntervalMs {
  const lengthMs = toMs - fromMs + 1;
  return { fromMs: fromMs + count * lengthMs, toMs: toMs + count * lengthMs };
}

/** The form of `datetime-local`: local time without a zone. */
function textOf(interval: IntervalMs, name: Bound): string {
  const ms = interval[`${name}Ms`];
  const date = new Date(ms);
  return new Date(ms - date.getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16);
}

interface IntervalProps {
  readonly interval: IntervalMs;
  readonly lastMs: number | undefined;
  /** False where the page has buttons of its own that move and lengthen it. */
  readonly hasSteps?: boolean;
  readonly onChange: (interval: IntervalMs) => void;
}

export function Interval({ interval, lastMs, hasSteps = true, onChange }: IntervalProps) {
  const lengthMs = interval.toMs - interval.fromMs;
  // Days end in the future.
  const end = (): number => Math.max(lastMs ?? 0, Math.min(interval.toMs, serverNowMs()));
  const daysOf = (days: Days): IntervalMs => daysAt(serverNowMs(), days, firstDayOfWeek());
  return (
    <div class="interval">
      <fieldset class="chips" aria-label={t('interval.label')}>
        {DAYS.map(([text, days]) => (
          <button
            key={text}
            type="button"
            class="chip"
            aria-pressed={isSame(daysOf(days), interval)}
            onClick={() => onChange(daysOf(days))}
          >
            {t(text)}
          </button>
        ))}
        {LENGTHS.map(([text, length]) => (
          <button
            key={text}
            type="button"
            class="chip"
            aria-pressed={lengthMs === length}
            onClick={() => onChange({ fromMs: end() - length, toMs: end() })}
          >
            {t(text)}
          </button>
        ))}
      </fieldset>
      <Bounds interval={interval} onChange={onChange} />
      {hasSteps && (
        <div class="buttons">
          <IntervalButton text="interval.earlier" icon="left" onClick={() => onChange(shift(interval, -1))} />
          <IntervalButton
            text="interval.later"
            icon="right"
            isUseless={interval.toMs >= serverNowMs()}
            onClick={() => onChange(shift(interval, 1))}
          />
          <IntervalButton text="interval.longer" icon="minus" onClick={() => onChange(widen(interval))} />
        </div>
      )}
    </div>
  );
}

interface IntervalButtonProps {
  readonly text: TextKey;
  readonly icon: IconName;
  readonly isUseless?: boolean;
  readonly onClick: () => void;
}

function IntervalButton({ text, icon, isUseless = false, onClick }: IntervalButtonProps) {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={t(text)}
      title={t(text)}
      disabled={isUseless}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}

type Bound = 'from' | 'to';

/** Leaving a field applies it, and Enter does. What somebody types is replaced by nothing that happens meanwhile. */
function Bounds({ interval, onChange }: Pick<IntervalProps, 'interval' | 'onChange'>) {
  const { query } = useLocation();
  const typed = useSignal<Partial<Record<Bound, string>>>({});
  const isWrong = useSignal(false);
  const place = useRef<HTMLDivElement>(null);
  const id = useId();
  // Another interval was chosen elsewhere: its fields show that one.
  useEffect(() => {
    if (place.current?.contains(document.activeElement)) return;
    typed.value = {};
    isWrong.value = false;
  }, [query.from, query.to]);
  const isTyped = (name: Bound): boolean => (typed.value[name] ?? textOf(interval, name)) !== textOf(interval, name);
  // The fields show whole minutes; a bound that nobody typed may not be one.
  const msOf = (name: Bound): number =>
    isTyped(name) ? new Date(typed.value[name] ?? '').getTime() : interval[`${name}Ms`];
  const apply = (): void => {
    const fromMs = msOf('from');
    const toMs = msOf('to');
    const isChanged = isTyped('from') || isTyped('to');
    isWrong.value = isChanged && !(fromMs < toMs);
    if (isWrong.value) return;
    typed.value = {};
    if (isChanged) onChange({ fromMs, toMs });
  };
  const note = isWrong.value && { 'aria-invalid': true, 'aria-describedby': id };
  const field = (name: Bound) => (
    <>
      <label for={id + name}>{t(`interval.${name}`)}</label>
      <input
        id={id + name}
        type="datetime-local"
        value={typed.value[name] ?? textOf(interval, name)}
        onInput={(event) => {
          typed.value = { ...typed.value, [name]: event.currentTarget.value };
        }}
        onBlur={apply}
        onKeyDown={(event) => {
          if (event.key === 'Enter') apply();
        }}
        {...note}
      />
    </>
  );
  return (
    <div class="bounds" ref={place}>
      {field('from')}
      {field('to')}
      {isWrong.value && (
        <p id={id} class="note error">
          {t('interval.wrong')}
        </p>
      )}
    </div>
  );
}
