/** Spans of time, as people say them. */
import { formatNumber } from './language.js';

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** `2 h 5 min`: the two largest units. */
export function formatSpan(ms: number): string {
  let rest = Math.max(0, Math.round(ms / 1_000));
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0 || parts.length > 0 || unit === 's')
      parts.push(count === 0 && unit !== 's' ? '' : `${formatNumber(count)} ${unit}`);
    if (parts.length === 2) break;
  }
  const shown = parts.filter((part) => part !== '' && !(parts.length > 1 && part === '0 s'));
  return shown.join(' ');
}
