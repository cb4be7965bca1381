/** The rules of alarms: what each watches, whether it is active, and how many of its alarms are open. */
import { useSignal } from '@preact/signals';
import { SeverityMark } from '../alarms/severity.js';
import { DataTabs } from '../entities/data-tabs.js';
import { Confirm } from '../parts/confirm.js';
import { Problem, useWorkOfEach } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Empty, NotPermitted, Skeleton } from '../parts/notices.js';
import { SearchField } from '../parts/search-field.js';
import { Section } from '../parts/tabs.js';
import type { Alarm, Severity } from '../state/alarms.js';
import { type Entity, list, request } from '../state/api.js';
import { findObject } from '../state/by-name.js';
import { useFetched } from '../state/fetched.js';
import { objectRevision } from '../state/fleet.js';
import { interruptions } from '../state/live.js';
import { toAddress } from '../state/location.js';
import { isOwn, may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatNumber, t } from '../text/language.js';
import { selectionWords, wordsOf } from './words.js';

const PAGE = 1_000;
const MOST_OPEN = 10_000;

interface Rule extends Entity {
  readonly name: string;
  readonly severity?: Severity;
  readonly active?: boolean;
  readonly disabledReason?: string | null;
}

export function Rules() {
  return (
    <div class="page">
      <h1>{t('nav.data')}</h1>
      <DataTabs store="rules" />
      {may('GET', '/rules') ? <RuleList /> : <NotPermitted request="GET /rules/*" />}
    </div>
  );
}

/** How many alarms of each rule are open; nothing where they may not be read. */
async function countOpen(): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  if (!may('GET', '/alarms')) return counts;
  const open = await list<Alarm>('/alarms', { where: { status: 'raised' }, only: 'rule', limit: MOST_OPEN });
  for (const { rule } of open) counts.set(rule, (counts.get(rule) ?? 0) + 1);
  return counts;
}

function RuleList() {
  const search = useSignal('');
  const removed = useSignal<Rule | null>(null);
  const work = useWorkOfEach();
  const fetchRules = async () => {
    const query = { search: search.value || undefined, limit: PAGE };
    const [rules, open] = await Promise.all([list<Rule>('/rules', query), countOpen()]);
    return { rules, open };
  };
  const inputs = [search.value, interruptions.value];
  const { data, error, seenMs, reload } = useFetched(fetchRules, inputs, `rules ${search.value}`);
  const toggle = (rule: Rule): void => {
    void work.run([rule._id], async () => {
      const active = rule.active === false;
      await request('PATCH /api/v1/{store}/{id}', { path: { store: 'rules', id: rule._id }, body: { active } });
      await reload();
    });
  };
  return (
    <Section title={t('data.rules')} about={t('rule.about')} action={<NewButton />}>
      <SearchField label={t('entity.search')} value={search.value} onInput={write(search)} />
      <Problem error={error.value ?? work.error.value} seenMs={seenMs.value} />
      {data.value === null && !error.value && <Skeleton rows={4} />}
      {data.value?.rules.length === 0 && (
        <Empty icon="bell" title={t('entity.none')}>
          <p>{t('rule.none')}</p>
        </Empty>
      )}
      {data.value !== null && data.value.rules.length > 0 && (
        <RuleTable {...data.value} onToggle={toggle} onRemove={write(removed)} />
      )}
      {removed.value && (
        <Confirm
          title={t('settings.removeTitle', { name: removed.value.name })}
          text={t('rule.removeAbout')}
          action={t('action.remove')}
          onConfirm={async () => {
            const id = removed.value?._id ?? '';
            await request('DELETE /api/v1/{store}/{id}', { path: { store: 'rules', id } });
            await reload();
          }}
          onClose={() => write(removed)(null)}
        />
      )}
    </Section>
  );
}

const NewButton = () =>
  may('POST', '/rules') ? (
    <a class="button primary" href={toAddress('/rules/new')}>
      <Icon name="plus" /> {t('rule.new')}
    </a>
  ) : null;

interface TableProps {
  readonly rules: readonly Rule[];
  readonly open: ReadonlyMap<string, number>;
  readonly onToggle: (rule: Rule) => void;
  readonly onRemove: (rule: Rule) => void;
}

function RuleTable({ rules, ...rest }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard
    <section class="table" tabIndex={0} aria-label={t('data.rules')}>
      <table class="rows rules">
        <thead>
          <tr>
            <th scope="col">{t('entity.name')}</th>
            <th scope="col">{t('rule.watches')}</th>
            <th scope="col">{t('rule.openAlarms')}</th>
            <th scope="col">{t('entity.active')}</th>
            <th scope="col">
              <span class="visually-hidden">{t('entity.actions')}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rules.map((rule) => (
            <Row key={rule._id} rule={rule} {...rest} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

const nameOfObject = (key: string): string => findObject(key)?.name ?? key;

function Row({ rule, open, onToggle, onRemove }: Omit<TableProps, 'rules'> & { rule: Rule }) {
  objectRevision.value;
  const { _id, name, severity = 'warning', active = true, disabledReason } = rule;
  const path = `/rules/${_id}`;
  const count = open.get(_id) ?? 0;
  return (
    <tr>
      <td data-title={t('entity.name')}>
        <span class="rule-name">
          <SeverityMark severity={severity} isQuiet={!active} /> <a href={toAddress(path)}>{name}</a>
        </span>
      </td>
      <td data-title={t('rule.watches')} class="rule-words">
        <div>
          <p>
            {wordsOf(rule.when)}
            {rule.for !== undefined && rule.for !== null && ` ${t('rule.forWords', { span: String(rule.for) })}`}
          </p>
          <p class="quiet">{selectionWords(rule.select, nameOfObject)}</p>
          {disabledReason && <p class="note error">{t('rule.disabled', { reason: disabledReason })}</p>}
        </div>
      </td>
      <td data-title={t('rule.openAlarms')}>
        {count > 0 ? (
          <a href={toAddress(`/alarms?rule=${_id}`)}>{formatNumber(count)}</a>
        ) : (
          <span class="quiet">0</span>
        )}
      </td>
      <td data-title={t('entity.active')}>{t(active ? 'value.true' : 'value.false')}</td>
      <td>
        {isOwn(rule) && (
          <div class="actions">
            {may('PATCH', path) && (
              <button type="button" class="button small" onClick={() => onToggle(rule)}>
                {t(active ? 'rule.switchOff' : 'rule.switchOn')}
              </button>
            )}
            {may('DELETE', path) && (
              <button
                type="button"
                class="icon-button"
                aria-label={t('entity.remove', { name })}
                onClick={() => onRemove(rule)}
              >
                <Icon name="trash" size={16} />
              </button>
            )}
          </div>
        )}
      </td>
    </tr>
  );
}
