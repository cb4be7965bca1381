/** The keys of the first page: from the search to the rows of the list, to the object of a row, and back. */

import type { useShow } from './address.js';
import { search, selectedId, visible } from './selection.js';

type Show = ReturnType<typeof useShow>;

const SEARCH = '.side input[type=search]';
const ROW = '.side .row button';
/** Of what is in place of the map. */
const OTHER = '.stage [data-index]';

/** For keys of everything on the page. */
export function onHomeKey(event: KeyboardEvent, show: Show): void {
  const { key, target } = event;
  if (event.isComposing || event.defaultPrevented || !(target instanceof HTMLElement)) return;
  const isSearch = target.matches(SEARCH);
  const isDone =
    (key === 'Escape' && goBack(target, isSearch, show)) ||
    (key === 'Enter' && isSearch && showFirst(show)) ||
    ((isSearch || target.matches(`${ROW}, ${OTHER}`)) &&
      (key === 'ArrowDown' || key === 'ArrowUp') &&
      move(target, key));
  if (isDone) event.preventDefault();
}

/** One step: empties the search, closes the card, leaves the list. */
function goBack(target: HTMLElement, isSearch: boolean, show: Show): boolean {
  if (isSearch && search.value !== '') show({ search: '' });
  else if (selectedId.value !== null) {
    // The card takes the focus with it.
    if (target.closest('.card'))
      focus(document.querySelector(`:is(${ROW}, ${OTHER})[aria-pressed=true]`) ?? document.querySelector(SEARCH));
    show({ object: null });
  } else if (target.matches(`${ROW}, ${OTHER}`)) focus(document.querySelector(SEARCH));
  else return false;
  return true;
}

function showFirst(show: Show): boolean {
  const [first] = visible.value;
  if (first !== undefined) show({ object: first._id });
  return true;
}

function move(target: HTMLElement, key: 'ArrowDown' | 'ArrowUp'): boolean {
  const inList = [...document.querySelectorAll<HTMLElement>(ROW)].filter((row) => row.offsetParent !== null);
  // Where there is no list, its place is taken.
  const rows = inList.length > 0 ? inList : [...document.querySelectorAll<HTMLElement>(OTHER)];
  const at = rows.indexOf(target);
  if (key === 'ArrowUp') focus(at > 0 ? (rows[at - 1] ?? null) : document.querySelector(SEARCH));
  else focus(at >= 0 ? (rows[at + 1] ?? null) : firstInView(rows));
  return true;
}

/** Rows above the window of the list exist, too. */
function firstInView(rows: readonly HTMLElement[]): HTMLElement | null {
  const topPx = rows[0]?.closest('.virtual-list')?.getBoundingClientRect().top ?? 0;
  return rows.find((row) => row.getBoundingClientRect().top >= topPx) ?? null;
}

const focus = (element: Element | null): void => (element as HTMLElement | null)?.focus();
