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

/** Changes an entity, and moves it if its group is another one. */
async function change(store: string, id: string, fields: readonly EntityField[], body: Json): Promise<Entity> {
  const rest = Object.fromEntries(
    Object.entries(body).filter(([name]) => !fields.some((field) => field.isMoved && field.name === name)),
  );
  const moved = Object.keys(rest).length < Object.keys(body).length;
  const changed =
    Object.keys(rest).length > 0
      ? await request('PATCH /api/v1/{store}/{id}', { path: { store, id }, body: rest })
      : null;
  if (!moved && changed !== null) return changed;
  return request('POST /api/v1/users/{id}/move', { path: { id }, body: { group: String(body.group) } });
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
  const shown = fields.filter(({ name, kinds }) => (kinds?.has(texts.value.kind ?? '') ?? true) || texts.value[name]);
  const work = useWork();
  const save = async (): Promise<void> => {
    const parts = shown.map((field) => toPart(field, texts.value[field.name] ?? '', entity, fields));
    const body: Json = Object.assign({}, ...parts);
    for (const { name, sentWith } of shown)
      if (sentWith !== undefined && Object.hasOwn(body, name)) body[sentWith] ??= texts.value[sentWith];
    if (entity !== null && Object.keys(body).length === 0) return onClose();
    const answer =
      entity === null
        ? await request('POST /api/v1/{store}', { path: { store: kind.store }, body })
        : await change(kind.store, entity._id, fields, body);
    onClose();
    await onDone(answer);
  };
  return (
    <Dialog title={t(entity === null ? 'entity.new' : 'entity.edit')} onClose={onClose} size="medium">
      <Form work={work} submit={t('action.save')} onSubmit={save} onCancel={onClose}>
        {shown.map((field) => (
          <EntityInput
            key={field.name}
            field={field}
            isNew={entity === null}
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
