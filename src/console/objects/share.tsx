/** The button that shares an object. Its dialog is loaded when it is first opened. */
import { useSignal } from '@preact/signals';
import type { FleetObject } from '../state/fleet.js';
import { loadPart, withTextsOf } from '../state/parts.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';

export function Share({ object }: { object: FleetObject }) {
  const dialog = useSignal<typeof import('./share-dialog.js') | null>(null);
  const path = `/objects/${object._id}`;
  const open = async (): Promise<void> => {
    dialog.value = await loadPart(() => import('./share-dialog.js').then(withTextsOf));
  };
  if (!may('PATCH', path) || !may('POST', `${path}/links`) || !may('GET', `${path}/links`)) return null;
  const close = (): void => {
    dialog.value = null;
  };
  return (
    <>
      <button type="button" class="button" onClick={() => void open()}>
        {t('sharing.share')}
      </button>
      {dialog.value && <dialog.value.ShareDialog object={object} onClose={close} />}
    </>
  );
}
