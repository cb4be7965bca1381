/** The form of a command: from the model if it declares commands, otherwise a name and parameters as JSON. */
import { useSignal } from '@preact/signals';
import { parseTypedValue } from '../../core/exact-json.js';
import type { Action, Model } from '../home/values.js';
import { Dialog } from '../parts/dialog.js';
import { FieldError } from '../parts/field-errors.js';
import { Field, Form, Select, useWork } from '../parts/form.js';
import { Section } from '../parts/tabs.js';
import { type Json, request } from '../state/api.js';
import type { FleetObject } from '../state/fleet.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';

interface SendProps {
  readonly object: FleetObject;
  readonly model: Model | undefined;
  readonly onSent: () => void;
}

/** Whether the user may send this command. */
export const maySend = (objectId: string, command: string): boolean =>
  may('POST', `/objects/${objectId}/commands/${encodeURIComponent(command)}`);

type Named = Pick<Action, 'id' | 'name'>;

interface Wanted {
  readonly command: string;
  readonly params: Json;
}

export function SendCommand({ object, model, onSent }: SendProps) {
  const wanted = useSignal<Wanted | null>(null);
  const declared = model?._actions ?? [];
  const actions = declared.filter(({ id }) => maySend(object._id, id));
  return (
    <Section title={t('commands.send')}>
      {declared.length > 0 ? (
        <DeclaredCommand actions={actions} onWant={write(wanted)} />
      ) : (
        <FreeCommand isDeclared={model !== undefined} onWant={write(wanted)} />
      )}
      {wanted.value && (
        <ConfirmCommand
          object={object}
          model={model}
          onSent={onSent}
          wanted={wanted.value}
          onClose={() => write(wanted)(null)}
        />
      )}
    </Section>
  );
}

/** What is declared as text remains text: a PIN is not a number. A parameter without a default takes every JSON value. */
const toParam = (text: string, declared: unknown): unknown =>
  typeof declared === 'string' && declared !== '' ? text : parseTypedValue(text);

const toText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

const CHOICES = ['true', 'false'] as const;

function DeclaredCommand({ actions, onWant }: { actions: readonly Action[]; onWant: (wanted: Wanted) => void }) {
  // None of them at first: the first one may stop a machine.
  const chosen = useSignal('');
  const action = actions.find(({ id }) => id === chosen.value);
  const values = useSignal<Readonly<Record<string, string>>>({});
  const work = useWork();
  const declared = action?.params ?? {};
  const names = Object.keys(declared);
  const textOf = (name: string): string => values.value[name] ?? toText(declared[name]);
  const paramOf = (name: string): unknown => toParam(textOf(name), declared[name]);
  const submit = async (): Promise<void> => {
    if (action === undefined) throw new FieldError('command', t('commands.choose'));
    const wrong = names.find((name) => typeof declared[name] === 'number' && typeof paramOf(name) !== 'number');
    if (wrong !== undefined) throw new FieldError(wrong, t('commands.notNumber'));
    onWant({ command: chosen.value, params: Object.fromEntries(names.map((name) => [name, paramOf(name)])) });
  };
  return (
    <Form work={work} submit={t('commands.next')} onSubmit={submit}>
      <Select
        name="command"
        label={t('commands.command')}
        value={chosen.value}
        options={[['', '–'], ...actions.map(({ id, name }) => [id, name || id] as const)]}
        onChange={(id) => {
          chosen.value = id;
          values.value = {};
          work.error.value = null;
        }}
      />
      {names.map((name) => {
        const shared = { label: name, value: textOf(name) };
        const input = (text: string): void => write(values)({ ...values.value, [name]: text });
        return typeof declared[name] === 'boolean' ? (
          <Select key={name} {...shared} options={CHOICES.map((one) => [one, t(`value.${one}`)])} onChange={input} />
        ) : (
          <Field key={name} {...shared} name={name} onInput={input} />
        );
      })}
    </Form>
  );
}

interface FreeCommandProps {
  /** Whether the model is known, and says so. */
  readonly isDeclared: boolean;
  readonly onWant: (wanted: Wanted) => void;
}

function FreeCommand({ isDeclared, onWant }: FreeCommandProps) {
  const command = useSignal('');
  const params = useSignal('{}');
  const work = useWork();
  const submit = async (): Promise<void> => {
    const parsed = parseTypedValue(params.value.trim() || '{}');
    const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
    if (!isObject) throw new FieldError('params', t('commands.notJson'));
    onWant({ command: command.value.trim(), params: parsed as Json });
  };
  return (
    <Form work={work} submit={t('commands.next')} onSubmit={submit}>
      <Field
        label={t('commands.command')}
        hint={isDeclared ? t('commands.hint') : undefined}
        value={command.value}
        required
        onInput={write(command)}
      />
      <Field name="params" label={t('commands.params')} value={params.value} rows={2} onInput={write(params)} />
    </Form>
  );
}

interface ConfirmProps extends SendProps {
  readonly wanted: Wanted;
  readonly onClose: () => void;
}

/** A name from the model, with the id beside it where they differ. */
export function namedIn(declared: readonly Named[] | undefined, id: string): string {
  const name = declared?.find((one) => one.id === id)?.name || id;
  return name === id ? id : `${name} (${id})`;
}

function ConfirmCommand({ object, model, wanted: { command, params }, onSent, onClose }: ConfirmProps) {
  const work = useWork();
  const send = async (): Promise<void> => {
    await request('POST /api/v1/objects/{id}/commands/{command}', { path: { id: object._id, command }, body: params });
    onClose();
    onSent();
  };
  return (
    <Dialog
      title={t('commands.confirm', { command: namedIn(model?._actions, command), name: object.name })}
      onClose={onClose}
    >
      <Form work={work} submit={t('commands.sendNow')} onSubmit={send} onCancel={onClose}>
        <dl class="values">
          {Object.entries(params).map(([name, value]) => (
            <div key={name}>
              <dt>{namedIn(model?._arguments, name)}</dt>
              <dd>{toText(value)}</dd>
            </div>
          ))}
        </dl>
        {!object.state?.online && <p class="hint warn">{t('commands.offline')}</p>}
      </Form>
    </Dialog>
  );
}
