/** The names of series: of their objects, and those and the units that models give to parameters. */
import { modelOf, toShown } from '../home/values.js';
import { findObject } from '../state/by-name.js';
import type { SeriesKey } from './compared.js';

export interface SeriesName {
  readonly name: string;
  readonly label: string;
  readonly unit: string;
}

/** An object that nobody knows yet, or any more, has the name that the address has. */
export function nameSeries({ object, path }: SeriesKey): SeriesName {
  const known = findObject(object);
  const { label, unit } = toShown(path, 0, known && modelOf(known._id, known.model));
  return { name: known?.name ?? object, label, unit };
}
