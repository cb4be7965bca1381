/** A condition of a rule as a form; what no form shows is edited as JSON. */

import { useSignal } from '@preact/signals';
import { Field, Select } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import type { Json } from '../state/api.js';
import { namedOf, titleOf } from '../state/references.js';
import { t } from '../text/language.js';
import { useRule } from './context.js';
import {
  CONDITION_KINDS,
  type ConditionKind,
  isObject,
  kindOf,
  NEW_CONDITIONS,
  OPERATORS,
  type Operator,
  toScalar,
  toScalars,
  toTyped,
  toTypedList,
  valueFor,
  withMember,
} from './draft.js';
import { JsonField, PickList, Remove, RulePart, Suggested } from './fields.js';

interface ConditionProps {
  /** Where it is in the rule, such as `when.all[1]`. */
  readonly place: string;
  readonly legend: string;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly onRemove?: (() => void) | undefined;
}

export function Condition({ place, legend, value, onChange, onRemove }: ConditionProps) {
  // Somebody may prefer JSON for what a form can show.
  const isJson = useSignal(kindOf(value) === 'json');
  const kind = isJson.value ? 'json' : kindOf(value);
  const choose = (next: ConditionKind): void => {
    isJson.value = next === 'json';
    if (next !== 'json' && next !== kindOf(value)) onChange(convert(value, next));
  };
  return (
    <RulePart name={place} legend={legend}>
      <div class="rule-head">
        <Select
          label={t('rule.kind')}
          value={kind}
          options={CONDITION_KINDS.map((one) => [one, t(`rule.kind.${one}`)] as const)}
          onChange={(next) => choose(next as ConditionKind)}
        />
        {onRemove && <Remove name={legend} onRemove={onRemove} />}
      </div>
      <Fields key={kind} kind={kind} place={place} value={value} onChange={onChange} />
    </RulePart>
  );
}

/** Another kind keeps what it can: a condition becomes the first of several. */
function convert(value: unknown, kind: ConditionKind): Json {
  const before = kindOf(value);
  const isGroup = (one: ConditionKind): one is 'all' | 'any' => one === 'all' || one === 'any';
  if (isGroup(kind) && isObject(value)) {
    if (isGroup(before)) return { [kind]: value[before] };
    return { [kind]: [value, NEW_CONDITIONS.param] };
  }
  if (kind === 'not' && isObject(value) && before !== 'json') return { not: value };
  if (before === 'not' && isObject(value) && kindOf(value.not) === kind) return value.not as Json;
  if (isGroup(before) && isObject(value)) {
    const same = (value[before] as unknown[]).find((one) => kindOf(one) === kind);
    if (isObject(same)) return same;
  }
  return NEW_CONDITIONS[kind];
}

interface FieldsProps extends Pick<ConditionProps, 'place' | 'value' | 'onChange'> {
  readonly kind: ConditionKind;
}

function Fields({ kind, place, value, onChange }: FieldsProps) {
  const given = isObject(value) ? value : {};
  switch (kind) {
    case 'param':
      return <Parameter place={place} value={given} onChange={onChange} />;
    case 'silent':
      return (
        <Field
          name={`${place}.silent`}
          label={t('rule.silent')}
          hint={t('rule.spanHint')}
          value={String(given.silent)}
          onInput={(silent) => onChange({ silent })}
        />
      );
    case 'geofence':
      return <Fence place={place} value={given} onChange={onChange} />;
    case 'expr':
      return (
        <Field
          name={`${place}.expr`}
          label={t('rule.expression')}
          hint={t('rule.expressionHint')}
          rows={2}
          value={String(given.expr)}
          onInput={(expr) => onChange({ expr })}
        />
      );
    case 'all':
    case 'any':
      return <Group kind={kind} place={place} value={given} onChange={onChange} />;
    case 'not':
      return (
        <Condition
          place={`${place}.not`}
          legend={t('rule.condition')}
          value={given.not}
          onChange={(not) => onChange({ not })}
        />
      );
    case 'json':
      return <JsonField name={place} label="JSON" hint={t('rule.whenHint')} value={value} onChange={onChange} />;
    default:
      return null;
  }
}

interface ShownProps {
  readonly place: string;
  readonly value: Json;
  readonly onChange: (value: Json) => void;
}

