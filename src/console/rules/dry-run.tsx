/** Tries a rule on the past before it is saved: how often it would have raised an alarm, where, and when. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { DAY_MS, HOUR_MS } from '../../core/units.js';
import { formatRead } from '../alarms/read-values.js';
import { explain, Field, Problem, Select, type useWork } from '../parts/form.js';
import { Section } from '../parts/tabs.js';
import { type Json, type Routes, request, VigilError } from '../state/api.js';
import { ordered } from '../state/by-name.js';
import { serverNowMs } from '../state/clock.js';
import type { FleetObject } from '../state/fleet.js';
import { toAddress } from '../state/location.js';
import { write } from '../state/write.js';
import { formatDateTime, formatNumber, t, tn } from '../text/language.js';
import { formatSpan } from '../text/spans.js';
import { PickList } from './fields.js';
import { objectsOf, titled } from './objects.js';

const PERIODS_DAYS = [1, 7, 30];

/** Objects that one try asks about, one after the other. */
const MOST_OBJECTS = 20;
const MOST_SHOWN = 20;

type Result = Routes['POST /api/v1/rules/test']['answer'];

interface Tried {
  readonly object: FleetObject;
  readonly result: Result | null;
  /** Why the rest is not known. */
  readonly error: unknown;
}

/** What is looked at: the last days, or between two moments as they are typed. */
interface Period {
  readonly days: number | null;
  readonly from: string;
  readonly to: string;
}

interface Trial {
  readonly period: Period;
  readonly rule: string;
  readonly count: number;
  readonly all: number;
  readonly tried: readonly Tried[];
}

interface DryRunProps {
  readonly rule: Json;
  readonly work: ReturnType<typeof useWork>;
  /** Throws what is typed and is no JSON. */
  readonly check: () => void;
}

export function DryRun({ rule, work, check }: DryRunProps) {
  const period = useSignal<Period>({ days: 7, from: '', to: '' });
  const chosen = useSignal<readonly string[]>([]);
  const trial = useSignal<Trial | null>(null);
  const found = useMemo(() => objectsOf(rule.select), [JSON.stringify(rule.select), ordered.value]);
  const options = useMemo(() => found.map(({ _id, id, name }) => [_id, titled(id, name)] as const), [found]);
  const run = async (): Promise<void> => {
    check();
    const ids = new Set(chosen.value);
    const named = found.filter(({ _id }) => ids.has(_id));
    const wanted = named.length > 0 ? named : found;
    const few = wanted.slice(0, MOST_OBJECTS);
    const asked = period.value;
    const text = JSON.stringify(rule);
    const show = (tried: readonly Tried[]): void => {
      trial.value = { period: asked, rule: text, count: few.length, all: wanted.length, tried };
    };
    let tried: readonly Tried[] = [];
    for (const object of few) {
      tried = [...tried, await tryOn(rule, object, asked)];
      show(tried);
    }
    if (few.length === 0) show(tried);
  };
  return (
    <Section title={t('rule.try')} about={t('rule.tryAbout')}>
      <div class="form rule-try">
        <div class="row-fields">
          <PeriodFields period={period.value} onChange={write(period)} />
          <PickList
            name="object"
            label={t('rule.objects')}
            hint={t('rule.tryAll', { count: formatNumber(Math.min(found.length, MOST_OBJECTS)) })}
            values={chosen.value}
            options={options}
            others="ignored"
            onChange={write(chosen)}
          />
        </div>
        <div>
          <button type="button" class="button" aria-busy={work.isBusy.value} onClick={() => void work.run(run)}>
            {t('rule.tryNow')}
          </button>
        </div>
        <div role="status" class="form">
          {trial.value && <Outcome trial={trial.value} isOld={trial.value.rule !== JSON.stringify(rule)} />}
        </div>
      </div>
    </Section>
  );
}

const OWN = 'own';

/** A recording, or what happened at a time that somebody remembers, may be long ago. */
function PeriodFields({ period, onChange }: { period: Period; onChange: (period: Period) => void }) {
  const days = PERIODS_DAYS.map((one) => [String(one), tn('rule.during', one)] as const);
  return (
    <div>
      <Select
        label={t('rule.tryPeriod')}
        value={String(period.days ?? OWN)}
        options={[...days, [OWN, t('rule.own')] as const]}
        onChange={(one) => onChange({ ...period, days: one === OWN ? null : Number(one) })}
      />
      {period.days === null &&
        (['from', 'to'] as const).map((bound) => (
          <Field
            key={bound}
            type="datetime-local"
            name={bound}
            label={t(`rule.${bound}`)}
            value={period[bound]}
            onInput={(text) => onChange({ ...period, [bound]: text })}
          />
        ))}
    </div>
  );
}

/** What is not typed is not sent: the server looks at the seven days before `to`, and until now. */
function boundsOf({ days, from, to }: Period): { from?: string; to?: string } {
  if (days !== null) return { from: isoOf(serverNowMs() - days * DAY_MS) };
  const bounds: { from?: string; to?: string } = {};
  if (from !== '') bounds.from = isoOf(from);
  if (to !== '') bounds.to = isoOf(to);
  return bounds;
}

