/** Thresholds in charts: which rules have one, and which of them select an object. */
import { expect, test } from '@jest/globals';
import { selectsObject, thresholdsOf } from '../../../src/console/objects/thresholds.js';

const rule = (when: unknown, severity?: string) => ({ _id: 'r1', name: 'Rule', severity, when });
const linesOf = (when: unknown) =>
  thresholdsOf(rule(when)).map(({ param, sign, value }) => `${param} ${sign} ${value}`);

test.each([
  [{ param: 'temperature', op: '>', value: 8 }, ['temperature > 8']],
  [{ param: 'engine.rpm', op: '<=', value: -0.5 }, ['engine.rpm ≤ -0.5']],
  [{ param: 'mode', op: '==', value: 3 }, ['mode = 3']],
  [{ param: 'level', op: 'between', value: [2, 6] }, ['level ≥ 2', 'level ≤ 6']],
  [{ param: 'level', op: 'between', value: [2, { config: 'most' }] }, []],
  [{ param: 'temperature', op: '>', value: { config: 'maxTemperature' } }, []],
  [{ param: 'mode', op: '==', value: 'idle' }, []],
  [{ param: 'mode', op: 'in', value: [1, 2] }, []],
  [{ param: 'mode', op: 'changed' }, []],
  [{ all: [{ param: 'temperature', op: '>', value: 8 }] }, []],
  [{ not: { param: 'temperature', op: '>', value: 8 } }, []],
  [{ silent: '10 min' }, []],
  [{ expr: 'p.temperature > 8' }, []],
  [null, []],
])('has the lines of %j', (when, lines) => {
  expect(linesOf(when)).toEqual(lines);
});

test.each([
  [{ param: 'a', op: '>', value: { config: 'most' } }, ['> 8']],
  [{ param: 'a', op: '<', value: { config: 'limits.low' } }, ['< 2']],
  [{ param: 'a', op: 'between', value: [{ config: 'limits.low' }, 6] }, ['≥ 2', '≤ 6']],
  [{ param: 'a', op: '>', value: { config: 'name' } }, []],
  [{ param: 'a', op: '>', value: { config: 'unknown.inner' } }, []],
])('has the lines of %j with the config of an object', (when, lines) => {
  const config = { most: 8, limits: { low: 2 }, name: 'eight' };
  expect(thresholdsOf(rule(when), config).map(({ sign, value }) => `${sign} ${value}`)).toEqual(lines);
  expect(thresholdsOf(rule(when), null)).toEqual([]);
});

test('has the severity of the rule, a warning by default', () => {
  const when = { param: 'a', op: '>', value: 1 };
  const severities = ['critical', 'info', 'warning', undefined].map(
    (one) => thresholdsOf(rule(when, one))[0]?.severity,
  );
  expect(severities).toEqual(['critical', 'info', 'warning', 'warning']);
});

const pump = { keys: ['6b09', 'pump-1'], groups: ['north', 'all'], model: 'm1', labels: ['cold', 'new'] };

test.each([
  [undefined, true],
  [null, true],
  [{}, true],
  [{ objects: ['pump-1'] }, true],
  [{ objects: ['x', '6b09'] }, true],
  [{ objects: ['pump-2'] }, false],
  [{ objects: [] }, false],
  [{ objects: null, group: 'all' }, true],
  [{ group: 'south' }, false],
  [{ model: 'm1', labels: ['old', 'cold'] }, true],
  [{ model: 'm1', labels: ['old'] }, false],
  [{ model: 'm2', labels: ['cold'] }, false],
])('knows whether %j selects an object', (select, isSelected) => {
  expect(selectsObject(select, pump)).toBe(isSelected);
});
