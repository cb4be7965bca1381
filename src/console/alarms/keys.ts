/** The keys of the alarms: arrows, `a` acknowledges, `n` leads to the note, Esc goes back. */
import { useEffect, useRef } from 'preact/hooks';
import { type Alarm, isWaiting } from '../state/alarms.js';
import { mayAcknowledge } from './alarm-actions.js';

interface Keys {
  readonly rows: readonly Alarm[];
  /** The alarm that is open, or nothing. */
  readonly id: string;
  /** Those that are chosen. */
  readonly selected: readonly Alarm[];
  readonly byKey: { current: boolean };
  readonly open: (id: string | null) => void;
  readonly acknowledgeThese: (alarms: readonly Alarm[]) => void;
}

const NOTE = '.alarm-detail textarea';
const CURRENT = '.alarm-open[aria-pressed=true]';

/** For as long as the page is there: whatever has the focus, unless somebody types there. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.isComposing || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('dialog[open], :popover-open') !== null) return;
      const target = event.target instanceof HTMLElement ? event.target : document.body;
      if (act(event.key, target, latest.current)) event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

const isTyping = (target: HTMLElement): boolean => target.matches('textarea, select, input:not([type=checkbox])');

/** Returns whether the key meant something. */
function act(key: string, target: HTMLElement, keys: Keys): boolean {
  if (key === 'Escape') return goBack(target, keys);
  if (isTyping(target)) return false;
  if (key === 'ArrowDown' || key === 'ArrowUp') return move(key === 'ArrowDown' ? 1 : -1, keys);
  if (key === 'a') return acknowledgeKey(keys);
  if (key !== 'n') return false;
  const note = document.querySelector<HTMLElement>(NOTE);
  note?.focus();
  return note !== null;
}

/** The row of the open alarm has the focus, from which the keys go on. */
export const focusRow = (): void =>
  (document.querySelector<HTMLElement>(CURRENT) ?? document.getElementById('main'))?.focus();

/** One step: out of the note, out of the alarm. */
function goBack(target: HTMLElement, { id, open }: Keys): boolean {
  if (isTyping(target) && !target.matches(NOTE)) return false;
  if (id === '') return false;
  if (target.closest('.alarm-detail')) focusRow();
  if (!target.matches(NOTE)) open(null);
  return true;
}

function move(by: number, { rows, id, byKey, open }: Keys): boolean {
  const at = rows.findIndex(({ _id }) => _id === id);
  const next = at < 0 ? rows[0] : rows[at + by];
  if (next === undefined) return false;
  byKey.current = true;
  open(next._id);
  return true;
}

/** The chosen ones, or the open one; the next one that waits is opened then. */
function acknowledgeKey({ rows, id, selected, byKey, open, acknowledgeThese }: Keys): boolean {
  if (selected.length > 0) {
    acknowledgeThese(selected);
    return true;
  }
  const at = rows.findIndex(({ _id }) => _id === id);
  const current = rows[at];
  if (current === undefined || !isWaiting(current) || !mayAcknowledge(id)) return false;
  acknowledgeThese([current]);
  const next = rows.slice(at + 1).find(isWaiting) ?? rows.slice(0, at).find(isWaiting);
  if (next !== undefined) {
    byKey.current = true;
    open(next._id);
  }
  return true;
}
