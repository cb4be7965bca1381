/** The fields of a rule: what it watches, when it raises an alarm and clears it, and what follows. */
import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useContext, useMemo } from 'preact/hooks';
import { DAY_MS } from '../../core/units.js';
import { FormWork } from '../parts/field-errors.js';
import { Field, Select } from '../parts/form.js';
import { Section } from '../parts/tabs.js';
import { SEVERITIES } from '../state/alarms.js';
import type { Json } from '../state/api.js';
import { findObject, ordered } from '../state/by-name.js';
import { t } from '../text/language.js';
import { Actions, Escalation, Reference } from './actions.js';
import { Condition } from './condition.js';
import { RuleFields } from './context.js';
import { isEscalation, isObject, isSchedule, isSelection, withMember } from './draft.js';
import { JsonField, PickList, RulePart } from './fields.js';
import { commandsFor, knownLabels, objectsOf, parametersFor, titled } from './objects.js';

interface FormProps {
  readonly draft: Signal<Json>;
  readonly problems: Signal<ReadonlyMap<string, string>>;
}

type Set = (name: string, value: unknown) => void;

interface PartProps {
  readonly rule: Json;
  readonly set: Set;
}

export function RuleForm({ draft, problems }: FormProps) {
  const rule = draft.value;
  const set: Set = (name, value) => {
    draft.value = withMember(draft.peek(), name, value);
  };
  const found = useMemo(() => objectsOf(rule.select), [JSON.stringify(rule.select), ordered.value]);
  const context = { parameters: parametersFor(found), commands: commandsFor(found), problems };
  return (
    <RuleFields.Provider value={context}>
      <Section title={t('rule.what')}>
        <div class="form">
          <Head rule={rule} set={set} />
          <Selection rule={rule} set={set} />
        </div>
      </Section>
      <Section title={t('rule.raised')} about={t('rule.raisedAbout')}>
        <div class="form">
          <Condition
            place="when"
            legend={t('rule.condition')}
            value={rule.when}
            onChange={(when) => set('when', when)}
          />
          <Span name="for" label={t('rule.for')} hint={t('rule.forHint')} rule={rule} set={set} />
        </div>
      </Section>
      <Section title={t('rule.then')} about={t('rule.thenAbout')}>
        <div class="form">
          <List name="then" rule={rule} set={set} />
        </div>
      </Section>
      <Advanced rule={rule} set={set} />
    </RuleFields.Provider>
  );
}

function Head({ rule, set }: PartProps) {
  return (
    <>
      <div class="row-fields">
        <Field
          name="name"
          label={t('entity.name')}
          value={String(rule.name ?? '')}
          required
          onInput={(name) => set('name', name)}
        />
        <Select
          name="severity"
          label={t('rule.severity')}
          value={String(rule.severity ?? 'warning')}
          options={SEVERITIES.map((one) => [one, t(`severity.${one}`)] as const)}
          onChange={(severity) => set('severity', severity)}
        />
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={rule.active !== false}
          onChange={(event) => set('active', event.currentTarget.checked)}
        />
        {t('rule.active')}
      </label>
    </>
  );
}

/** The objects that can be chosen; those that are, by the key by which the rule names them. */
function objectOptions(keys: readonly string[]): (readonly [string, string])[] {
  const chosen = keys.map((key) => [key, findObject(key)?.name ?? ''] as const);
  const named = new Set(keys.map(findObject));
  const others = ordered.value
    .filter((object) => !named.has(object))
    .map(({ _id, id, name }) => [_id, titled(id, name)] as const);
  return [...chosen, ...others];
}

/** Members that are combined: an object has to meet all that are there. */
function Selection({ rule, set }: PartProps) {
  const keys = isObject(rule.select) && Array.isArray(rule.select.objects) ? rule.select.objects.map(String) : [];
  const options = useMemo(() => objectOptions(keys), [keys.join(), ordered.value]);
  const labels = useMemo(() => knownLabels().map((label) => [label, label] as const), [ordered.value]);
  if (!isSelection(rule.select))
    return (
      <JsonField
        name="select"
        label={t('rule.select')}
        value={rule.select}
        onChange={(select) => set('select', select)}
      />
    );
  const select = isObject(rule.select) ? rule.select : {};
  const change = (name: string, value: unknown): void => {
    const next = withMember(select, name, value);
    set('select', Object.keys(next).length === 0 ? undefined : next);
  };
  const textsIn = (name: string): string[] => (Array.isArray(select[name]) ? select[name].map(String) : []);
  const listOf = (values: readonly string[]): readonly string[] | undefined => (values.length > 0 ? values : undefined);
  return (
    <RulePart name="select" legend={t('rule.select')}>
      <p class="quiet">{t('rule.selectAbout')}</p>
      <div class="row-fields">
        <PickList
          name="select.objects"
          label={t('rule.objects')}
          values={keys}
          options={options}
          others="added"
          onChange={(keys) => change('objects', listOf(keys))}
        />
        <PickList
          name="select.labels"
          label={t('data.labels')}
          values={textsIn('labels')}
          options={labels}
          others="added"
          onChange={(texts) => change('labels', listOf(texts))}
        />
        <Reference
          name="select.group"
          label={t('rule.group')}
          hint={t('rule.groupHint')}
          store="groups"
          value={String(select.group ?? '')}
          onChange={(group) => change('group', group || undefined)}
        />
        <Reference
          name="select.model"
          label={t('rule.model')}
          store="models"
          value={String(select.model ?? '')}
          onChange={(model) => change('model', model || undefined)}
        />
      </div>
    </RulePart>
  );
}

interface SpanProps extends PartProps {
  readonly name: string;
  readonly label: string;
  readonly hint: string;
}

