/** Durations, distances and speeds in the form and the units of the reader. */
import { usesMiles } from '../map/units.js';
import { formatNumber, language } from './language.js';

const METRES_PER_MILE = 1_609.344;
const METRES_PER_KM = 1_000;
/** Shorter ways have a decimal. */
const ROUND_FROM = 10;
const SECOND_MS = 1_000;
const UNITS_MS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', SECOND_MS],
] as const;

const inUnit = (value: number, unit: string, digits = 0): string =>
  formatNumber(value, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: digits });

/** `1 hr 5 min`: the greatest unit that fits, and the next smaller one. */
export function formatSpan(ms: number): string {
  const found = UNITS_MS.findIndex(([, unitMs]) => ms >= unitMs);
  const [unit, unitMs] = UNITS_MS[found] ?? ['second', SECOND_MS];
  const smaller = UNITS_MS[found + 1];
  if (found < 0 || smaller === undefined) return inUnit(Math.round(ms / SECOND_MS), 'second');
  const [smallUnit, smallMs] = smaller;
  const parts = Math.round(ms / smallMs);
  const perUnit = unitMs / smallMs;
  const whole = Math.floor(parts / perUnit);
  const rest = parts - whole * perUnit;
  return rest === 0 ? inUnit(whole, unit) : `${inUnit(whole, unit)} ${inUnit(rest, smallUnit)}`;
}

const isInMiles = (): boolean => usesMiles(navigator.languages, language.value);

export function formatDistance(metres: number): string {
  const value = metres / (isInMiles() ? METRES_PER_MILE : METRES_PER_KM);
  return inUnit(value, isInMiles() ? 'mile' : 'kilometer', value < ROUND_FROM ? 1 : 0);
}

export function formatSpeed(kmh: number): string {
  return isInMiles()
    ? inUnit((kmh * METRES_PER_KM) / METRES_PER_MILE, 'mile-per-hour')
    : inUnit(kmh, 'kilometer-per-hour');
}
