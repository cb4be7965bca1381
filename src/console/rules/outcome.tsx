/** What became of a rule that was tried on the past: how often it would have raised an alarm, where and when, or how near it came. */
import { HOUR_MS } from '../../core/units.js';
import { summaryOf } from '../alarms/alarm-values.js';
import type { IntervalMs } from '../objects/days.js';
import { explain, Problem } from '../parts/form.js';
import type { Json } from '../state/api.js';
import type { FleetObject } from '../state/fleet.js';
import { toAddress } from '../state/location.js';
import { formatDateTime, formatNumber, loadTexts, t, tn } from '../text/language.js';
import { formatSpan } from '../text/spans.js';
import { readWordsOf } from './read-words.js';
import type { Period, Result, Trial, Tried } from './trial.js';
import { TrialCharts } from './trial-chart.js';

/** It says what a rule has read as alarms do. */
export const loadOwnTexts = (): Promise<void> => loadTexts('alarms');

const MOST_SHOWN = 20;
const MOST_CHARTS = 3;

export function Outcome({ trial, isOld }: { trial: Trial; isOld: boolean }) {
  const { tried, count, all, period } = trial;
  const alarms = tried.reduce((sum, { result }) => sum + (result?.alarms.length ?? 0), 0);
  const raising = tried.filter(({ result }) => (result?.alarms.length ?? 0) > 0);
  const drawn = tried.length < count ? [] : (raising.length > 0 ? raising : tried).slice(0, MOST_CHARTS);
  const packets = tried.reduce((sum, { result }) => sum + (result?.evaluated ?? 0), 0);
  return (
    <>
      {count === 0 ? (
        <p class="hint warn">{t('rule.tryNone')}</p>
      ) : (
        <p class="hint">
          <strong>{alarms === 0 ? t('rule.wouldNever') : tn('rule.would', alarms)}</strong>{' '}
          {t('rule.wouldWhere', {
            on: formatNumber(raising.length),
            count: formatNumber(tried.length),
            period: wordsOf(period),
            packets: formatNumber(packets),
          })}
          {tried.length < count && ` ${t('rule.tryGoesOn', { left: formatNumber(count - tried.length) })}`}
          {count < all &&
            ` ${t(count === 1 ? 'rule.tryOne' : 'rule.tryCut', { count: formatNumber(count), all: formatNumber(all) })}`}
        </p>
      )}
      {isOld && <p class="hint warn">{t('rule.tryOld')}</p>}
      <ul class="rule-tried">
        {tried.map((one) => (
          <li key={one.object._id}>
            <OfObject {...one} rule={trial.rule} interval={drawn.includes(one) ? trial.interval : null} />
          </li>
        ))}
      </ul>
    </>
  );
}

interface OfObjectProps extends Tried {
  readonly rule: Json;
  /** Of its charts; null where none are shown. */
  readonly interval: IntervalMs | null;
}

function OfObject({ object, result, error, rule, interval }: OfObjectProps) {
  const alarms = result?.alarms ?? [];
  return (
    <>
      <h3>
        <a href={toAddress(`/objects/${object._id}/history`)}>{object.name}</a>
        <span class={`tag${alarms.length > 0 ? ' bad' : ''}`}>{tn('rule.times', alarms.length)}</span>
      </h3>
      {error !== null && <Problem error={new Error(explain(error))} />}
      {interval !== null && result !== null && result.evaluated > 0 && (
        <TrialCharts object={object} rule={rule} interval={interval} alarms={alarms} />
      )}
      {alarms.length > 0 && (
        <ol>
          {alarms.slice(0, MOST_SHOWN).map((alarm) => (
            <li key={alarm.raised}>
              <a href={toAddress(`/objects/${object._id}/history?${around(alarm)}`)}>{formatDateTime(alarm.raised)}</a>{' '}
              <span class="quiet">
                {alarm.cleared === null
                  ? t('rule.notCleared')
                  : t('rule.lasted', { span: formatSpan(alarm.cleared - alarm.raised) })}
                {readOf(object, alarm.values)}
              </span>
            </li>
          ))}
        </ol>
      )}
      {alarms.length > MOST_SHOWN && (
        <p class="quiet">{t('rule.moreAlarms', { count: formatNumber(alarms.length - MOST_SHOWN) })}</p>
      )}
      {result && alarms.length === 0 && <Nearly result={result} object={object} rule={rule} />}
    </>
  );
}

/** The history with all of an alarm, and what was before and after it. */
function around({ raised, cleared }: Result['alarms'][number]): string {
  const endMs = cleared ?? raised;
  const besideMs = Math.max(HOUR_MS, (endMs - raised) / 4);
  return new URLSearchParams({ from: isoOf(raised - besideMs), to: isoOf(endMs + besideMs) }).toString();
}

function readOf({ _id: object }: FleetObject, values: Json): string {
  const text = summaryOf({ object, values });
  return text === '' ? '' : ` · ${text}`;
}

interface NearlyProps {
  readonly result: Result;
  readonly object: FleetObject;
  readonly rule: Json;
}

/** Why nothing would have been raised: how near each part came. */
function Nearly({ result: { evaluated, nearly }, object, rule }: NearlyProps) {
  if (evaluated === 0) return <p class="quiet">{t('rule.noPackets')}</p>;
  const parts = nearly.filter(({ place }) => place !== 'when' || nearly.length === 1);
  return (
    <ul class="quiet">
      {parts.map((near) => {
        const { place, heldMs, forMs, at } = near;
        const { condition, closest } = readWordsOf(near, rule, object);
        const spans = { span: formatSpan(heldMs), wanted: formatSpan(forMs) };
        return (
          <li key={place}>
            <code>{condition}</code>:{' '}
            {heldMs > 0 ? t(forMs > 0 ? 'rule.heldOf' : 'rule.held', spans) : t('rule.heldNever')}
            {closest !== '' && at !== null && <> {t('rule.closest', { value: closest, moment: formatDateTime(at) })}</>}
          </li>
        );
      })}
    </ul>
  );
}

function wordsOf({ days, from, to }: Period): string {
  if (days !== null) return tn('rule.during', days);
  const shown = [from, to].map((text) => (text === '' ? '…' : formatDateTime(new Date(text).getTime())));
  return shown.join(' – ');
}

const isoOf = (ms: number): string => new Date(ms).toISOString();
