/** The address of the first page: it holds what is shown, so that it can be sent to somebody. */

import { useEffect } from 'preact/hooks';
import { useLocation } from '../state/location.js';
import { ORDERS, type Order } from './order.js';
import { FILTERS, type Filter, filter, narrowed, order, place, search, selectedId } from './selection.js';
import { by, columns, VIEWS, type View, view } from './view.js';

/** What the address says, by the names of its parameters. */
interface Address {
  readonly object: string | null;
  readonly search: string;
  readonly show: Filter;
  readonly sort: Order;
  readonly group: string | null;
  readonly model: string | null;
  readonly label: string | null;
  /** The middle of the map and its zoom. */
  readonly at: string | null;
  readonly view: View | null;
  /** The values of tiles, and the columns of the table and its order. */
  readonly columns: string | null;
  readonly by: string | null;
}

/** Addresses of our own that the router has not reported yet: what they say is shown already, and may be out of date. */
let written: string[] = [];

function toSearch(shown: Address): string {
  const said = {
    ...shown,
    show: shown.show === FILTERS[0] ? null : shown.show,
    sort: shown.sort === ORDERS[0] ? null : shown.sort,
  };
  const parameters = Object.entries(said).filter(([, value]) => value) as [string, string][];
  return new URLSearchParams(parameters).toString();
}

const read = (): Address => ({
  object: selectedId.value,
  search: search.value,
  show: filter.value,
  sort: order.value,
  ...narrowed.value,
  at: place.value,
  view: view.value,
  columns: columns.value,
  by: by.value,
});

function apply({
  object,
  search: text,
  show,
  sort,
  at,
  view: kind,
  columns: names,
  by: sorted,
  ...rest
}: Address): void {
  selectedId.value = object;
  search.value = text;
  filter.value = show;
  order.value = sort;
  narrowed.value = rest;
  place.value = at;
  view.value = kind;
  columns.value = names;
  by.value = sorted;
}

/** Shows what the address says. */
export function useAddress(): void {
  const { query } = useLocation();
  const {
    object = null,
    search: text = '',
    group = null,
    model = null,
    label = null,
    at = null,
    columns = null,
    by = null,
  } = query;
  const show = FILTERS.find((one) => one === query.show) ?? FILTERS[0];
  const sort = ORDERS.find((one) => one === query.sort) ?? ORDERS[0];
  const view = VIEWS.find((one) => one === query.view) ?? null;
  const said: Address = { object, search: text, show, sort, group, model, label, at, view, columns, by };
  useEffect(() => {
    const index = written.indexOf(toSearch(said));
    written = written.slice(index + 1);
    if (index >= 0) return;
    written = [];
    apply(said);
  }, [toSearch(said)]);
  useEffect(
    () => () => {
      written = [];
    },
    [],
  );
}

/** Shows something else, and says so in the address. */
export function useShow(): (change: Partial<Address>) => void {
  const { route } = useLocation();
  return (change) => {
    const before = read();
    const shown = { ...before, ...change };
    const address = toSearch(shown);
    if (address === toSearch(before)) return;
    apply(shown);
    written.push(address);
    route(address === '' ? '/' : `/?${address}`, true);
  };
}
