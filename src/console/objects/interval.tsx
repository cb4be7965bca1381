/** Chooses an interval of the past. */
import { type Signal, useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import { parseQueryTime } from '../../core/time.js';
import { write } from '../state/write.js';
import { type TextKey, t } from '../text/language.js';

export interface IntervalMs {
  readonly fromMs: number;
  readonly toMs: number;
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const LENGTHS: readonly [TextKey, number][] = [
  ['interval.hour', HOUR_MS],
  ['interval.sixHours', 6 * HOUR_MS],
  ['interval.day', 24 * HOUR_MS],
  ['interval.week', 7 * 24 * HOUR_MS],
  ['interval.month', 30 * 24 * HOUR_MS],
];

/** What the address says, by the rule of the interface; otherwise the day that ends with the last packet. */
export function intervalOf(query: Record<string, string>, lastMs: number | undefined): IntervalMs {
  const fromMs = parseQueryTime(query.from ?? '', 'first');
  const toMs = parseQueryTime(query.to ?? '', 'last');
  if (fromMs !== null && toMs !== null && fromMs < toMs) return { fromMs, toMs };
  // Whole minutes, so that the same page is not another one each time it is drawn.
  const end = Math.ceil((lastMs ?? Date.now()) / MINUTE_MS) * MINUTE_MS;
  return { fromMs: end - 24 * HOUR_MS, toMs: end };
}

/** The form of `datetime-local`: local time without a zone. */
function toLocal(ms: number): string {
  const date = new Date(ms);
  return new Date(ms - date.getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16);
}

interface IntervalProps {
  readonly interval: IntervalMs;
  readonly lastMs: number | undefined;
  readonly onChange: (interval: IntervalMs) => void;
}

export function Interval({ interval, lastMs, onChange }: IntervalProps) {
  const lengthMs = interval.toMs - interval.fromMs;
  const end = (): number => Math.max(lastMs ?? 0, interval.toMs);
  return (
    <div class="interval">
      <fieldset class="chips" aria-label={t('interval.label')}>
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
      <Bounds key={`${interval.fromMs} ${interval.toMs}`} interval={interval} onChange={onChange} />
    </div>
  );
}

function Bounds({ interval, onChange }: Omit<IntervalProps, 'lastMs'>) {
  const fromText = toLocal(interval.fromMs);
  const toText = toLocal(interval.toMs);
  const from = useSignal(fromText);
  const to = useSignal(toText);
  const isWrong = useSignal(false);
  const id = useId();
  const apply = (): void => {
    // The fields show whole minutes; the interval may not consist of them.
    const isSame = from.value === fromText && to.value === toText;
    const fromMs = new Date(from.value).getTime();
    const toMs = new Date(to.value).getTime();
    isWrong.value = !isSame && !(fromMs < toMs);
    if (!isSame && !isWrong.value) onChange({ fromMs, toMs });
  };
  const note = isWrong.value && { 'aria-invalid': true, 'aria-describedby': id };
  const field = (name: 'from' | 'to', text: Signal<string>) => (
    <>
      <label for={id + name}>{t(`interval.${name}`)}</label>
      <input
        id={id + name}
        type="datetime-local"
        value={text.value}
        onInput={(event) => write(text)(event.currentTarget.value)}
        onBlur={apply}
        {...note}
      />
    </>
  );
  return (
    <div class="bounds">
      {field('from', from)}
      {field('to', to)}
      {isWrong.value && (
        <p id={id} class="note error">
          {t('interval.wrong')}
        </p>
      )}
    </div>
  );
}
