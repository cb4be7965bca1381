/** The dialogs of the entities of a store, which are loaded when one is opened. */
import type { Signal } from '@preact/signals';
import { Confirm } from '../parts/confirm.js';
import { type Entity, request } from '../state/api.js';
import { write } from '../state/write.js';
import { loadTexts, type TextLoader, t } from '../text/language.js';
import { ChangesDialog } from './changes.js';
import { EntityForm } from './entity-form.js';
import { type EntityKind, labelOf } from './kinds.js';
import { SourceDialog } from './source.js';
import { SecretDialog, WebhookDialog } from './webhook.js';

/** The dialog that is open, and its entity; null for a new one. */
export type Opened =
  | { readonly dialog: 'form'; readonly entity: Entity | null }
  | { readonly dialog: 'removal' | 'webhook' | 'secret' | 'source' | 'changes'; readonly entity: Entity };

interface DialogProps {
  readonly kind: EntityKind;
  readonly opened: Signal<Opened | null>;
  readonly onChange: () => Promise<void>;
}

const DIALOGS_TEXTS: TextLoader = {
  en: () => import('../text/english-dialogs.js'),
  de: () => import('../text/german-dialogs.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(DIALOGS_TEXTS);

export function EntityDialog({ kind, opened, onChange }: DialogProps) {
  if (opened.value === null) return null;
  const mine = opened.value;
  const { dialog, entity } = opened.value;
  // The answer to one that was left must not close the next.
  const close = (): void => {
    if (opened.peek() === mine) write(opened)(null);
  };
  if (dialog === 'webhook') return <WebhookDialog handler={entity} onClose={close} />;
  if (dialog === 'secret') return <SecretDialog handler={entity} onClose={close} />;
  if (dialog === 'source') return <SourceDialog source={entity} onClose={close} onChange={onChange} />;
  if (dialog === 'changes') return <ChangesDialog event={entity} onClose={close} />;
  if (dialog === 'removal') return <Removal kind={kind} entity={entity} onDone={onChange} onClose={close} />;
  const done = async (answer: Entity): Promise<void> => {
    const isNewWebhook = kind.store === 'handlers' && entity === null;
    if (isNewWebhook && typeof answer.secret === 'string') write(opened)({ dialog: 'secret', entity: answer });
    if (typeof answer.key === 'string') write(opened)({ dialog: 'source', entity: answer });
    await onChange();
  };
  return <EntityForm key={entity?._id} kind={kind} entity={entity} onDone={done} onClose={close} />;
}

interface RemovalProps {
  readonly kind: EntityKind;
  readonly entity: Entity;
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

function Removal({ kind, entity, onDone, onClose }: RemovalProps) {
  return (
    <Confirm
      title={t('settings.removeTitle', { name: labelOf(entity) })}
      text={t('entity.removeAbout')}
      action={t('action.remove')}
      onConfirm={async () => {
        await request('DELETE /api/v1/{store}/{id}', { path: { store: kind.store, id: entity._id } });
        await onDone();
      }}
      onClose={onClose}
    />
  );
}