function Parameter({ place, value, onChange }: ShownProps) {
  const { parameters } = useRule();
  const op = value.op as Operator;
  const isConfig = isObject(value.value);
  return (
    <div class="row-fields">
      <Suggested
        name={`${place}.param`}
        label={t('rule.param')}
        value={String(value.param)}
        options={parameters}
        onInput={(param) => onChange({ ...value, param })}
      />
      <Select
        name={`${place}.op`}
        label={t('rule.op')}
        value={op}
        options={OPERATORS.map((one) => [one, t(`rule.op.${one}`)] as const)}
        onChange={(next) =>
          onChange(withMember({ ...value, op: next }, 'value', valueFor(next as Operator, value.value)))
        }
      />
      {op !== 'changed' && (
        <Select
          label={t('rule.comparedWith')}
          value={isConfig ? 'config' : 'value'}
          options={[
            ['value', t('rule.fixed')],
            ['config', t('rule.ofConfig')],
          ]}
          onChange={(next) =>
            onChange({ ...value, value: next === 'config' ? { config: '' } : valueFor(op, undefined) })
          }
        />
      )}
      {op !== 'changed' && <Operand key={`${op} ${isConfig}`} place={place} value={value} onChange={onChange} />}
    </div>
  );
}

function Operand({ place, value, onChange }: ShownProps) {
  const { op, value: operand } = value;
  const set = (next: unknown): void => onChange({ ...value, value: next });
  const name = `${place}.value`;
  if (isObject(operand)) {
    return (
      <Field
        name={`${name}.config`}
        label={t('rule.configName')}
        hint={t('rule.configHint')}
        value={String(operand.config)}
        onInput={(config) => set({ config })}
      />
    );
  }
  if (op === 'between' && Array.isArray(operand)) {
    const [low, high] = operand as unknown[];
    return (
      <>
        <Typed name={name} label={t('rule.low')} value={toTyped(low)} onType={(text) => set([toScalar(text), high])} />
        <Typed name={name} label={t('rule.high')} value={toTyped(high)} onType={(text) => set([low, toScalar(text)])} />
      </>
    );
  }
  if (op === 'in' && Array.isArray(operand)) {
    return (
      <Typed
        name={name}
        label={t('rule.values')}
        hint={t('rule.valuesHint')}
        value={toTypedList(operand)}
        onType={(text) => set(toScalars(text))}
      />
    );
  }
  return <Typed name={name} label={t('rule.value')} value={toTyped(operand)} onType={(text) => set(toScalar(text))} />;
}

interface TypedProps {
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly hint?: string;
  readonly onType: (text: string) => void;
}

/** What is typed stays as it is, although `1.` and `1` are the same number. */
function Typed({ value, onType, ...rest }: TypedProps) {
  const text = useSignal(value);
  return (
    <Field
      {...rest}
      value={text.value}
      onInput={(typed) => {
        text.value = typed;
        onType(typed);
      }}
    />
  );
}

const FENCE_TESTS = ['inside', 'outside', 'enter', 'exit'] as const;

function Fence({ place, value, onChange }: ShownProps) {
  const test = String(value.is ?? value.on);
  const fences = namedOf('geofences').map((one) => [one._id, titleOf(one)] as const);
  const set = (geofence: unknown, next: string): void =>
    onChange(next === 'enter' || next === 'exit' ? { geofence, on: next } : { geofence, is: next });
  return (
    <div class="row-fields">
      <Select
        name={value.is === undefined ? `${place}.on` : `${place}.is`}
        label={t('rule.fence')}
        value={test}
        options={FENCE_TESTS.map((one) => [one, t(`rule.fence.${one}`)] as const)}
        onChange={(next) => set(value.geofence, next)}
      />
      <PickList
        name={`${place}.geofence`}
        label={t('rule.fences')}
        values={[value.geofence].flat().map(String)}
        options={fences}
        onChange={(ids) => set(ids, test)}
      />
    </div>
  );
}

function Group({ kind, place, value, onChange }: ShownProps & { readonly kind: 'all' | 'any' }) {
  const parts = value[kind] as readonly unknown[];
  const set = (next: readonly unknown[]): void => onChange({ [kind]: next });
  return (
    <>
      {parts.map((part, index) => (
        <Condition
          // A condition that is removed takes its form with it.
          key={`${index} of ${parts.length}`}
          place={`${place}.${kind}[${index}]`}
          legend={t('rule.conditionNumber', { number: index + 1 })}
          value={part}
          onChange={(next) => set(parts.map((one, at) => (at === index ? next : one)))}
          onRemove={parts.length > 1 ? () => set(parts.filter((_, at) => at !== index)) : undefined}
        />
      ))}
      <div>
        <button type="button" class="button small" onClick={() => set([...parts, NEW_CONDITIONS.param])}>
          <Icon name="plus" size={16} /> {t('rule.addCondition')}
        </button>
      </div>
    </>
  );
}
