/** What an object was over time: booleans and texts with few values, such as a door, the ignition or a mode. */
import { silenceMsOf } from './chart-data.js';

/** Texts with more values are messages or identifiers. */
const MOST_VALUES = 12;
const MOST_CHARACTERS = 60;
/** How far below its parameter a value is found. */
const DEPTH = 2;
const MOST_PATHS = 100;

export type StateValue = boolean | string | number;

type Parameters = readonly (readonly [name: string, value: unknown])[];

/** The parameters whose numbers are states, too. */
export const namesWithStates = (
  declared: readonly { readonly id: string; readonly states?: unknown }[] = [],
): ReadonlySet<string> => new Set(declared.filter(({ states }) => Array.isArray(states)).map(({ id }) => id));

export interface StatePath {
  readonly path: string;
  /** In the order in which they occur. */
  readonly values: readonly StateValue[];
}

/** The paths of states, such as `engine.mode`; those that change come first. Numbers are states where a model says so. */
export function statePathsOf(packets: readonly Parameters[], declared: ReadonlySet<string> = new Set()): StatePath[] {
  const found = new Map<string, Set<StateValue> | null>();
  const add = (path: string, value: unknown, depth: number): void => {
    const values = found.get(path);
    if (values === null || value === null) return;
    const isText = typeof value === 'string' && value.length <= MOST_CHARACTERS;
    if (isText || typeof value === 'boolean' || (typeof value === 'number' && declared.has(path))) {
      if (values === undefined && found.size >= MOST_PATHS) return;
      const known = values ?? new Set();
      found.set(path, known.add(value).size > MOST_VALUES ? null : known);
    } else if (typeof value !== 'object') found.set(path, null);
    else if (depth < DEPTH && !Array.isArray(value))
      for (const [name, inner] of Object.entries(value)) add(`${path}.${name}`, inner, depth + 1);
  };
  for (const parameters of packets) for (const [name, value] of parameters) add(name, value, 0);
  const paths = [...found].flatMap(([path, values]) => (values === null ? [] : [{ path, values: [...values] }]));
  const isChanging = ({ values }: StatePath): boolean => values.length > 1;
  return [...paths.filter(isChanging), ...paths.filter((one) => !isChanging(one))];
}

export interface Segment {
  readonly value: StateValue;
  readonly fromMs: number;
  readonly toMs: number;
}

type Fields = Readonly<Record<string, unknown>>;
const isState = (value: unknown): value is StateValue => typeof value === 'boolean' || typeof value === 'string';

/** A value holds until the next one; where the device was silent for longer than it usually is, nobody knows. */
export function segmentsOf(
  packets: readonly ({ readonly time: number } & object)[],
  path: string,
  hasNumbers = false,
): Segment[] {
  const names = path.split('.');
  const valueIn = (packet: object): unknown =>
    names.reduce<unknown>((inner, name) => (inner as Fields | null | undefined)?.[name], packet);
  const told = packets.flatMap((packet) => {
    const value = valueIn(packet);
    return isState(value) || (hasNumbers && typeof value === 'number') ? [{ timeMs: packet.time, value }] : [];
  });
  const gapMs = silenceMsOf(told.map(({ timeMs }) => timeMs));
  const endMs = packets.at(-1)?.time ?? 0;
  const segments: { value: StateValue; fromMs: number; toMs: number }[] = [];
  for (const [index, { timeMs, value }] of told.entries()) {
    const nextMs = told[index + 1]?.timeMs ?? endMs;
    const toMs = nextMs - timeMs > gapMs ? timeMs : nextMs;
    const before = segments.at(-1);
    if (before?.value === value && before.toMs === timeMs) before.toMs = toMs;
    else segments.push({ value, fromMs: timeMs, toMs });
  }
  return segments;
}

export interface Total {
  readonly value: StateValue;
  readonly lengthMs: number;
}

/** How long each value held, the longest first. */
export function totalsOf(segments: readonly Segment[]): Total[] {
  const totals = new Map<StateValue, number>();
  for (const { value, fromMs, toMs } of segments) totals.set(value, (totals.get(value) ?? 0) + toMs - fromMs);
  return [...totals]
    .map(([value, lengthMs]) => ({ value, lengthMs }))
    .sort((one, other) => other.lengthMs - one.lengthMs);
}
