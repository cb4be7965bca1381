/** Distances and speeds in the form and the units of the reader. */
import { usesMiles } from '../map/units.js';
import { formatNumber, language } from './language.js';

const METRES_PER_MILE = 1_609.344;
const METRES_PER_KM = 1_000;
/** Shorter ways have a decimal. */
const ROUND_FROM = 10;
const inUnit = (value: number, unit: string, digits = 0): string =>
  formatNumber(value, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: digits });

const isInMiles = (): boolean => usesMiles(navigator.languages, language.value);

export function formatDistance(metres: number): string {
  const value = metres / (isInMiles() ? METRES_PER_MILE : METRES_PER_KM);
  return inUnit(value, isInMiles() ? 'mile' : 'kilometer', value < ROUND_FROM ? 1 : 0);
}

/** At least one. */
export function formatWholeDistance(metres: number): string {
  const value = metres / (isInMiles() ? METRES_PER_MILE : METRES_PER_KM);
  return inUnit(Math.max(1, Math.round(value)), isInMiles() ? 'mile' : 'kilometer');
}

export function formatSpeed(kmh: number): string {
  return isInMiles()
    ? inUnit((kmh * METRES_PER_KM) / METRES_PER_MILE, 'mile-per-hour')
    : inUnit(kmh, 'kilometer-per-hour');
}
