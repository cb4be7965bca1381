/** What alarms and messages about them say of the conditions. */
import { expect, test } from '@jest/globals';
import { toWords } from '../../../src/alarms/describe.js';
import type { JsonObject } from '../../../src/core/json.js';
import { toMessage } from '../../../src/notifications/text.js';
import { compile, FENCE } from './support.js';

const wordsOf = (when: JsonObject): string[] =>
  compile({ when }).singles.map(({ condition }) => toWords(condition, { config: { max: 90 } }));

test.each<[when: JsonObject, words: string]>([
  [{ param: 'engine.temp', op: '>=', value: 105 }, 'engine.temp >= 105'],
  [{ param: 'speed', op: '>', value: { config: 'max' } }, 'speed > 90 (config.max)'],
  [{ silent: '30 min' }, 'silent for 30 min'],
  [{ silent: '2 h' }, 'silent for 2 h'],
  [{ silent: '90 s' }, 'silent for 90 s'],
  [{ silent: 1_500 }, 'silent for 1.5 s'],
  [{ geofence: FENCE, is: 'inside' }, 'inside a geofence'],
  [{ geofence: FENCE, on: 'enter' }, 'entered a geofence'],
  [{ geofence: FENCE, on: 'exit' }, 'left a geofence'],
  [{ online: false }, 'offline'],
])('says %j as %s', (when, words) => expect(wordsOf(when)).toEqual([words]));

test.each([
  [['Yard'], 'inside "Yard"'],
  [['Yard', 'Depot'], 'inside "Yard", "Depot"'],
  [['Yard', ''], 'inside "Yard" or another geofence'],
  [['A', 'B', 'C', 'D', 'E'], 'inside "A", "B", "C" or 2 other geofences'],
])('names the geofences %j', (names, words) => {
  const ids = names.map((_, index) => String(index).repeat(24));
  const { singles } = compile({ when: { geofence: ids, is: 'inside' } });
  const named = new Map(ids.map((id, index) => [id, String(names[index])]));
  expect(singles.map(({ condition }) => toWords(condition, {}, named))).toEqual([words]);
});

test.each([
  ['speed > 90', 95, 'speed > 90: 95'],
  ['charging != true', false, 'charging != true: false'],
  ['mode changed', 'off', 'mode changed: off'],
  ['silent for 30 min', 1_800_000, 'silent for 30 min'],
  ['inside a geofence', 'inside', 'inside a geofence'],
  ['inside "Bin in use"', 'inside', 'inside "Bin in use"'],
  ['offline', false, 'offline'],
])('says in messages what a comparison read, and of others no more than their words: %s', (condition, value, said) => {
  const alarm = { _id: 'a', name: 'n', status: 'raised', raised: 0, why: [{ condition, value, holds: true }] };
  const notification = { id: 'm', step: 'raised', severity: 'info', text: null };
  const message = toMessage(notification as Parameters<typeof toMessage>[0], { alarm, object: {}, publicUrl: null });
  expect(message.text.split('\n')[0]).toBe(said);
});
