/** Creates or changes an entity. */
import { type Signal, useSignal } from '@preact/signals';
import { toLines } from '../account/token-scopes.js';
import { Dialog } from '../parts/dialog.js';
import { FieldError } from '../parts/field-errors.js';
import { Field, Form, Select, useWork } from '../parts/form.js';
import { call, type Entity, type Json } from '../state/api.js';
import { namedOf, titleOf } from '../state/references.js';
import { user } from '../state/session.js';
import { t } from '../text/language.js';
import { contentOf, type EntityField, type EntityKind } from './kinds.js';

type Texts = Readonly<Record<string, string>>;

interface EntityFormProps {
  readonly kind: EntityKind;
  /** null for a new one. */
  readonly entity: Entity | null;
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

export function EntityForm({ kind, entity, onDone, onClose }: EntityFormProps) {
  const fields = (kind.fields ?? []).filter(({ isFixed }) => entity === null || !isFixed);
  const texts = useSignal<Texts>(Object.fromEntries(fields.map((field) => [field.name, toText(field, entity)])));
  const work = useWork();
  const save = async (): Promise<void> => {
    const body: Json = Object.assign(
      {},
      ...fields.map((field) => toPart(field, texts.value[field.name] ?? '', entity)),
    );
    if (entity === null) await call('POST', `/${kind.store}`, body);
    else await call('PATCH', `/${kind.store}/${entity._id}`, body);
    onClose();
    await onDone();
  };
  return (
    <Dialog title={t(entity === null ? 'entity.new' : 'entity.edit')} onClose={onClose} size="medium">
      <Form work={work} submit={t('action.save')} onSubmit={save} onCancel={onClose}>
        {fields.map((field) => (
          <EntityInput key={field.name} field={field} texts={texts} isNew={entity === null} />
        ))}
      </Form>
    </Dialog>
  );
}

/** What a field begins with. */
function toText({ name, kind, store }: EntityField, entity: Entity | null): string {
  const value = entity?.[name];
  if (kind === 'json')
    return JSON.stringify(name === '' ? (entity ? contentOf(entity) : { name: '' }) : (value ?? []), null, 2);
  if (kind === 'lines') return Array.isArray(value) ? value.join('\n') : '';
  if (kind === 'check') return String(value !== false);
  if (value === undefined && store === 'groups') return user.value?.group ?? '';
  return kind === 'password' ? '' : String(value ?? '');
}

/** What a field contributes to the body. */
function toPart({ name, kind }: EntityField, value: string, entity: Entity | null): Json {
  if (kind === 'json') {
    try {
      const parsed = JSON.parse(value);
      return name === '' ? parsed : { [name]: parsed };
    } catch (error) {
      throw new FieldError(name, (error as Error).message);
    }
  }
  if (kind === 'lines') return { [name]: toLines(value) };
  if (kind === 'check') return { [name]: value === 'true' };
  // Nothing was there, and nothing was typed.
  if (value === '' && (entity?.[name] === undefined || kind === 'password' || kind === 'reference')) return {};
  if (entity !== null && entity[name] === value) return {};
  return { [name]: kind === 'email' && value === '' ? null : value };
}

interface InputProps {
  readonly field: EntityField;
  readonly texts: Signal<Texts>;
  readonly isNew: boolean;
}

function EntityInput({ field: { name, kind, text, hint, store = '', isRequired }, texts, isNew }: InputProps) {
  const value = texts.value[name] ?? '';
  const input = (typed: string): void => {
    texts.value = { ...texts.value, [name]: typed };
  };
  const shared = { name, label: t(text), value, hint: hint && t(hint), onInput: input };
  if (kind === 'check') {
    return (
      <label class="check">
        <input
          type="checkbox"
          checked={value === 'true'}
          onChange={(event) => input(String(event.currentTarget.checked))}
        />
        {t(text)}
      </label>
    );
  }
  if (kind === 'reference') {
    const options = namedOf(store).map((one) => [one._id, titleOf(one)] as const);
    return <Select label={t(text)} value={value} options={[['', '–'], ...options]} onChange={input} />;
  }
  if (kind === 'json') return <Field {...shared} rows={14} />;
  if (kind === 'lines') return <Field {...shared} rows={6} />;
  const isPassword = kind === 'password';
  return (
    <Field
      {...shared}
      {...{ type: kind, required: isRequired === true || (isPassword && isNew) }}
      autocomplete={isPassword ? 'new-password' : 'off'}
    />
  );
}
