/** What narrows the alarms; it is in the address of the page. */
import { useMemo } from 'preact/hooks';
import { Select } from '../parts/form.js';
import { SearchField } from '../parts/search-field.js';
import { type Alarm, SEVERITIES, type Severity } from '../state/alarms.js';
import { objectRevision } from '../state/fleet.js';
import { t } from '../text/language.js';
import { type AlarmFilter, nameOfObject, STATUSES, type Status } from './alarm-list.js';

export function filterOf(query: Readonly<Record<string, string>>): AlarmFilter {
  return {
    status: STATUSES.find((one) => one === query.show) ?? 'open',
    severity: SEVERITIES.find((one) => one === query.severity) ?? null,
    object: query.object ?? null,
    rule: query.rule ?? null,
    search: query.search ?? '',
  };
}

export function toQuery({ status, ...rest }: AlarmFilter): string {
  const all = { show: status === 'open' ? null : status, ...rest };
  const given = Object.entries(all).filter(([, value]) => value !== null && value !== '') as [string, string][];
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

interface FiltersProps {
  readonly filter: AlarmFilter;
  readonly alarms: readonly Alarm[];
  readonly onChange: (change: Partial<AlarmFilter>) => void;
}

/** More cannot be chosen from. */
const MOST_OPTIONS = 500;

type Option = readonly [value: string, text: string];

function optionsOf(alarms: readonly Alarm[], chosen: string | null, read: (alarm: Alarm) => Option): Option[] {
  const found = new Map<string, string>();
  for (const alarm of alarms) {
    const [value, text] = read(alarm);
    if (!found.has(value) && found.size < MOST_OPTIONS) found.set(value, text);
  }
  if (chosen !== null && !found.has(chosen)) found.set(chosen, nameOfObject(chosen));
  const sorted = [...found].sort(([, one], [, other]) => one.localeCompare(other, undefined, { numeric: true }));
  return [['', t('filter.all')], ...sorted];
}

export function AlarmFilters({ filter, alarms, onChange }: FiltersProps) {
  const rules = useMemo(() => optionsOf(alarms, filter.rule, ({ rule, name }) => [rule, name]), [alarms, filter.rule]);
  const places = useMemo(
    () => optionsOf(alarms, filter.object, ({ object }) => [object, nameOfObject(object)]),
    [alarms, filter.object, objectRevision.value],
  );
  return (
    <div class="alarm-filters">
      <fieldset class="chips" aria-label={t('list.filter')}>
        {STATUSES.map((one: Status) => (
          <button
            key={one}
            type="button"
            class="chip"
            aria-pressed={filter.status === one}
            onClick={() => onChange({ status: one })}
          >
            {t(`alarms.${one}`)}
          </button>
        ))}
      </fieldset>
      <SearchField label={t('alarms.search')} value={filter.search} onInput={(search) => onChange({ search })} />
      <Select
        label={t('alarm.severity')}
        value={filter.severity ?? ''}
        options={[['', t('filter.all')], ...SEVERITIES.map((one): Option => [one, t(`severity.${one}`)])]}
        onChange={(value) => onChange({ severity: (value || null) as Severity | null })}
      />
      <Select
        label={t('alarm.rule')}
        value={filter.rule ?? ''}
        options={rules}
        onChange={(value) => onChange({ rule: value || null })}
      />
      <Select
        label={t('alarm.object')}
        value={filter.object ?? ''}
        options={places}
        onChange={(value) => onChange({ object: value || null })}
      />
    </div>
  );
}
