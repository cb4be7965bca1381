/** The dialog of a security event: which fields were changed, from what to what. */
import { Dialog } from '../parts/dialog.js';
import type { Entity } from '../state/api.js';
import { nameOf } from '../state/references.js';
import { formatDateTime, formatNumber, t } from '../text/language.js';
import { changedValuesOf } from './changed-values.js';

export function ChangesDialog({ event, onClose }: { event: Entity; onClose: () => void }) {
  return (
    <Dialog title={t('entity.changes')} size="medium" onClose={onClose}>
      <p class="quiet">
        {event.login ? `${event.login}, ` : ''}
        {formatDateTime(Number(event.time))}, <code>{String(event.path)}</code>
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard */}
      <section class="table" tabIndex={0} aria-label={t('entity.changes')}>
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">{t('changes.field')}</th>
              <th scope="col">{t('changes.before')}</th>
              <th scope="col">{t('changes.after')}</th>
            </tr>
          </thead>
          <tbody>
            {changedValuesOf(event).map(({ path, before, after, isShown }) => (
              <tr key={path}>
                <td data-title={t('changes.field')}>
                  <code>{path}</code>
                </td>
                <td data-title={t('changes.before')}>
                  <Value path={path} value={before} isShown={isShown} />
                </td>
                <td data-title={t('changes.after')}>
                  <Value path={path} value={after} isShown={isShown} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </Dialog>
  );
}

/** Fields that contain the `_id` of an entity of this store. */
const STORES: Readonly<Record<string, string>> = { group: 'groups', parent: 'groups', role: 'roles', model: 'models' };

function Value({ path, value, isShown }: { path: string; value: unknown; isShown: boolean }) {
  const store = STORES[path];
  if (!isShown) return <span class="quiet">{t('changes.notShown')}</span>;
  if (value === undefined || value === null || value === '') return <span class="quiet">–</span>;
  if (store !== undefined) return <>{nameOf(store, value)}</>;
  if (typeof value === 'number') return <>{formatNumber(value)}</>;
  if (typeof value === 'boolean') return <>{t(value ? 'value.true' : 'value.false')}</>;
  return <>{typeof value === 'string' ? value : JSON.stringify(value)}</>;
}
