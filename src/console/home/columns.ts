/** What a table or a tile shows of objects, as the address has it: the parameters of packets begin with a point. */
import { objects, parametersOf } from '../state/fleet.js';
import { isPlaceField } from '../state/places.js';
import { modelOf, toShown } from './values.js';

const PARAMETER = '.';
/** Devices may have thousands of parameters. */
export const MOST_COLUMNS = 20;
/** Objects in whose packets parameters are looked for. */
const MOST_OBJECTS = 2_000;

export function parseColumns(text: string | null): readonly string[] | null {
  if (text === null) return null;
  const names = text.split(',').map(decode).filter(Boolean);
  return [...new Set(names)].slice(0, MOST_COLUMNS);
}

export const formatColumns = (names: readonly string[]): string => names.map(encodeURIComponent).join(',');

/** What somebody typed into an address may be no text that was encoded. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const toColumn = (parameter: string): string => PARAMETER + parameter;

/** The name of the parameter; null for another column. */
export const parameterOf = (column: string): string | null =>
  column.startsWith(PARAMETER) ? column.slice(PARAMETER.length) : null;

export interface Parameter {
  readonly name: string;
  readonly label: string;
  readonly unit: string;
  readonly isNumber: boolean;
  /** How many of the objects that were looked at send it. */
  readonly count: number;
}

/** The parameters that objects send, by their labels. */
export function parametersOfFleet(): readonly Parameter[] {
  const found = new Map<string, Parameter>();
  let looked = 0;
  for (const { _id, model, state } of objects.values()) {
    if (state === undefined) continue;
    if (++looked > MOST_OBJECTS) break;
    for (const [name, value] of parametersOf(state)) {
      const known = found.get(name);
      if (known !== undefined) found.set(name, { ...known, count: known.count + 1 });
      else if (!isPlaceField(name, value)) {
        const { label, unit } = toShown(name, value, modelOf(_id, model));
        found.set(name, { name, label, unit, isNumber: typeof value === 'number', count: 1 });
      }
    }
  }
  return [...found.values()].sort((one, other) => (one.label < other.label ? -1 : 1));
}
