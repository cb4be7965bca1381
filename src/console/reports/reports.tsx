/** Reports on many objects: what is asked for stands in the address; a table with totals, on screen, on paper and as CSV. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { REPORT_KINDS, type ReportName } from '../../core/report-kinds.js';
import { Field, Problem, Select } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { NotPermitted, Skeleton } from '../parts/notices.js';
import { request, toQueryString } from '../state/api.js';
import { serverNowMs } from '../state/clock.js';
import { useFetched } from '../state/fetched.js';
import { toAddress, useLocation } from '../state/location.js';
import { namedOf, nameOf, titleOf } from '../state/references.js';
import { pages } from '../state/session.js';
import { firstDayOfWeek } from '../text/calendar.js';
import { formatDate, formatNumber, t } from '../text/language.js';
import { type Asked, askedOf, isDay, isDivisible, type Query, toRequest } from './asked.js';
import type { ReportAnswer } from './columns.js';
import { withHour } from './hours.js';
import { RANGES } from './ranges.js';
import { SendByMail } from './send-by-mail.js';
import { ReportTable } from './table.js';

/** More rows are in CSV. */
const ROWS = 1_000;
/** A report takes up to a minute to compute. */
const TIMEOUT_MS = 180_000;

const zone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

const fetchReport = (kind: ReportName, query: Query): Promise<ReportAnswer> =>
  request(`GET /api/v1/reports/${kind}`, {
    query: { ...query, limit: ROWS } as never,
    timeoutMs: TIMEOUT_MS,
  }) as unknown as Promise<ReportAnswer>;

/** Changes the query of the address; what is empty is not there. */
function useAsked() {
  const { path, query, route } = useLocation();
  const asked = askedOf(query, serverNowMs(), firstDayOfWeek());
  const change = (changed: Record<string, string>): void => {
    const next = Object.entries({ ...query, ...changed }).filter(([, value]) => value !== '');
    route(`${path}?${new URLSearchParams(Object.fromEntries(next))}`, true);
  };
  return { query, asked, change };
}

export function Reports() {
  const { query, asked, change } = useAsked();
  const requested = toRequest(query, asked, zone());
  const isAskable = asked.kind !== 'utilization' || requested.param !== undefined;
  const key = `${asked.kind} ${JSON.stringify(requested)}`;
  if (!pages.value.objects) return <NotPermitted request="GET /objects" />;
  return (
    <div class="page report">
      <h1>{t('nav.reports')}</h1>
      <Choices query={query} asked={asked} onChange={change} />
      <p class="report-about">{aboutOf(query, asked)}</p>
      {isAskable ? (
        <Result
          key={key}
          kind={asked.kind}
          requested={requested}
          sort={query.sort}
          mail={<SendByMail query={query} asked={asked} />}
          onSort={(sort) => change({ sort })}
        />
      ) : (
        <p class="quiet">{t('reports.needsParam')}</p>
      )}
    </div>
  );
}

/** What the table is of, also on paper. */
function aboutOf({ group, objects, param = '' }: Query, { kind, from, to, hours }: Asked): string {
  const day = (text: string): string => formatDate(Date.parse(`${text}T12:00`), { dateStyle: 'medium' });
  const of = [group ? nameOf('groups', group) : '', objects ?? ''].filter((text) => text !== '').join(', ');
  return [
    t(`reports.${kind}.title`) + (kind === 'utilization' && param !== '' ? `: ${param}` : ''),
    of === '' ? t('reports.all') : of,
    (from === to ? day(from) : `${day(from)} – ${day(to)}`) + (hours ? `, ${hours.from} – ${hours.to}` : ''),
  ].join(' · ');
}

interface ChoicesProps {
  readonly query: Query;
  readonly asked: Asked;
  readonly onChange: (changed: Record<string, string>) => void;
}

function Choices({ query, asked, onChange }: ChoicesProps) {
  const { kind, range } = asked;
  const groups = namedOf('groups').map((group): [string, string] => [group._id, titleOf(group)]);
  const chip = (isPressed: boolean, text: string, changed: Record<string, string>) => (
    <button key={text} type="button" class="chip" aria-pressed={isPressed} onClick={() => onChange(changed)}>
      {text}
    </button>
  );
  const text = (name: 'objects' | 'param', placeholder: string) => (
    <Typed
      label={t(`reports.${name}`)}
      placeholder={placeholder}
      value={query[name] ?? ''}
      onChange={(value) => onChange({ [name]: value })}
    />
  );
  return (
    <div class="report-choices no-print">
      <fieldset class="chips" aria-label={t('reports.kind')}>
        {REPORT_KINDS.map((one) => chip(one === kind, t(`reports.${one}.title`), { kind: one, sort: '' }))}
      </fieldset>
      <fieldset class="chips" aria-label={t('reports.interval')}>
        {[...RANGES, ...(kind === 'shift' ? (['lastShift'] as const) : [])].map((one) =>
          chip(one === range, t(`reports.${one}`), { range: one, from: '', to: '' }),
        )}
      </fieldset>
      <div class="report-fields">
        {groups.length > 0 && (
          <Select
            label={t('entity.group')}
            value={query.group ?? ''}
            options={[['', t('reports.all')], ...groups]}
            onChange={(group) => onChange({ group })}
          />
        )}
        {text('objects', 'truck-7, truck-8')}
        <Interval asked={asked} onChange={onChange} />
        {isDivisible(kind) && (
          <Select
            label={t('reports.every')}
            value={query.every ?? ''}
            options={partOptions()}
            onChange={(every) => onChange({ every })}
          />
        )}
        {kind === 'utilization' && text('param', 'ignition')}
      </div>
    </div>
  );
}