/** A span of time; empty for none. */
const Span = ({ name, label, hint, rule, set }: SpanProps) => (
  <Field
    name={name}
    label={label}
    hint={hint}
    value={rule[name] === undefined ? '' : String(rule[name])}
    onInput={(text) => set(name, text.trim() === '' ? undefined : text)}
  />
);

function List({ name, rule, set }: PartProps & { readonly name: string }) {
  const value = rule[name];
  if (value !== undefined && !Array.isArray(value))
    return <JsonField name={name} label="JSON" value={value} onChange={(next) => set(name, next)} />;
  return (
    <Actions
      place={name}
      actions={value ?? []}
      onChange={(actions) => set(name, actions.length > 0 ? actions : undefined)}
    />
  );
}

const ADVANCED = ['clear', 'clearFor', 'schedule', 'control', 'remind', 'escalate'];

function Advanced({ rule, set }: PartProps) {
  const isUsed = useMemo(() => ADVANCED.some((name) => rule[name] !== undefined), []);
  // A refusal inside takes the focus, which it can only where it is seen.
  const refused = useContext(FormWork)?.fault.value?.field ?? '';
  const isRefused = ADVANCED.some(
    (name) => refused === name || (/^[.[]/.test(refused.slice(name.length)) && refused.startsWith(name)),
  );
  return (
    <details class="section rule-more" open={isUsed || isRefused}>
      <summary>{t('rule.more')}</summary>
      <div class="form">
        <Clearing rule={rule} set={set} />
        <Hours rule={rule} set={set} />
        <div class="row-fields">
          <Span name="remind" label={t('rule.remind')} hint={t('rule.remindHint')} rule={rule} set={set} />
          <Span name="control" label={t('rule.control')} hint={t('rule.controlHint')} rule={rule} set={set} />
        </div>
        <Steps rule={rule} set={set} />
      </div>
    </details>
  );
}

/** What is there only if it is wanted. */
function Optional({ label, isOn, onChange, children }: OptionalProps) {
  return (
    <div class="form">
      <label class="check">
        <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.currentTarget.checked)} />
        {label}
      </label>
      {isOn && children}
    </div>
  );
}

interface OptionalProps {
  readonly label: string;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
  readonly children: ComponentChildren;
}

function Clearing({ rule, set }: PartProps) {
  return (
    <>
      <Optional
        label={t('rule.clearOther')}
        isOn={rule.clear !== undefined}
        onChange={(isOn) => set('clear', isOn ? structuredClone(rule.when) : undefined)}
      >
        <Condition
          place="clear"
          legend={t('rule.clear')}
          value={rule.clear}
          onChange={(clear) => set('clear', clear)}
        />
      </Optional>
      <Span name="clearFor" label={t('rule.clearFor')} hint={t('rule.clearForHint')} rule={rule} set={set} />
    </>
  );
}

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
/** A Monday. */
const MONDAY_MS = new Date(2024, 0, 1, 12).getTime();

const nameOfDay = (index: number): string =>
  new Intl.DateTimeFormat(document.documentElement.lang, { weekday: 'short' }).format(MONDAY_MS + index * DAY_MS);

const newSchedule = (): Json => ({
  days: DAYS.slice(0, 5),
  from: '08:00',
  to: '18:00',
  tz: Intl.DateTimeFormat().resolvedOptions().timeZone,
});

function Hours({ rule, set }: PartProps) {
  const { schedule } = rule;
  return (
    <Optional
      label={t('rule.hours')}
      isOn={schedule !== undefined}
      onChange={(isOn) => set('schedule', isOn ? newSchedule() : undefined)}
    >
      {isSchedule(schedule) && isObject(schedule) ? (
        <Schedule schedule={schedule} onChange={(next) => set('schedule', next)} />
      ) : (
        <JsonField name="schedule" label="JSON" value={schedule} onChange={(next) => set('schedule', next)} />
      )}
    </Optional>
  );
}

function Schedule({ schedule, onChange }: { schedule: Json; onChange: (schedule: Json) => void }) {
  const days = Array.isArray(schedule.days) ? (schedule.days as string[]) : DAYS;
  const toggle = (day: string): void => {
    const next = days.includes(day) ? days.filter((one) => one !== day) : [...days, day];
    onChange({ ...schedule, days: DAYS.filter((one) => next.includes(one)) });
  };
  const text = (name: string, label: string) => (
    <Field
      name={`schedule.${name}`}
      label={label}
      value={String(schedule[name] ?? '')}
      onInput={(value) => onChange(withMember(schedule, name, value || undefined))}
    />
  );
  return (
    <RulePart name="schedule" legend={t('rule.hoursLegend')}>
      <div class="chips">
        {DAYS.map((day, index) => (
          <button key={day} type="button" class="chip" aria-pressed={days.includes(day)} onClick={() => toggle(day)}>
            {nameOfDay(index)}
          </button>
        ))}
      </div>
      <div class="row-fields">
        {text('from', t('rule.from'))}
        {text('to', t('rule.to'))}
        {text('tz', t('rule.zone'))}
      </div>
      <p class="quiet">{t('rule.hoursHint')}</p>
    </RulePart>
  );
}

function Steps({ rule, set }: PartProps) {
  const { escalate } = rule;
  if (!isEscalation(escalate))
    return (
      <JsonField
        name="escalate"
        label={t('rule.escalate')}
        value={escalate}
        onChange={(next) => set('escalate', next)}
      />
    );
  return (
    <RulePart name="escalate" legend={t('rule.escalate')}>
      <Escalation
        steps={(escalate ?? []) as readonly Json[]}
        onChange={(steps) => set('escalate', steps.length > 0 ? steps : undefined)}
      />
    </RulePart>
  );
}
