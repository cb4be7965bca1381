/** What is wrong now: the most urgent open alarms, each with its object, its value and since when, to be acknowledged at once. */
import { signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { acknowledge, mayAcknowledge } from '../alarms/alarm-actions.js';
import { nameOfObject } from '../alarms/alarm-list.js';
import { personOf, summaryOf } from '../alarms/alarm-values.js';
import { SeverityMark } from '../alarms/severity.js';
import { Problem, useWorkOfEach } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { type Alarm, type OpenAlarm, onAlarm, urgentAlarms } from '../state/alarms.js';
import { list } from '../state/api.js';
import { nowMs } from '../state/clock.js';
import { objectRevision } from '../state/fleet.js';
import { interruptions } from '../state/live.js';
import { toAddress } from '../state/location.js';
import { formatNumber, t } from '../text/language.js';
import { formatSpan } from '../text/spans.js';
import { useShow } from './address.js';

/** The page of alarms has all of them. */
const MOST = 20;
/** Alarms whose details are kept. */
const MOST_KEPT = 1_000;
const MINUTE_MS = 60_000;
/** Where the browser keeps whether it is folded. */
const FOLDED = 'vigil.attention-folded';

type Detail = Pick<Alarm, 'values' | 'position' | 'acknowledged'>;

/** By the `_id` of the alarm; they come with every event, or are read. */
const details = new Map<string, Detail>();
const readings = signal(0);

function keep(alarm: Alarm): void {
  details.delete(alarm._id);
  details.set(alarm._id, alarm);
  for (const id of details.keys()) {
    if (details.size <= MOST_KEPT) break;
    details.delete(id);
  }
}

/** Reads what the page does not know of these alarms. */
function useDetails(alarms: readonly OpenAlarm[]): void {
  // What changed while nobody listened is read again.
  useEffect(() => {
    details.clear();
    readings.value++;
    return onAlarm(keep);
  }, [interruptions.value]);
  readings.value;
  const missing = alarms.map(({ _id }) => _id).filter((id) => !details.has(id));
  useEffect(() => {
    if (missing.length === 0) return;
    const query = { where: { _id: missing }, only: 'values,position,acknowledged', limit: missing.length };
    void list<Alarm>('/alarms', query).then(
      (found) => {
        // What came live meanwhile is newer.
        for (const alarm of found) if (!details.has(alarm._id)) keep(alarm);
        readings.value++;
      },
      // They are shown without.
      () => undefined,
    );
  }, [missing.join()]);
}

const isNarrow = (): boolean => matchMedia('(max-width: 720px)').matches;
const isFolded = (): boolean => (localStorage.getItem(FOLDED) ?? String(isNarrow())) === 'true';

/** At once: the event `toggle` comes later, and not at all where the page is left before. */
const keepFolding = ({ currentTarget }: { currentTarget: HTMLElement }): void =>
  localStorage.setItem(FOLDED, String((currentTarget.parentElement as HTMLDetailsElement).open));

export function Attention() {
  const { count, alarms } = urgentAlarms(MOST);
  useDetails(alarms);
  const work = useWorkOfEach();
  objectRevision.value;
  const element = useRef<HTMLUListElement>(null);
  const goOn = useFocus(element, alarms);
  const take = (index: number, alarm: OpenAlarm): void => {
    goOn(index, alarm);
    void work.run([alarm._id], () => acknowledge(alarm._id, ''));
  };
  return (
    <details class="attention" open={!isFolded()}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a button, also for the keyboard */}
      <summary onClick={keepFolding}>
        <h2>{t('attention.title')}</h2> <span class="tag">{formatNumber(count)}</span>
      </summary>
      <Problem error={work.error.value} />
      <ul ref={element} aria-label={t('attention.title')} onKeyDown={onKey}>
        {alarms.map((alarm, index) => (
          <Item key={alarm._id} alarm={alarm} onAcknowledge={() => take(index, alarm)} />
        ))}
        {count > alarms.length && (
          <li class="attention-all">
            <a href={toAddress('/alarms')}>{t('attention.all', { count: formatNumber(count) })}</a>
          </li>
        )}
      </ul>
    </details>
  );
}

/**
 * When an alarm is shown as acknowledged, its button is gone, and it may be elsewhere: the keyboard goes on with what is in its place,
 * unless somebody has moved the focus meanwhile.
 */
function useFocus(list: RefObject<HTMLUListElement | null>, alarms: readonly OpenAlarm[]) {
  const last = useRef<{ readonly id: string; readonly index: number; readonly item: Element | undefined } | null>(null);
  useEffect(() => {
    const { current: place } = last;
    if (place === null || alarms.some(({ _id, isWaiting }) => _id === place.id && isWaiting)) return;
    last.current = null;
    const { activeElement, body } = document;
    if (activeElement === body || place.item?.contains(activeElement))
      list.current?.querySelectorAll<HTMLElement>('.attention-open').item(place.index)?.focus();
  });
  return (index: number, { _id: id }: OpenAlarm): void => {
    last.current = { id, index, item: list.current?.children[index] };
  };
}

/** The arrows lead through the alarms, `a` acknowledges the one that has the focus. */
function onKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof HTMLElement)) return;
  const item = event.target.closest('li');
  const focus = (next: Element | null | undefined): void => {
    const found = next?.querySelector<HTMLElement>('.attention-open, a');
    if (!found) return;
    found.focus();
    event.preventDefault();
  };
  if (event.key === 'ArrowDown') focus(item?.nextElementSibling);
  else if (event.key === 'ArrowUp') focus(item?.previousElementSibling);
  else if (event.key === 'a') item?.querySelector<HTMLElement>('.attention-act')?.click();
}

function Item({ alarm, onAcknowledge }: { alarm: OpenAlarm; onAcknowledge: () => void }) {
  const show = useShow();
  const { _id, name, severity, isWaiting } = alarm;
  const object = nameOfObject(alarm.object);
  const detail = details.get(_id);
  const spanMs = Math.max(1, Math.floor((nowMs.value - alarm.raised) / MINUTE_MS)) * MINUTE_MS;
  return (
    <li class={isWaiting ? 'waits' : ''}>
      <SeverityMark severity={severity} size={18} isQuiet={!isWaiting} />
      <button type="button" class="attention-open" onClick={() => show({ object: alarm.object })}>
        <span class="attention-name">{name}</span>
        <span class="quiet">{[object, detail && valueText(alarm, detail)].filter(Boolean).join(' · ')}</span>
      </button>
      <span class="attention-side">
        <span class="quiet">{formatSpan(spanMs)}</span>
        {isWaiting && mayAcknowledge(_id) ? (
          <button
            type="button"
            class="attention-act"
            aria-label={t('attention.acknowledge', { name, object })}
            onClick={onAcknowledge}
          >
            {t('alarm.acknowledge')}
          </button>
        ) : (
          <State isWaiting={isWaiting} detail={detail} />
        )}
      </span>
    </li>
  );
}

function State({ isWaiting, detail }: { isWaiting: boolean; detail: Detail | undefined }) {
  if (isWaiting) return <span class="quiet">{t('alarm.waits')}</span>;
  return (
    <span class="quiet">
      <Icon name="check" size={13} /> {personOf(detail?.acknowledged?.user)}
    </span>
  );
}

/** What the alarm read, or else where it was. */
function valueText(alarm: OpenAlarm, { values, position }: Detail): string {
  const summary = summaryOf({ object: alarm.object, values });
  if (summary !== '' || !position) return summary;
  return `${position.lat.toFixed(4)}, ${position.lon.toFixed(4)}`;
}
