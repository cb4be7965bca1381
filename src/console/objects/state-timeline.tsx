/** What an object was over time, as bars: a door, the ignition, a mode. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { ToneMark } from '../home/tone.js';
import { type Model, modelOf, type Shown, toShown } from '../home/values.js';
import { Section } from '../parts/tabs.js';
import { serverNowMs } from '../state/clock.js';
import type { FleetObject, Packet } from '../state/fleet.js';
import { toAddress, useLocation } from '../state/location.js';
import { formatMoment, formatNumber, t } from '../text/language.js';
import { formatSpan } from '../text/spans.js';
import type { IntervalMs } from './days.js';
import { withInterval } from './interval.js';
import { namesIn, textOfNames } from './names.js';
import { ParameterChips } from './parameter-chips.js';
import { type Segment, type StatePath, type StateValue, segmentsOf, totalsOf } from './states.js';

export { loadOwnTexts } from './history-texts.js';

const MOST_SHOWN = 6;
const FIRST_SHOWN = 4;
const COLORS = 8;
/** Of the width of a bar: a name fits into wider ones. */
const NAMED_SHARE = 0.08;
/** Of the units in which bars are drawn: shorter ones are seen, too. */
const WIDTH = 2_000;
const LEAST_WIDTH = 2;
const MOST_CHANGES = 200;

interface StateTimelineProps {
  readonly object: FleetObject;
  /** In the order of their times. */
  readonly packets: readonly Packet[];
  readonly paths: readonly StatePath[];
  /** Whether the interval has more packets than these. */
  readonly isCut: boolean;
}

export function StateTimeline({ object, packets, paths, isCut }: StateTimelineProps) {
  const model = modelOf(object._id, object.model);
  const { query, path, route } = useLocation();
  const parameters = useMemo(
    () => paths.map((one) => ({ name: one.path, label: toShown(one.path, 0, model).label })),
    [paths, model],
  );
  const chosen = namesIn(query.states);
  const shown = chosen === null ? paths.slice(0, FIRST_SHOWN) : paths.filter((one) => chosen.includes(one.path));
  const names = shown.map((one) => one.path);
  const toggle = (name: string): void => {
    const others = names.filter((one) => one !== name);
    const next = others.length < names.length ? others : [...others, name].slice(-MOST_SHOWN);
    route(`${path}?${new URLSearchParams({ ...query, states: textOfNames(next) })}`, true);
  };
  const interval = { fromMs: packets[0]?.time ?? 0, toMs: packets.at(-1)?.time ?? 0 };
  return (
    <Section
      title={t('states.title')}
      about={isCut ? t('states.cut', { count: formatNumber(packets.length) }) : undefined}
    >
      {paths.length > 1 && <ParameterChips parameters={parameters} chosen={names} onToggle={toggle} />}
      {shown.map((one) => (
        <StateBar key={one.path} state={one} packets={packets} interval={interval} model={model} />
      ))}
    </Section>
  );
}

interface StateBarProps {
  readonly state: StatePath;
  readonly packets: readonly Packet[];
  readonly interval: IntervalMs;
  readonly model: Model | undefined;
}

function StateBar({ state: { path, values }, packets, interval, model }: StateBarProps) {
  const readout = useSignal('');
  const isOpen = useSignal(false);
  const { label } = toShown(path, 0, model);
  const shownOf = useMemo(() => toShownOf(values, path, model), [values, path, model]);
  const hasNumbers = values.some((value) => typeof value === 'number');
  const segments = useMemo(() => segmentsOf(packets, path, hasNumbers), [packets, path, hasNumbers]);
  const totals = useMemo(() => totalsOf(segments), [segments]);
  const lengthMs = Math.max(1, interval.toMs - interval.fromMs);
  const words = totals.map((total) => `${shownOf(total.value).text} ${formatSpan(total.lengthMs)}`);
  const readAt = (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const timeMs = interval.fromMs + ((event.clientX - box.left) / box.width) * lengthMs;
    const found = segments.findLast(({ fromMs }) => fromMs <= timeMs);
    readout.value = found && timeMs <= found.toMs ? wordsOfSegment(found, shownOf(found.value)) : '';
  };
  return (
    <figure class="figure state">
      <figcaption>
        <span>{label}</span>
        <span class="readout">{readout}</span>
      </figcaption>
      <div
        class="state-bar"
        role="img"
        aria-label={`${label}: ${words.join(', ')}`}
        onPointerMove={readAt}
        onPointerDown={readAt}
        onPointerLeave={() => {
          readout.value = '';
        }}
      >
        <Bars segments={segments} values={values} interval={interval} shownOf={shownOf} />
      </div>
      <p class="state-ends">
        <span>{formatMoment(interval.fromMs, serverNowMs())}</span>
        <span>{formatMoment(interval.toMs, serverNowMs())}</span>
      </p>
      <ul class="state-totals">
        {totals.map((total) => (
          <li key={String(total.value)}>
            <span class={`swatch ${toneIn(values, shownOf(total.value))}`} />
            {shownOf(total.value).text} <ToneMark {...shownOf(total.value)} />{' '}
            <span class="quiet">{formatSpan(total.lengthMs)}</span>
          </li>
        ))}
      </ul>
      <details
        onToggle={(event) => {
          isOpen.value = event.currentTarget.open;
        }}
      >
        <summary>{t('states.changes', { count: formatNumber(segments.length) })}</summary>
        {isOpen.value && <Changes label={label} segments={segments} shownOf={shownOf} />}
      </details>
    </figure>
  );
}

