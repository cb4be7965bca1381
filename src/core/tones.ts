/** What the values of a parameter mean: the states and thresholds that its model declares, each with a tone. Pure; the console has it, too. */

/** From good to bad, and what nobody knows. */
export const TONES = ['ok', 'info', 'warning', 'critical', 'unknown', 'stale'] as const;
export type Tone = (typeof TONES)[number];

/** What one value means. */
export interface ValueState {
  readonly value: boolean | number | string;
  readonly label?: string | null;
  readonly tone?: Tone | null;
}

/** What the numbers from `from` on and below `to` mean. */
export interface ValueThreshold {
  readonly from?: number | null;
  readonly to?: number | null;
  readonly tone: Tone;
  readonly label?: string | null;
}

/** Models that were stored by earlier versions may have anything there. */
const listIn = <T extends object>(list: unknown): readonly T[] =>
  Array.isArray(list) ? list.filter((one) => typeof one === 'object' && one !== null) : [];

const isTone = (value: unknown): value is Tone => (TONES as readonly unknown[]).includes(value);

export const statesIn = (states: unknown): readonly ValueState[] => listIn(states);

export const thresholdsIn = (thresholds: unknown): readonly ValueThreshold[] =>
  listIn<ValueThreshold>(thresholds).filter(({ tone }) => isTone(tone));

export const contains = ({ from, to }: ValueThreshold, value: number): boolean =>
  value >= (from ?? Number.NEGATIVE_INFINITY) && value < (to ?? Number.POSITIVE_INFINITY);

export interface Meaning {
  readonly tone?: Tone;
  /** In place of the value. */
  readonly text?: string;
  /** Beside the value. */
  readonly note?: string;
}

/** Of the state with this value, or else of the first threshold that contains it. */
export function meaningOf(
  value: unknown,
  declared: { readonly states?: unknown; readonly thresholds?: unknown },
): Meaning {
  const state = statesIn(declared.states).find((one) => one.value === value);
  if (state !== undefined) return { ...toneOf(state), ...(state.label && { text: String(state.label) }) };
  if (typeof value !== 'number') return {};
  const threshold = thresholdsIn(declared.thresholds).find((one) => contains(one, value));
  return threshold === undefined
    ? {}
    : { ...toneOf(threshold), ...(threshold.label && { note: String(threshold.label) }) };
}

const toneOf = ({ tone }: { readonly tone?: unknown }): { tone?: Tone } => (isTone(tone) ? { tone } : {});
