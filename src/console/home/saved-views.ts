/** The saved views of the first page that the user is offered: their own, and those that are shared with them. */
import { signal } from '@preact/signals';
import { type Entity, list } from '../state/api.js';
import { may, user } from '../state/session.js';

export interface SavedView extends Entity {
  readonly name: string;
  readonly query: string;
  readonly shared?: boolean;
  readonly owner: string;
  readonly group: string;
}

/** More of either are not offered. */
const MOST = 1_000;

/** By name; null until they are read. */
export const savedViews = signal<readonly SavedView[] | null>(null);

export const isMine = ({ owner }: SavedView): boolean => owner === user.value?._id;

/** How often they were asked for, and the request whose answer is shown: an earlier one may be answered later. */
let asked = 0;
let shown = 0;

/** Where a view is shown. */
export const pathOfView = ({ query }: SavedView): string => (query === '' ? '/' : `/?${query}`);

export async function loadSavedViews(): Promise<void> {
  if (!may('GET', '/views')) return;
  const mine = ++asked;
  const find = (where: Record<string, string>): Promise<SavedView[]> =>
    list<SavedView>('/views', { only: 'name,query,shared,owner,group', limit: MOST, ...where });
  const [own, ofOthers] = await Promise.all([
    find({ 'where.owner': user.value?._id ?? '' }),
    find({ 'where.shared': 'true' }),
  ]);
  if (mine < shown) return;
  shown = mine;
  savedViews.value = [...own, ...ofOthers.filter((view) => !isMine(view))].sort((one, other) =>
    one.name.localeCompare(other.name, undefined, { numeric: true }),
  );
}
