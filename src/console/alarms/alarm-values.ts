/** What an alarm read, as people say it. */
import { modelOf, toShown } from '../home/values.js';
import type { Alarm } from '../state/alarms.js';
import { objects } from '../state/fleet.js';
import { namedOf, titleOf } from '../state/references.js';
import { user } from '../state/session.js';
import { t } from '../text/language.js';
import { formatRead } from './read-values.js';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `temperature 9.2 °C, speed 80 km/h`. */
export const summaryOf = (alarm: Pick<Alarm, 'object' | 'values'>): string =>
  Object.entries(alarm.values ?? {})
    .flatMap(([name, value]) => textsOf(name, value, alarm))
    .join(', ');

/** What a part of the condition read; an expression reads several parameters. */
export const readText = (object: string, value: unknown): string =>
  isObject(value) ? summaryOf({ object, values: value as Alarm['values'] }) : formatRead(value);

function textsOf(name: string, value: unknown, alarm: Pick<Alarm, 'object'>): string[] {
  if (isObject(value)) return Object.entries(value).flatMap(([below, one]) => textsOf(`${name}.${below}`, one, alarm));
  if (name === 'silent') return [t('alarm.silent')];
  if (name === 'online' && typeof value === 'boolean') return [t(value ? 'state.online' : 'state.offline')];
  if (name === 'geofence' && (value === 'inside' || value === 'outside')) return [t(`alarm.${value}`)];
  const object = objects.get(alarm.object);
  const shown = toShown(name, value, object && modelOf(object._id, object.model));
  return [`${shown.label} ${shown.text}${shown.unit === '' ? '' : ` ${shown.unit}`}`];
}

/** The name of a user, as far as the reader may know it. */
export function personOf(id: unknown): string {
  if (id === user.value?._id) return user.value?.name || user.value?.login || '';
  const found = namedOf('users').find(({ _id }) => _id === id);
  return found === undefined ? t('alarm.somebody') : titleOf(found);
}
