/** What follows when a rule raises an alarm: whom it notifies, webhooks, commands; and later, while nobody acknowledges it. */
import { useSignal } from '@preact/signals';
import { Field, Select } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import type { Json } from '../state/api.js';
import { namedOf, titleOf } from '../state/references.js';
import { t } from '../text/language.js';
import { useRule } from './context.js';
import { ACTION_KINDS, type ActionKind, actionKindOf, isObject, NEW_ACTIONS, withMember } from './draft.js';
import { JsonField, PickList, Remove, RulePart, Suggested } from './fields.js';

interface ActionsProps {
  /** Where the list is in the rule: `then`, or that of a step. */
  readonly place: string;
  readonly actions: readonly unknown[];
  readonly onChange: (actions: readonly unknown[]) => void;
}

export function Actions({ place, actions, onChange }: ActionsProps) {
  return (
    <>
      {actions.map((action, index) => (
        <Action
          key={`${index} of ${actions.length}`}
          place={`${place}[${index}]`}
          legend={t('rule.actionNumber', { number: index + 1 })}
          value={action}
          onChange={(next) => onChange(actions.map((one, at) => (at === index ? next : one)))}
          onRemove={() => onChange(actions.filter((_, at) => at !== index))}
        />
      ))}
      <div>
        <button type="button" class="button small" onClick={() => onChange([...actions, NEW_ACTIONS.notify])}>
          <Icon name="plus" size={16} /> {t('rule.addAction')}
        </button>
      </div>
    </>
  );
}

interface ActionProps {
  readonly place: string;
  readonly legend: string;
  readonly value: unknown;
  readonly onChange: (action: unknown) => void;
  readonly onRemove: () => void;
}

function Action({ place, legend, value, onChange, onRemove }: ActionProps) {
  const isJson = useSignal(actionKindOf(value) === 'json');
  const kind = isJson.value ? 'json' : actionKindOf(value);
  const choose = (next: ActionKind): void => {
    isJson.value = next === 'json';
    if (next !== 'json' && next !== actionKindOf(value)) onChange(NEW_ACTIONS[next]);
  };
  return (
    <RulePart name={place} legend={legend}>
      <div class="rule-head">
        <Select
          label={t('rule.action')}
          value={kind}
          options={ACTION_KINDS.map((one) => [one, t(`rule.action.${one}`)] as const)}
          onChange={(next) => choose(next as ActionKind)}
        />
        <Remove name={legend} onRemove={onRemove} />
      </div>
      <ActionFields key={kind} kind={kind} place={place} value={value} onChange={onChange} />
    </RulePart>
  );
}

interface FieldsProps extends Pick<ActionProps, 'place' | 'value' | 'onChange'> {
  readonly kind: ActionKind;
}

function ActionFields({ kind, place, value, onChange }: FieldsProps) {
  const { commands } = useRule();
  if (kind === 'json' || !isObject(value))
    return <JsonField name={place} label="JSON" hint={t('rule.thenHint')} value={value} onChange={onChange} />;
  if (kind === 'notify')
    return (
      <Notify
        place={`${place}.notify`}
        value={isObject(value.notify) ? value.notify : {}}
        onChange={(notify) => onChange({ notify })}
      />
    );
  if (kind === 'webhook') {
    return (
      <Reference
        name={`${place}.webhook`}
        label={t('rule.action.webhook')}
        store="handlers"
        value={String(value.webhook)}
        onChange={(webhook) => onChange({ webhook })}
      />
    );
  }
  return (
    <div class="row-fields">
      <Suggested
        name={`${place}.command`}
        label={t('rule.command')}
        value={String(value.command)}
        options={commands}
        onInput={(command) => onChange({ ...value, command })}
      />
      <JsonField
        name={`${place}.params`}
        label={t('rule.params')}
        hint={t('rule.paramsHint')}
        rows={1}
        value={value.params}
        onChange={(params) => onChange(withMember(value, 'params', params))}
      />
    </div>
  );
}

function Notify({ place, value, onChange }: { place: string; value: Json; onChange: (value: Json) => void }) {
  const users = Array.isArray(value.users) ? value.users.map(String) : [];
  return (
    <>
      <div class="row-fields">
        <PickList
          name={`${place}.users`}
          label={t('rule.users')}
          values={users}
          options={namedOf('users').map((one) => [one._id, titleOf(one)] as const)}
          onChange={(ids) => onChange(withMember(value, 'users', ids.length === 0 ? undefined : ids))}
        />
        <Reference
          name={`${place}.group`}
          label={t('rule.group')}
          hint={t('rule.groupHint')}
          store="groups"
          value={String(value.group ?? '')}
          onChange={(group) => onChange(withMember(value, 'group', group || undefined))}
        />
      </div>
      <Field
        name={`${place}.text`}
        label={t('rule.text')}
        hint={t('rule.textHint')}
        value={String(value.text ?? '')}
        onInput={(text) => onChange(withMember(value, 'text', text || undefined))}
      />
    </>
  );
}

interface ReferenceProps {
  readonly name: string;
  readonly label: string;
  readonly store: string;
  readonly value: string;
  readonly hint?: string;
  readonly onChange: (id: string) => void;
}

/** One entity of a store; one that the user does not see stays chosen. */
export function Reference({ store, value, ...rest }: ReferenceProps) {
  const known = namedOf(store).map((one) => [one._id, titleOf(one)] as const);
  const isKnown = value === '' || known.some(([id]) => id === value);
  const options = [['', '–'] as const, ...known, ...(isKnown ? [] : [[value, value] as const])];
  return <Select {...rest} value={value} options={options} />;
}

const NEW_STEP = { after: '15 min', then: [NEW_ACTIONS.notify] };

interface StepsProps {
  readonly steps: readonly Json[];
  readonly onChange: (steps: readonly Json[]) => void;
}

/** What follows later, if nobody acknowledges the alarm. */
export function Escalation({ steps, onChange }: StepsProps) {
  return (
    <>
      {steps.map((step, index) => {
        const place = `escalate[${index}]`;
        const legend = t('rule.stepNumber', { number: index + 1 });
        const set = (next: Json): void => onChange(steps.map((one, at) => (at === index ? next : one)));
        return (
          <RulePart key={`${index} of ${steps.length}`} name={place} legend={legend}>
            <div class="rule-head">
              <Field
                name={`${place}.after`}
                label={t('rule.after')}
                hint={t('rule.spanHint')}
                value={String(step.after)}
                onInput={(after) => set({ ...step, after })}
              />
              <Remove name={legend} onRemove={() => onChange(steps.filter((_, at) => at !== index))} />
            </div>
            <Actions
              place={`${place}.then`}
              actions={step.then as readonly unknown[]}
              onChange={(then) => set({ ...step, then })}
            />
          </RulePart>
        );
      })}
      <div>
        <button type="button" class="button small" onClick={() => onChange([...steps, NEW_STEP])}>
          <Icon name="plus" size={16} /> {t('rule.addStep')}
        </button>
      </div>
    </>
  );
}