const isoOf = (moment: number | string): string => new Date(moment).toISOString();

function wordsOf({ days, from, to }: Period): string {
  if (days !== null) return tn('rule.during', days);
  const shown = [from, to].map((text) => (text === '' ? '…' : formatDateTime(new Date(text).getTime())));
  return shown.join(' – ');
}

/** A refusal that names a field is thrown, to be shown there; too many packets of one object say so beside it. */
async function tryOn(rule: Json, object: FleetObject, period: Period): Promise<Tried> {
  const { name, ...rest } = rule;
  const named = typeof name === 'string' && name.trim() !== '' ? { name, ...rest } : rest;
  try {
    const body = { rule: named, object: object._id, ...boundsOf(period) };
    const result = await request('POST /api/v1/rules/test', { body });
    return { object, result, error: null };
  } catch (error) {
    if (error instanceof VigilError && (error.status === 413 || error.status === 403))
      return { object, result: null, error };
    throw error;
  }
}

function Outcome({ trial: { tried, count, all, period }, isOld }: { trial: Trial; isOld: boolean }) {
  const alarms = tried.reduce((sum, { result }) => sum + (result?.alarms.length ?? 0), 0);
  const on = tried.filter(({ result }) => (result?.alarms.length ?? 0) > 0).length;
  const packets = tried.reduce((sum, { result }) => sum + (result?.evaluated ?? 0), 0);
  return (
    <>
      {count === 0 ? (
        <p class="hint warn">{t('rule.tryNone')}</p>
      ) : (
        <p class="hint">
          <strong>{alarms === 0 ? t('rule.wouldNever') : tn('rule.would', alarms)}</strong>{' '}
          {t('rule.wouldWhere', {
            on: formatNumber(on),
            count: formatNumber(tried.length),
            period: wordsOf(period),
            packets: formatNumber(packets),
          })}
          {tried.length < count && ` ${t('rule.tryGoesOn', { left: formatNumber(count - tried.length) })}`}
          {count < all && ` ${t('rule.tryCut', { count: formatNumber(count), all: formatNumber(all) })}`}
        </p>
      )}
      {isOld && <p class="hint warn">{t('rule.tryOld')}</p>}
      <ul class="rule-tried">
        {tried.map((one) => (
          <li key={one.object._id}>
            <OfObject {...one} />
          </li>
        ))}
      </ul>
    </>
  );
}

function OfObject({ object, result, error }: Tried) {
  const alarms = result?.alarms ?? [];
  return (
    <>
      <h3>
        <a href={toAddress(`/objects/${object._id}/history`)}>{object.name}</a>
        <span class={`tag${alarms.length > 0 ? ' bad' : ''}`}>{tn('rule.times', alarms.length)}</span>
      </h3>
      {error !== null && <Problem error={new Error(explain(error))} />}
      {alarms.length > 0 && (
        <ol>
          {alarms.slice(0, MOST_SHOWN).map((alarm) => (
            <li key={alarm.raised}>
              <a href={toAddress(`/objects/${object._id}/history?${around(alarm)}`)}>{formatDateTime(alarm.raised)}</a>{' '}
              <span class="quiet">
                {alarm.cleared === null
                  ? t('rule.notCleared')
                  : t('rule.lasted', { span: formatSpan(alarm.cleared - alarm.raised) })}
                {readOf(alarm.values)}
              </span>
            </li>
          ))}
        </ol>
      )}
      {alarms.length > MOST_SHOWN && (
        <p class="quiet">{t('rule.moreAlarms', { count: formatNumber(alarms.length - MOST_SHOWN) })}</p>
      )}
      {result && alarms.length === 0 && <Nearly result={result} />}
    </>
  );
}

/** The history with all of an alarm, and what was before and after it. */
function around({ raised, cleared }: Result['alarms'][number]): string {
  const endMs = cleared ?? raised;
  const besideMs = Math.max(HOUR_MS, (endMs - raised) / 4);
  return new URLSearchParams({ from: isoOf(raised - besideMs), to: isoOf(endMs + besideMs) }).toString();
}

const readOf = (values: Json): string => {
  const texts = Object.entries(values).map(([name, value]) => `${name} ${formatRead(value)}`);
  return texts.length === 0 ? '' : ` · ${texts.join(', ')}`;
};

/** Why nothing would have been raised: how near each part came. */
function Nearly({ result: { evaluated, nearly } }: { result: Result }) {
  if (evaluated === 0) return <p class="quiet">{t('rule.noPackets')}</p>;
  return (
    <ul class="quiet">
      {nearly
        .filter(({ place }) => place !== 'when' || nearly.length === 1)
        .map(({ place, condition, heldMs, forMs, closest, at }) => (
          <li key={place}>
            <code>{condition}</code>:{' '}
            {heldMs > 0
              ? t(forMs > 0 ? 'rule.heldOf' : 'rule.held', { span: formatSpan(heldMs), wanted: formatSpan(forMs) })
              : t('rule.heldNever')}
            {closest !== null && closest !== undefined && at !== null && (
              <> {t('rule.closest', { value: formatRead(closest), moment: formatDateTime(at) })}</>
            )}
          </li>
        ))}
    </ul>
  );
}
