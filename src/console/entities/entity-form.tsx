/** Creates or changes an entity. */
import { useSignal } from '@preact/signals';
import { Dialog } from '../parts/dialog.js';
import { Form, useWork } from '../parts/form.js';
import { type Entity, type Json, request } from '../state/api.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';
import { fitting, toPart, toText } from './entity-fields.js';
import { EntityInput } from './entity-input.js';
import type { EntityField } from './field.js';
import type { EntityKind } from './kinds.js';

interface EntityFormProps {
  readonly kind: EntityKind;
  /** null for a new one. */
  readonly entity: Entity | null;
  /** With the answer of the service. */
  readonly onDone: (answer: Entity) => Promise<void>;
  readonly onClose: () => void;
}

function isEditable({ isFixed, isMoved }: EntityField, { store }: EntityKind, entity: Entity | null): boolean {
  if (entity === null) return true;
  return !isFixed && (!isMoved || may('POST', `/${store}/${entity._id}/move`));
}

/** Changes a user, and moves one whose group is another; gives what came last. */
async function changeUser(id: string, { group, ...rest }: Json): Promise<Entity> {
  const path = { store: 'users', id };
  const change = () => request('PATCH /api/v1/{store}/{id}', { path, body: rest });
  if (group === undefined) return change();
  if (Object.keys(rest).length > 0) await change();
  return request('POST /api/v1/users/{id}/move', { path, body: { group: String(group) } });
}

function send(store: string, id: string | undefined, body: Json): Promise<Entity> {
  if (id === undefined) return request('POST /api/v1/{store}', { path: { store }, body });
  return store === 'users'
    ? changeUser(id, body)
    : request('PATCH /api/v1/{store}/{id}', { path: { store, id }, body });
}

export function EntityForm({ kind, entity, onDone, onClose }: EntityFormProps) {
  // What the form showed first remains, also if the schema of the store comes later.
  const fields = useSignal(
    (kind.fields ?? []).filter((field) => isEditable(field, kind, entity)).map((field) => fitting(field, entity)),
  ).value;
  const texts = useSignal<Readonly<Record<string, string>>>(
    Object.fromEntries(fields.map((field) => [field.name, toText(field, entity, fields)])),
  );
  // What has a value is shown in any case, so that it can be removed.
  const shown = fields.filter(
    ({ name, kinds }) => (kinds?.includes(texts.value.kind ?? '') ?? true) || texts.value[name],
  );
  const work = useWork();
  const save = async (): Promise<void> => {
    const parts = shown.map((field) => toPart(field, texts.value[field.name] ?? '', entity, fields));
    const body: Json = Object.assign({}, ...parts);
    for (const { name, sentWith } of shown)
      if (sentWith !== undefined && Object.hasOwn(body, name)) body[sentWith] ??= texts.value[sentWith];
    if (entity !== null && Object.keys(body).length === 0) return onClose();
    const answer = await send(kind.store, entity?._id, body);
    // Opened again, it must not show what was there before.
    await onDone(answer);
    onClose();
  };
  const size = shown.some(({ arePermissions }) => arePermissions) ? 'large' : 'medium';
  return (
    <Dialog title={t(entity === null ? 'entity.new' : 'entity.edit')} onClose={onClose} size={size}>
      <Form work={work} submit={t('action.save')} onSubmit={save} onCancel={onClose}>
        {shown.map((field) => (
          <EntityInput
            key={field.name}
            field={field}
            entity={entity}
            value={texts.value[field.name] ?? ''}
            onInput={(text) => {
              texts.value = { ...texts.value, [field.name]: text };
            }}
          />
        ))}
      </Form>
    </Dialog>
  );
}
