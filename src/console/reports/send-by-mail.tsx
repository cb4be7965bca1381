/** The button that has a report sent by mail. Its dialog is loaded when it is first opened. */
import { useSignal } from '@preact/signals';
import { loadPart, withTextsOf } from '../state/parts.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';
import type { Asked, Query } from './asked.js';

export function SendByMail({ query, asked }: { query: Query; asked: Asked }) {
  const dialog = useSignal<typeof import('./schedules-dialog.js') | null>(null);
  if (!may('GET', '/schedules')) return null;
  const open = async (): Promise<void> => {
    dialog.value = await loadPart(() => import('./schedules-dialog.js').then(withTextsOf));
  };
  const close = (): void => {
    dialog.value = null;
  };
  return (
    <>
      <button type="button" class="button small" onClick={() => void open()}>
        {t('reports.mail')}
      </button>
      {dialog.value && <dialog.value.SchedulesDialog query={query} asked={asked} onClose={close} />}
    </>
  );
}
