/** The numbers in packets that charts can show, nested ones too. */

import { COURSE_NAMES } from '../../core/motion-fields.js';
import { PLACE_NAMES } from '../state/places.js';

type Fields = Readonly<Record<string, unknown>>;

/** How far below its parameter a number is found. */
const DEPTH = 2;
/** For devices that send whole tables. Numbers that are parameters themselves are always among them. */
const MOST_PATHS = 100;

const NOT_WORTH = new Set([...PLACE_NAMES, ...COURSE_NAMES]);

/** Whether people look at it as a chart: where something is and where it moves are shown on a map. */
export const isWorthChart = (path: string): boolean => !NOT_WORTH.has(path.split('.').at(-1) ?? '');

/** The paths of the numbers in parameters, such as `engine.rpm`, in the order in which they appear. */
export function numberPathsOf(parameters: readonly (readonly [name: string, value: unknown])[]): string[] {
  const paths = new Set<string>();
  const add = (path: string, value: unknown, depth: number): void => {
    if (depth > 0 && paths.size >= MOST_PATHS) return;
    if (typeof value === 'number') paths.add(path);
    if (depth === DEPTH || typeof value !== 'object' || value === null || Array.isArray(value)) return;
    for (const [name, inner] of Object.entries(value)) add(`${path}.${name}`, inner, depth + 1);
  };
  for (const [name, value] of parameters) add(name, value, 0);
  return [...paths];
}

/** The number at a path; null if there is none. No name in a packet contains a dot. */
export function numberAt(packet: Fields, path: string): number | null {
  const value = path.split('.').reduce<unknown>((inner, name) => (inner as Fields | null | undefined)?.[name], packet);
  return typeof value === 'number' ? value : null;
}
