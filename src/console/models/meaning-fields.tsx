/** What the values of a parameter mean: its states, and the thresholds of its numbers. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { parseTypedValue } from '../../core/exact-json.js';
import { TONES } from '../../core/tones.js';
import { Mark } from '../home/meanings.js';
import { useFault } from '../parts/field-errors.js';
import { Field, Note, Select } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { type TextKey, t } from '../text/language.js';
import { type Node, setField } from './tree.js';

interface MeaningProps {
  readonly node: Node;
  /** The place of the node, as the service names it. */
  readonly prefix: string;
  readonly onChange: (node: Node) => void;
}

const NUMBER_TYPES: readonly unknown[] = [undefined, null, 'number'];
const STATE_TYPES: readonly unknown[] = [...NUMBER_TYPES, 'boolean', 'string'];

/** Those that its type can have, and those that it has although its type cannot. */
export function MeaningFields(props: MeaningProps) {
  const { dataType, states, thresholds } = props.node;
  return (
    <>
      {(STATE_TYPES.includes(dataType) || listIn(states).length > 0) && (
        <Rows {...props} name="states" legend="meanings.states" add="meanings.addState" added={{ value: '' }}>
          {(row) => <StateRow {...row} isText={dataType === 'string'} />}
        </Rows>
      )}
      {(NUMBER_TYPES.includes(dataType) || listIn(thresholds).length > 0) && (
        <Rows
          {...props}
          name="thresholds"
          legend="meanings.thresholds"
          add="meanings.addThreshold"
          added={{ tone: 'warning' }}
        >
          {(row) => <ThresholdRow {...row} />}
        </Rows>
      )}
    </>
  );
}

const listIn = (value: unknown): readonly Node[] => (Array.isArray(value) ? value : []);

interface RowProps {
  readonly row: Node;
  readonly prefix: string;
  readonly set: (name: string, value: unknown) => void;
}

interface RowsProps extends MeaningProps {
  readonly name: 'states' | 'thresholds';
  readonly legend: TextKey;
  readonly add: TextKey;
  /** What a new row has. */
  readonly added: Node;
  readonly children: (row: RowProps) => ComponentChildren;
}

function Rows({ node, prefix, onChange, name, legend, add, added, children }: RowsProps) {
  const rows = listIn(node[name]);
  const { text, clear } = useFault<HTMLInputElement>(prefix + name);
  const set = (next: readonly Node[]): void => {
    clear();
    onChange(setField(node, name, next.length === 0 ? undefined : next));
  };
  const [one, remove] = name === 'states' ? STATE_TEXTS : THRESHOLD_TEXTS;
  return (
    <fieldset class="params">
      <legend>{t(legend)}</legend>
      {rows.map((row, index) => (
        <fieldset key={index} class="meaning" aria-label={t(one, { number: index + 1 })}>
          {children({
            row,
            prefix: `${prefix}${name}.${index}.`,
            set: (field, value) => set(rows.map((old, at) => (at === index ? setField(old, field, value) : old))),
          })}
          <button
            type="button"
            class="icon-button"
            aria-label={t(remove, { number: index + 1 })}
            onClick={() => set(rows.filter((_, at) => at !== index))}
          >
            <Icon name="trash" size={16} />
          </button>
        </fieldset>
      ))}
      <Note id={`${prefix}${name}-note`} error={text} />
      <button type="button" class="button small" onClick={() => set([...rows, added])}>
        <Icon name="plus" size={16} /> {t(add)}
      </button>
    </fieldset>
  );
}

const STATE_TEXTS = ['meanings.state', 'meanings.removeState'] as const;
const THRESHOLD_TEXTS = ['meanings.threshold', 'meanings.removeThreshold'] as const;

function StateRow({ row, prefix, set, isText }: RowProps & { isText: boolean }) {
  const { value } = row;
  return (
    <>
      <Field
        label={t('meanings.value')}
        name={`${prefix}value`}
        value={typeof value === 'string' ? value : JSON.stringify(value)}
        onInput={(typed) => set('value', isText ? typed : parseTypedValue(typed))}
      />
      <Label row={row} prefix={prefix} set={set} />
      <ToneSelect row={row} prefix={prefix} set={set} isOptional />
    </>
  );
}

function ThresholdRow(props: RowProps) {
  return (
    <>
      <NumberField {...props} field="from" label={t('meanings.from')} />
      <NumberField {...props} field="to" label={t('meanings.to')} />
      <Label {...props} />
      <ToneSelect {...props} />
    </>
  );
}

const Label = ({ row, prefix, set }: RowProps) => (
  <Field
    label={t('meanings.label')}
    name={`${prefix}label`}
    value={typeof row.label === 'string' ? row.label : ''}
    onInput={(typed) => set('label', typed || undefined)}
  />
);

function ToneSelect({ row: { tone }, prefix, set, isOptional = false }: RowProps & { isOptional?: boolean }) {
  const known = TONES.find((one) => one === tone);
  return (
    <div class="tone-select">
      <Select
        label={t('meanings.tone')}
        name={`${prefix}tone`}
        value={String(tone ?? '')}
        options={[
          ...(isOptional ? [['', t('meanings.noTone')] as const] : []),
          ...TONES.map((one) => [one, t(`tone.${one}`)] as const),
        ]}
        onChange={(chosen) => set('tone', chosen || undefined)}
      />
      {known && <Mark tone={known} />}
    </div>
  );
}

/** What is no number stays as it was typed: the service says what is wrong with it. */
function toNumber(typed: string): number | string | undefined {
  const text = typed.trim().replace(',', '.');
  if (text === '') return undefined;
  return Number.isFinite(Number(text)) ? Number(text) : typed;
}

function NumberField({ row, prefix, set, field, label }: RowProps & { field: string; label: string }) {
  const typed = useSignal('');
  const value = row[field] ?? undefined;
  return (
    <Field
      label={label}
      name={prefix + field}
      value={toNumber(typed.value) === value ? typed.value : String(value ?? '')}
      onInput={(text) => {
        typed.value = text;
        set(field, toNumber(text));
      }}
    />
  );
}