function toShownOf(values: readonly StateValue[], path: string, model: Model | undefined) {
  const shown = new Map(values.map((value) => [value, toShown(path, value, model)]));
  return (value: StateValue): Shown => shown.get(value) as Shown;
}

/** As the model says; otherwise `No` is drawn quietly, everything else in a color of its own. */
function toneIn(values: readonly StateValue[], { value, tone }: Shown): string {
  if (tone !== undefined) return `tone-${tone}`;
  if (value === false) return 'tone-off';
  return `tone-${values.filter((one) => one !== false).indexOf(value as Exclude<StateValue, false>) % COLORS}`;
}

interface BarsProps {
  readonly segments: readonly Segment[];
  readonly values: readonly StateValue[];
  readonly interval: IntervalMs;
  readonly shownOf: (value: StateValue) => Shown;
}

/** A path for each value, because there may be thousands of changes. */
function Bars({ segments, values, interval: { fromMs, toMs }, shownOf }: BarsProps) {
  const lengthMs = Math.max(1, toMs - fromMs);
  const paths = useMemo(() => {
    const parts = new Map<StateValue, string[]>();
    for (const one of segments) {
      const left = ((one.fromMs - fromMs) / lengthMs) * WIDTH;
      const width = Math.max(LEAST_WIDTH, ((one.toMs - one.fromMs) / lengthMs) * WIDTH);
      const part = parts.get(one.value) ?? [];
      part.push(
        `M${Math.min(left, WIDTH - width).toFixed(1)} 0h${width.toFixed(1)}v1H${Math.min(left, WIDTH - width).toFixed(1)}z`,
      );
      parts.set(one.value, part);
    }
    return [...parts];
  }, [segments, fromMs, toMs]);
  const named = segments.filter((one) => one.toMs - one.fromMs >= NAMED_SHARE * lengthMs);
  return (
    <>
      <svg viewBox={`0 0 ${WIDTH} 1`} preserveAspectRatio="none" aria-hidden="true">
        {paths.map(([value, parts]) => (
          <path key={String(value)} class={toneIn(values, shownOf(value))} d={parts.join('')} />
        ))}
      </svg>
      {named.map((one) => (
        <span
          key={one.fromMs}
          style={{
            left: `${((one.fromMs - fromMs) / lengthMs) * 100}%`,
            width: `${((one.toMs - one.fromMs) / lengthMs) * 100}%`,
          }}
        >
          {shownOf(one.value).text}
        </span>
      ))}
    </>
  );
}

const wordsOfSegment = ({ fromMs, toMs }: Segment, { text }: Shown): string =>
  `${formatMoment(fromMs, serverNowMs())} – ${formatMoment(toMs, serverNowMs())} · ${text} · ${formatSpan(toMs - fromMs)}`;

/** The newest ones first, each a link to its time. */
function Changes({ label, segments, shownOf }: Pick<BarsProps, 'segments' | 'shownOf'> & { label: string }) {
  const { path, query } = useLocation();
  const shown = segments.slice(-MOST_CHANGES).reverse();
  return (
    <div class="table">
      <table aria-label={label}>
        <thead>
          <tr>
            <th>{t('states.value')}</th>
            <th>{t('interval.from')}</th>
            <th>{t('states.duration')}</th>
            <th>{t('interval.to')}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((one) => (
            <tr key={one.fromMs}>
              <td>
                {shownOf(one.value).text} <ToneMark {...shownOf(one.value)} />
              </td>
              <td>
                {one.toMs > one.fromMs ? (
                  <a href={toAddress(`${path}?${withInterval(query, one)}`)}>
                    {formatMoment(one.fromMs, serverNowMs())}
                  </a>
                ) : (
                  formatMoment(one.fromMs, serverNowMs())
                )}
              </td>
              <td>{formatSpan(one.toMs - one.fromMs)}</td>
              <td>{formatMoment(one.toMs, serverNowMs())}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < segments.length && (
        <p class="hint">{t('states.cutChanges', { count: formatNumber(shown.length) })}</p>
      )}
    </div>
  );
}