/** The first and the last day, and the hours of a shift. */
function Interval({ asked: { kind, from, to, hours }, onChange }: Omit<ChoicesProps, 'query'>) {
  const day = (name: 'from' | 'to', value: string) => (
    <Typed
      label={t(`reports.${name}`)}
      type="date"
      value={value}
      onChange={(next) => isDay(next) && onChange({ range: '', ...keptOrder(name, next, { from, to }) })}
    />
  );
  const hour = (name: 'from' | 'to') => (
    <Typed
      label={t(`reports.${name}Hour`)}
      type="time"
      value={hours?.[name] ?? ''}
      onChange={(time) => onChange({ hours: withHour(hours, name, time) })}
    />
  );
  const hasHours = kind === 'shift' || hours !== undefined;
  return (
    <>
      {day('from', from)}
      {day('to', to)}
      {hasHours && hour('from')}
      {hasHours && hour('to')}
    </>
  );
}

const partOptions = (): [string, string][] => [
  ['', t('reports.whole')],
  ['1 day', t('reports.day')],
  ['1 week', t('reports.week')],
  ['1 month', t('reports.month')],
];

/** A later beginning moves the end, and an earlier end the beginning. */
function keptOrder(name: 'from' | 'to', day: string, { from, to }: { from: string; to: string }) {
  if (name === 'from') return { from: day, to: day > to ? day : to };
  return { from: day < from ? day : from, to: day };
}

interface TypedProps {
  readonly label: string;
  readonly type?: 'date' | 'time';
  readonly placeholder?: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** A text that is applied when it is left, or with Enter. */
function Typed({ label, type, placeholder, value, onChange }: TypedProps) {
  const typed = useSignal<string | null>(null);
  const apply = (): void => {
    const text = typed.value?.trim();
    typed.value = null;
    if (text !== undefined && text !== value) onChange(text);
  };
  return (
    <form
      class="field-form"
      onSubmit={(event) => {
        event.preventDefault();
        apply();
      }}
      onFocusOut={apply}
      onKeyDown={(event) => {
        // A field of a day does not send its form.
        if (event.key === 'Enter') apply();
      }}
    >
      <Field
        label={label}
        {...(type && { type })}
        placeholder={placeholder}
        value={typed.value ?? value}
        onInput={(text) => {
          typed.value = text;
        }}
      />
    </form>
  );
}

/** Spreadsheets expect semicolons where numbers have a decimal comma. */
const csvForm = (): Query => ({
  format: 'csv',
  bom: 'true',
  ...(formatNumber(0.5).includes(',') && { separator: 'semicolon', decimal: 'comma' }),
});

interface ResultProps {
  readonly kind: ReportName;
  readonly requested: Query;
  readonly sort: string | undefined;
  readonly onSort: (sort: string) => void;
  /** The button that sends it by mail. */
  readonly mail: ComponentChildren;
}

function Result({ kind, requested, sort, onSort, mail }: ResultProps) {
  const { data, error } = useFetched(() => fetchReport(kind, requested));
  const answer = data.value;
  if (error.value) return <Problem error={error.value} />;
  if (answer === null) return <Skeleton rows={6} />;
  const { missing = [] } = answer;
  return (
    <>
      {answer.cut !== null && (
        <p class="problem" role="alert">
          {t('reports.cut', { count: formatNumber(answer.cut.objects) })} {answer.cut.reason}
        </p>
      )}
      {missing.length > 0 && (
        <p class="quiet">
          {t('reports.missing', { parts: missing.map((part) => t(`reports.part.${part}`)).join(', ') })}
        </p>
      )}
      <ReportTable kind={kind} answer={answer} every={requested.every} sort={sort} onSort={onSort} />
      <div class="buttons no-print">
        <a
          class="button small"
          href={toAddress(`/api/v1/reports/${kind}${toQueryString({ ...requested, ...csvForm() })}`)}
          download=""
        >
          <Icon name="download" size={16} /> CSV
        </a>
        <button type="button" class="button small" onClick={() => print()}>
          {t('reports.print')}
        </button>
        {mail}
      </div>
    </>
  );
}
