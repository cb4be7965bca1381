/** The input of one field of an entity. */
import { useId, useRef } from 'preact/hooks';
import { SOURCE_KIND_NAMES, SOURCE_KINDS, type SourceKindName } from '../../core/source-kinds.js';
import { useFault } from '../parts/field-errors.js';
import { Field, Note, Select } from '../parts/form.js';
import { Icon, type IconName } from '../parts/icon.js';
import { Permissions } from '../roles/permissions.js';
import type { Entity } from '../state/api.js';
import { namedOf, titleOf } from '../state/references.js';
import { t } from '../text/language.js';
import type { EntityField } from './field.js';

interface InputProps {
  readonly field: EntityField;
  readonly value: string;
  readonly onInput: (value: string) => void;
  /** null for a new one. */
  readonly entity: Entity | null;
}

const ROWS: Partial<Record<EntityField['kind'], number>> = { json: 4, rest: 4, lines: 3, paragraph: 4 };
const MOST_ROWS = 14;

export function EntityInput({ field, value, onInput, entity }: InputProps) {
  const { name, kind, store = '', isRequired = false } = field;
  const label = field.text ? t(field.text) : (field.label ?? name);
  const isNew = entity === null;
  const shared = { name, label, value, hint: field.hint ? t(field.hint) : field.about };
  if (kind === 'lines' && field.arePermissions) return <Permissions {...shared} entity={entity} onInput={onInput} />;
  if (kind === 'check') return <Check label={label} value={value} onInput={onInput} />;
  if (kind === 'cards') return <Cards {...shared} onInput={onInput} />;
  if (kind === 'several') return <Several {...shared} options={field.options ?? []} onInput={onInput} />;
  if (kind === 'choice' || kind === 'reference') {
    const options =
      kind === 'choice'
        ? (field.options ?? []).map((option) => [JSON.stringify(option), wordOf(option)] as const)
        : namedOf(store).map((one) => [one._id, titleOf(one)] as const);
    return <Choice {...shared} options={options} canBeEmpty={isNew || field.cleared !== undefined} onInput={onInput} />;
  }
  const least = field.text === 'data.entity' ? MOST_ROWS : ROWS[kind];
  const rows = least && Math.max(least, Math.min(MOST_ROWS, value.split('\n').length));
  if (rows !== undefined) {
    return (
      <div class={kind === 'paragraph' ? 'prose' : ''}>
        <Field {...shared} rows={rows} onInput={onInput} />
      </div>
    );
  }
  const isPassword = kind === 'password';
  return (
    <Field
      {...shared}
      onInput={onInput}
      type={isPassword || kind === 'email' || kind === 'date' ? kind : 'text'}
      required={(kind === 'text' && isRequired) || (isPassword && isNew)}
      autocomplete={isPassword ? 'new-password' : 'off'}
    />
  );
}

const wordOf = (option: unknown): string =>
  typeof option === 'boolean' ? t(`value.${option}` as 'value.true') : String(option);

type PartProps = Pick<InputProps, 'value' | 'onInput'> & { readonly label: string };

interface ChoiceProps extends PartProps {
  readonly name: string;
  readonly hint: string | undefined;
  readonly options: readonly (readonly [string, string])[];
  readonly canBeEmpty: boolean;
}

function Choice({ options, canBeEmpty, onInput, ...rest }: ChoiceProps) {
  // What is empty may remain so.
  const wasEmpty = useRef(rest.value === '').current;
  const none = canBeEmpty || wasEmpty ? [['', '–'] as const] : [];
  return <Select {...rest} options={[...none, ...options]} onChange={onInput} />;
}

function Check({ label, value, onInput }: PartProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={value === 'true'}
        onChange={(event) => onInput(String(event.currentTarget.checked))}
      />
      {label}
    </label>
  );
}

const KIND_ICONS: Readonly<Record<SourceKindName, IconName>> = {
  json: 'terminal',
  osmand: 'map',
  owntracks: 'map',
  traccar: 'database',
  chirpstack: 'activity',
  ttn: 'activity',
  telegraf: 'laptop',
  senml: 'list',
  flespi: 'database',
  overland: 'map',
  shelly: 'zap',
};

/** A card for each kind of source: radio buttons, of which arrow keys choose one. */
function Cards({ name, label, value, onInput }: PartProps & { readonly name: string }) {
  const noteId = useId();
  const { text, input, clear } = useFault<HTMLFieldSetElement>(name);
  return (
    <fieldset class="options cards" ref={input} tabIndex={-1} aria-describedby={text ? noteId : undefined}>
      <legend>{label}</legend>
      {SOURCE_KIND_NAMES.map((kind) => (
        <label key={kind} class="option">
          <input
            type="radio"
            class="visually-hidden"
            name={noteId}
            checked={value === kind}
            onChange={() => {
              clear();
              onInput(kind);
            }}
          />
          <Icon name={KIND_ICONS[kind]} />
          <span>
            <strong>{SOURCE_KINDS[kind]}</strong>
            <small class="quiet">{t(`source.${kind}About`)}</small>
          </span>
        </label>
      ))}
      <Note id={noteId} error={text} hint={undefined} />
    </fieldset>
  );
}

interface SeveralProps extends PartProps {
  readonly name: string;
  readonly hint: string | undefined;
  readonly options: readonly unknown[];
}

function Several({ name, label, value, hint, options, onInput }: SeveralProps) {
  const noteId = useId();
  const { text, input, clear } = useFault<HTMLFieldSetElement>(name);
  const chosen = new Set<unknown>(value === '' ? [] : JSON.parse(value));
  const toggle = (option: unknown): void => {
    clear();
    if (!chosen.delete(option)) chosen.add(option);
    onInput(chosen.size === 0 ? '' : JSON.stringify(options.filter((one) => chosen.has(one))));
  };
  return (
    <fieldset class="choice several" ref={input} tabIndex={-1} aria-describedby={text || hint ? noteId : undefined}>
      <legend>{label}</legend>
      {options.map((option) => (
        <label key={JSON.stringify(option)} class="check">
          <input type="checkbox" checked={chosen.has(option)} onChange={() => toggle(option)} />
          {wordOf(option)}
        </label>
      ))}
      <Note id={noteId} error={text} hint={hint} />
    </fieldset>
  );
}
