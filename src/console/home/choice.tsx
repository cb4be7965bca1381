/** Which of the objects in one place of the map is meant. */
import type { Signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { PixelPlace } from '../map/fleet-map.js';
import { SEVERITIES, worstByObject } from '../state/alarms.js';
import { type FleetObject, objects } from '../state/fleet.js';
import { write } from '../state/write.js';
import { formatNumber, t } from '../text/language.js';
import { useShow } from './address.js';
import { Mark } from './mark.js';
import { alarmText } from './sentence.js';

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
  // Its end comes before the list is removed, and the focus with it.
  useLayoutEffect(() => {
    const active = document.activeElement;
    const before = active === document.body ? document.querySelector('.stage canvas[tabindex]') : active;
    return () => {
      // Whoever has gone on already keeps the focus.
      if (element.current?.contains(document.activeElement) && before instanceof HTMLElement) before.focus();
    };
  }, []);
  useEffect(() => element.current?.querySelector('button')?.focus(), [ids]);
  // As it is when the list opens: nothing moves away below a pointer.
  const shown = useMemo(() => byUrgency(ids), [ids]);
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
              <Name object={object} />
            </button>
          </li>
        ))}
      </ul>
      {ids.length > MOST && <p class="quiet">{t('map.severalMore', { count: formatNumber(MOST) })}</p>}
    </div>
  );
}

/** With its worst alarm. */
function Name({ object: { _id, name } }: { object: FleetObject }) {
  const worst = worstByObject.value.get(_id);
  if (worst === undefined) return <span>{name}</span>;
  return (
    <span>
      <span class={`worst ${worst.severity}`} role="img" aria-label={t(`severity.${worst.severity}`)} />
      {name} <small class={worst.severity}>{alarmText(worst)}</small>
    </span>
  );
}

/** The worst alarm first, then by name. */
function byUrgency(ids: readonly string[]): FleetObject[] {
  const rankOf = ({ _id }: FleetObject): number => {
    const worst = worstByObject.peek().get(_id);
    return worst === undefined ? SEVERITIES.length : SEVERITIES.indexOf(worst.severity);
  };
  return ids
    .map((id) => objects.get(id))
    .filter((object) => object !== undefined)
    .sort(
      (one, other) => rankOf(one) - rankOf(other) || one.name.localeCompare(other.name, undefined, { numeric: true }),
    )
    .slice(0, MOST);
}
