/** Asks an administrator of the installation once which map it shows. */
import { useSignal } from '@preact/signals';
import { Problem, useWork } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { toAddress } from '../state/location.js';
import { write } from '../state/write.js';
import { loadTexts, type TextLoader, t } from '../text/language.js';
import { changeMap } from './change-map.js';

const SETTINGS_TEXTS: TextLoader = {
  en: () => import('../text/english-settings.js'),
  de: () => import('../text/german-settings.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(SETTINGS_TEXTS);

export function AskMap() {
  const isClosed = useSignal(false);
  const work = useWork();
  const choose = (kind: 'openfreemap' | 'none') => () => void work.run(() => changeMap({ kind }));
  if (isClosed.value) return null;
  return (
    <section class="map-question" aria-labelledby="map-question">
      <h2 id="map-question">{t('mapChoice.ask')}</h2>
      <button type="button" class="icon-button" aria-label={t('action.close')} onClick={() => write(isClosed)(true)}>
        <Icon name="close" />
      </button>
      <p>{t('mapChoice.openfreemapAbout')}</p>
      <Problem error={work.error.value} />
      <div class="form-actions">
        <button type="button" class="button" aria-busy={work.isBusy.value} onClick={choose('openfreemap')}>
          {t('mapChoice.openfreemap')}
        </button>
        <a class="button" href={toAddress('/access/settings')}>
          {t('mapChoice.own')}
        </a>
        <button type="button" class="button" onClick={choose('none')}>
          {t('mapChoice.none')}
        </button>
      </div>
    </section>
  );
}
