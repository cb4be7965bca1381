/** Chooses how the first page shows objects. One stop of the Tab key, because the list comes after it. */
import { Outline } from '../parts/icon.js';
import { t } from '../text/language.js';
import { useShow } from './address.js';
import { shownView, usualView, VIEWS, type View } from './view.js';

const PATHS: Readonly<Record<View, string>> = {
  map: 'M9 4 3 7v13l6-3 6 3 6-3V4l-6 3ZM9 4v13M15 7v13',
  tiles: 'M4 4h6v6H4ZM14 4h6v6h-6ZM4 14h6v6H4ZM14 14h6v6h-6Z',
  table: 'M4 5h16v14H4ZM4 10h16M4 14.5h16M10 10v9',
};

export function ViewSwitch() {
  const show = useShow();
  return (
    <fieldset class="segments view-switch" aria-label={t('view.label')}>
      {VIEWS.map((one) => (
        <label key={one} title={t(`view.${one}`)}>
          <input
            type="radio"
            name="view"
            aria-label={t(`view.${one}`)}
            checked={shownView.value === one}
            onChange={() => show({ view: one === usualView.value ? null : one })}
          />
          <Outline path={PATHS[one]} size={17} />
        </label>
      ))}
    </fieldset>
  );
}
