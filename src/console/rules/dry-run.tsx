/** Tries a rule on the past before it is saved: how often it would have raised an alarm, where, and when. */
import { signal, useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { Field, Select, type useWork } from '../parts/form.js';
import { Section } from '../parts/tabs.js';
import type { Json } from '../state/api.js';
import { ordered } from '../state/by-name.js';
import { usePart, withTextsOf } from '../state/parts.js';
import { write } from '../state/write.js';
import { formatNumber, t, tn } from '../text/language.js';
import { PickList } from './fields.js';
import { objectsOf, titled } from './objects.js';
import { DEFAULT_DAYS, MOST_OBJECTS, type Period, useTrial } from './trial.js';

const PERIODS_DAYS = [1, 7, 30];

/** It is loaded when a rule is tried first. */
const outcome = signal<typeof import('./outcome.js') | null>(null);

interface DryRunProps {
  readonly rule: Json;
  readonly work: ReturnType<typeof useWork>;
  /** Throws what is typed and is no JSON. */
  readonly check: () => void;
}

export function DryRun({ rule, work, check }: DryRunProps) {
  const period = useSignal<Period>({ days: DEFAULT_DAYS, from: '', to: '' });
  const chosen = useSignal<readonly string[]>([]);
  const found = useMemo(() => objectsOf(rule.select), [JSON.stringify(rule.select), ordered.value]);
  const options = useMemo(() => found.map(({ _id, id, name }) => [_id, titled(id, name)] as const), [found]);
  const named = found.filter(({ _id }) => chosen.value.includes(_id));
  const { trial, isOld, run } = useTrial({ rule, found, chosen: named, period: period.value, check });
  const count = Math.min(found.length, MOST_OBJECTS);
  const isMore = named.length === 0 && count > 1;
  const part = usePart(outcome, () => import('./outcome.js').then(withTextsOf), trial.value !== null);
  return (
    <Section title={t('rule.try')} about={t('rule.tryAbout')}>
      <div class="form rule-try">
        <div class="row-fields">
          <PeriodFields period={period.value} onChange={write(period)} />
          <PickList
            name="object"
            label={t('rule.objects')}
            hint={t('rule.tryAll', { count: formatNumber(count) })}
            values={chosen.value}
            options={options}
            others="ignored"
            onChange={write(chosen)}
          />
        </div>
        <div>
          <button type="button" class="button" aria-busy={work.isBusy.value} onClick={() => void work.run(run)}>
            {isMore ? t('rule.tryMore', { count: formatNumber(count) }) : t('rule.tryNow')}
          </button>
        </div>
        <div role="status" class="form">
          {trial.value && part && <part.Outcome trial={trial.value} isOld={isOld} />}
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
