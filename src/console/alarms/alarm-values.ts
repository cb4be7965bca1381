/** What an alarm read, as people say it. */
import { formatValue, knownModel, toShown } from '../home/values.js';
import type { Alarm } from '../state/alarms.js';
import { objects } from '../state/fleet.js';
import { namedOf, titleOf } from '../state/references.js';
import { user } from '../state/session.js';
import { formatNumber, t } from '../text/language.js';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `temperature 9.2 °C, speed 80 km/h`. */
export const summaryOf = (alarm: Alarm): string =>
  Object.entries(alarm.values ?? {})
    .flatMap(([name, value]) => textsOf(name, value, alarm))
    .join(', ');

function textsOf(name: string, value: unknown, alarm: Alarm): string[] {
  if (isObject(value)) return Object.entries(value).flatMap(([below, one]) => textsOf(`${name}.${below}`, one, alarm));
  if (name === 'silent') return [t('alarm.silent')];
  if (name === 'online' && typeof value === 'boolean') return [t(value ? 'state.online' : 'state.offline')];
  if (name === 'geofence' && (value === 'inside' || value === 'outside')) return [t(`alarm.${value}`)];
  const shown = toShown(name, value, knownModel(objects.get(alarm.object)?.model ?? ''));
  return [`${shown.label} ${shown.text}${shown.unit === '' ? '' : ` ${shown.unit}`}`];
}

export const formatRead = (value: unknown): string =>
  value === null || value === undefined ? '' : isObject(value) ? JSON.stringify(value) : formatValue(value);

/** The name of a user, as far as the reader may know it. */
export function personOf(id: unknown): string {
  if (id === user.value?._id) return user.value?.name || user.value?.login || '';
  const found = namedOf('users').find(({ _id }) => _id === id);
  return found === undefined ? t('alarm.somebody') : titleOf(found);
}

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
