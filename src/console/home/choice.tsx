/** Which of the objects in one place of the map is meant. */
import type { Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { PixelPlace } from '../map/fleet-map.js';
import { objects } from '../state/fleet.js';
import { write } from '../state/write.js';
import { formatNumber, t } from '../text/language.js';
import { useShow } from './address.js';
import { Mark } from './mark.js';

/** More are found by the search, or by a closer look. */
const MOST = 100;

export interface Several {
  readonly ids: readonly string[];
  readonly at: PixelPlace;
}

/** Nothing while `several` is null. */
export function Choice({ several }: { several: Signal<Several | null> }) {
  const show = useShow();
  if (several.value === null) return null;
  const onClose = (): void => write(several)(null);
  const onSelect = (id: string): void => {
    onClose();
    show({ object: id });
  };
  return <Names several={several.value} onSelect={onSelect} onClose={onClose} />;
}

interface NamesProps {
  readonly several: Several;
  readonly onSelect: (id: string) => void;
  readonly onClose: () => void;
}

function Names({ several: { ids, at }, onSelect, onClose }: NamesProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => element.current?.querySelector('button')?.focus(), [ids]);
  const found = ids.map((id) => objects.get(id)).filter((object) => object !== undefined);
  const shown = found
    .sort((one, other) => one.name.localeCompare(other.name, undefined, { numeric: true }))
    .slice(0, MOST);
  return (
    <div
      ref={element}
      class="map-choice"
      role="dialog"
      aria-label={t('map.several', { count: formatNumber(ids.length) })}
      style={{ '--x': `${at.x}px`, '--y': `${at.y}px` }}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        onClose();
      }}
    >
      <p class="quiet">{t('map.several', { count: formatNumber(ids.length) })}</p>
      <ul>
        {shown.map((object) => (
          <li key={object._id}>
            <button type="button" onClick={() => onSelect(object._id)}>
              <Mark object={object} />
              {object.name}
            </button>
          </li>
        ))}
      </ul>
      {ids.length > MOST && <p class="quiet">{t('map.severalMore', { count: formatNumber(MOST) })}</p>}
    </div>
  );
}
