/** The fields of one node of a model. */
import { signal } from '@preact/signals';
import { MEANINGS_TEXTS } from '../home/tone.js';
import { Field, Select } from '../parts/form.js';
import { usePart } from '../state/parts.js';
import { loadTexts, type TextKey, t } from '../text/language.js';
import { ParamFields } from './param-fields.js';
import { type Node, setField } from './tree.js';

const TYPES: readonly (readonly [string, TextKey])[] = [
  ['argument', 'models.argument'],
  ['action', 'models.action'],
  ['subsystem', 'models.subsystem'],
];
const DATA_TYPES = ['number', 'boolean', 'string', 'object', 'number[]', 'boolean[]', 'string[]'];

interface NodeFormProps {
  readonly node: Node;
  /** The place of the node, as the service names it. */
  readonly prefix: string;
  /** Whether the user has just added it. */
  readonly isAdded: boolean;
  readonly onChange: (node: Node) => void;
}

export function NodeForm({ node, prefix, isAdded, onChange }: NodeFormProps) {
  const type = node.type ?? '';
  const known = TYPES.map(([value, text]) => [value, t(text)] as const);
  const types = known.some(([value]) => value === type) ? known : [...known, [type, type || '–'] as const];
  const text = (name: string, label: TextKey, hint?: TextKey) => (
    <Field
      label={t(label)}
      hint={hint && t(hint)}
      value={textOf(node[name])}
      name={prefix + name}
      autofocus={isAdded && name === 'id'}
      onInput={(value) => onChange(setField(node, name, value === '' ? undefined : value))}
    />
  );
  return (
    <div class="form">
      <Select
        label={t('models.type')}
        value={type}
        options={types}
        onChange={(value) => onChange(setField(node, 'type', value || undefined))}
      />
      {text('id', 'welcome.id', hintOf(type))}
      {text('name', 'entity.name')}
      {type === 'argument' && (
        <>
          <DataType node={node} onChange={onChange} />
          {text('unit', 'models.unit')}
          {text('reference', 'models.reference', 'models.referenceHint')}
          {text('formula', 'models.formula', 'models.formulaHint')}
          <Meanings node={node} prefix={prefix} onChange={onChange} />
        </>
      )}
      {type === 'action' && <ParamFields node={node} onChange={onChange} />}
    </div>
  );
}

const meanings = signal<typeof import('./meaning-fields.js') | null>(null);

/** What values mean. It is loaded with the first parameter that is selected. */
function Meanings(props: Pick<NodeFormProps, 'node' | 'prefix' | 'onChange'>) {
  const part = usePart(
    meanings,
    async () => (await Promise.all([import('./meaning-fields.js'), loadTexts(MEANINGS_TEXTS)]))[0],
  );
  return part && <part.MeaningFields {...props} />;
}

const textOf = (value: unknown): string => (value === undefined || value === null ? '' : String(value));

function hintOf(type: string): TextKey | undefined {
  if (type === 'argument') return 'models.argumentHint';
  return type === 'action' ? 'models.actionHint' : undefined;
}

function DataType({ node, onChange }: Pick<NodeFormProps, 'node' | 'onChange'>) {
  const value = textOf(node.dataType);
  const all = ['', ...DATA_TYPES, ...(value === '' || DATA_TYPES.includes(value) ? [] : [value])];
  return (
    <Select
      label={t('models.dataType')}
      value={value}
      options={all.map((one) => [one, one || t('models.anyType')] as const)}
      onChange={(chosen) => onChange(setField(node, 'dataType', chosen || undefined))}
    />
  );
}
