/** Chooses rows of the table, and says how many are chosen. */
import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import type { FleetObject } from '../state/fleet.js';
import { usePart } from '../state/parts.js';
import { write } from '../state/write.js';
import { t, tn } from '../text/language.js';
import { choose, chosen, chosenOf, MOST_CHOSEN, toggle } from './chosen.js';

const idsOf = (rows: readonly FleetObject[]): string[] => rows.map(({ _id }) => _id);
const clear = (): void => write(chosen)(new Set<string>());

/** All rows, up to as many as can be changed at once. */
export function ChooseAll({ rows }: { rows: readonly FleetObject[] }) {
  const count = chosenOf(rows).length;
  const most = Math.min(rows.length, MOST_CHOSEN);
  const isAll = count > 0 && count >= most;
  return (
    <td class="choice">
      <label>
        <input
          type="checkbox"
          aria-label={t('bulk.chooseAll')}
          title={t('bulk.chooseAll')}
          checked={isAll}
          // Not an attribute: browsers know it as a property alone.
          ref={(box) => {
            if (box) box.indeterminate = count > 0 && !isAll;
          }}
          onChange={() => (isAll ? clear() : choose(idsOf(rows.slice(0, MOST_CHOSEN)), true))}
        />
      </label>
    </td>
  );
}

export function ChooseOne({ object: { _id, name } }: { object: FleetObject }) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the box in it has the keys; what is beside it does not open the row
    <td class="choice" onClick={(event) => event.stopPropagation()}>
      <label>
        <input
          type="checkbox"
          // One stop for the Tab key in each row: there, x chooses it.
          tabIndex={-1}
          aria-label={t('bulk.choose', { name })}
          checked={chosen.value.has(_id)}
          onChange={() => toggle(_id)}
        />
      </label>
    </td>
  );
}

const dialog = signal<typeof import('./bulk-dialog.js') | null>(null);

/** How many are chosen, and what is done with them. */
export function ChoiceBar({ rows }: { rows: readonly FleetObject[] }) {
  const isOpen = useSignal(false);
  const part = usePart(dialog, () => import('./bulk-dialog.js'), isOpen.value);
  // Another page does not begin with what was chosen here.
  useEffect(() => clear, []);
  const objects = chosenOf(rows);
  const close = (): void => write(isOpen)(false);
  return (
    <>
      <span class="choice-count" role="status">
        {objects.length > 0 && tn('bulk.chosen', objects.length)}
        {objects.length === MOST_CHOSEN && ` ${t('bulk.most')}`}
      </span>
      {objects.length > 0 && (
        <>
          <button type="button" class="button small" onClick={() => write(isOpen)(true)}>
            {t('bulk.change')}
          </button>
          <button type="button" class="link-button" onClick={clear}>
            <Icon name="close" size={16} /> {t('bulk.none')}
          </button>
        </>
      )}
      {isOpen.value && part && <part.BulkDialog objects={objects} onClose={close} />}
    </>
  );
}

/**
 * In a row, x chooses it, and with Shift an arrow takes the next one, too. Ctrl-A chooses all, Esc none. Returns whether that was all that
 * the key means.
 */
export function onChoiceKey(event: KeyboardEvent, rows: readonly FleetObject[]): boolean {
  const { key, ctrlKey, metaKey, altKey, shiftKey, target } = event;
  if (altKey || !(target instanceof HTMLElement) || target.closest('dialog')) return false;
  if (ctrlKey || metaKey) {
    if (key.toLowerCase() !== 'a') return false;
    choose(idsOf(rows), true);
    return true;
  }
  if (key === 'Escape' && chosenOf(rows).length > 0) {
    clear();
    return true;
  }
  const at = Number(target.dataset.index ?? -1);
  const row = rows[at];
  if (row === undefined) return false;
  if (key.toLowerCase() === 'x') {
    toggle(row._id);
    return true;
  }
  const step = shiftKey ? STEPS[key] : undefined;
  // The arrow itself leads on, as without Shift.
  if (step !== undefined) choose(idsOf([row, rows[at + step] ?? row]), true);
  return false;
}

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };
