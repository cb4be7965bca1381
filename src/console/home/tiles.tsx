/** Objects as tiles: the values of each, its state and its worst alarm. For what has no place on a map. */
import { signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { VirtualList } from '../parts/virtual-list.js';
import { loading } from '../state/fleet.js';
import { isPlaceless } from '../state/places.js';
import { formatNumber, t } from '../text/language.js';
import { useShow } from './address.js';
import { ColumnPicker } from './column-picker.js';
import { countedMs, selectedId, visible } from './selection.js';
import { Tile } from './tile.js';
import { columns } from './view.js';

const TILE_PX = 220;
const GAP_PX = 12;
/** With the gap. */
const ROW_PX = 176;
/** Below the map. */
const MOST_IN_STRIP = 100;
/** Where the browser keeps whether the strip is folded. */
const FOLDED = 'vigil.strip-folded';

export function Tiles() {
  const element = useRef<HTMLElement>(null);
  const inRow = useSignal(1);
  const rows = visible.value;
  useEffect(() => {
    const list = element.current;
    if (list === null) return undefined;
    const observer = new ResizeObserver(() => {
      inRow.value = Math.max(1, Math.floor((list.clientWidth - GAP_PX) / (TILE_PX + GAP_PX)));
    });
    observer.observe(list);
    return () => observer.disconnect();
  }, []);
  const count = inRow.value;
  const selected = selectedId.value === null ? -1 : rows.findIndex(({ _id }) => _id === selectedId.value);
  return (
    <section
      ref={element}
      class="tiles"
      aria-label={t('view.tiles')}
      style={{ '--in-row': count }}
      onKeyDown={(event) => onKey(event, count)}
    >
      <TilesHead />
      <VirtualList
        count={Math.ceil(rows.length / count)}
        rowPx={ROW_PX}
        label={t('view.tiles')}
        shown={selected < 0 ? -1 : Math.floor(selected / count)}
        renderRow={(index) => (
          <li key={index} class="tile-row">
            {rows.slice(index * count, (index + 1) * count).map(({ _id }, column) => (
              <Tile key={_id} id={_id} index={index * count + column} />
            ))}
          </li>
        )}
      />
    </section>
  );
}

function TilesHead() {
  const isOpen = useSignal(false);
  const close = (): void => {
    isOpen.value = false;
  };
  return (
    <p class="tiles-head">
      <button
        type="button"
        class="link-button"
        onClick={() => {
          isOpen.value = true;
        }}
      >
        <Icon name="settings" size={16} /> {t('columns.choose')}
      </button>
      {isOpen.value && <ColumnPicker own={[]} usual={[]} onClose={close} />}
    </p>
  );
}

/** The arrows lead from tile to tile. */
function onKey(event: KeyboardEvent, inRow: number): void {
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof HTMLElement)) return;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -inRow, ArrowDown: inRow }[event.key];
  const from = event.target.closest<HTMLElement>('.tile')?.dataset.index;
  if (step === undefined || from === undefined) return;
  event.preventDefault();
  document.querySelector<HTMLElement>(`.tiles [data-index="${Number(from) + step}"]`)?.focus();
}

const isFolded = signal(localStorage.getItem(FOLDED) === 'true');

/** The objects that are not on the map, below it. */
export function Strip() {
  const show = useShow();
  // What has sent nothing yet may get a place.
  countedMs.value;
  const all = visible.value.filter(isPlaceless);
  if (loading.value !== 'complete' || all.length === 0) return null;
  const onToggle = (event: Event): void => {
    isFolded.value = !(event.currentTarget as HTMLDetailsElement).open;
    localStorage.setItem(FOLDED, String(isFolded.value));
  };
  return (
    <details class="strip" open={!isFolded.value} onToggle={onToggle}>
      <summary>
        <h2>{t('tiles.without')}</h2> <span class="tag">{formatNumber(all.length)}</span>
      </summary>
      <ul>
        {all.slice(0, MOST_IN_STRIP).map(({ _id }, index) => (
          <li key={_id}>
            <Tile id={_id} index={index} isSmall />
          </li>
        ))}
        {all.length > MOST_IN_STRIP && (
          <li>
            <button type="button" class="button" onClick={() => show({ view: 'tiles', columns: columns.value })}>
              {t('tiles.all', { count: formatNumber(all.length) })}
            </button>
          </li>
        )}
      </ul>
    </details>
  );
}
