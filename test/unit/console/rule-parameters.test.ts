/** The parameters that the condition of a rule reads, and whether it can be evaluated. */
import { expect, test } from '@jest/globals';
import { isComplete } from '../../../src/console/rules/draft.js';
import { comparisonsIn, parametersRead, partAt } from '../../../src/console/rules/parameters.js';

test.each([
  [{ param: 'engine.temp', op: '>', value: 8 }, ['engine.temp']],
  [
    {
      all: [
        { param: 'b', op: 'changed' },
        { any: [{ not: { param: 'a', op: '<', value: 1 } }, { expr: 'p.b > last.c' }] },
      ],
    },
    ['b', 'a', 'c'],
  ],
  [{ expr: 'p.speed > 90 && last.engine.temp < p.speed' }, ['speed', 'engine.temp']],
  [{ expr: 'p["door open"] && p[\'x-y\'] == 1' }, ['door open', 'x-y']],
  [{ expr: 'has(p.a) && p.name.startsWith("p.b") && p.mode.matches(\'last.d\')' }, ['a', 'name', 'mode']],
  [{ expr: 'lamp.a > 1 || object.p.b > 2 || xp.c > 3' }, []],
  [{ expr: 'p . a > 1 && p.time > 2 && p.online' }, ['a']],
  [{ expr: 'p.a > "it\\"s p.b" && p.c' }, ['a', 'c']],
  [{ silent: '10 min' }, []],
  [{ geofence: ['f'], is: 'inside' }, []],
  [{ param: '', op: '>', value: 1 }, []],
  [null, []],
])('finds what %j reads', (condition, names) => {
  expect(parametersRead(condition)).toEqual(names);
});

test('finds comparisons and parts of a condition', () => {
  const hot = { param: 'a', op: '>', value: 1 };
  const cold = { param: 'b', op: '<', value: 2 };
  const when = { all: [hot, { any: [{ not: cold }, { expr: 'p.c > 1' }, { online: false }] }] };
  expect(comparisonsIn(when)).toEqual([hot, cold]);
  expect(partAt({ when }, 'when')).toBe(when);
  expect(partAt({ when }, 'when.all[1].any[0].not')).toBe(cold);
  expect(partAt({ when }, 'when.any[1].any')).toBeUndefined();
});

test.each([
  [{ param: 'a', op: '>', value: 0 }, true],
  [{ param: '', op: '>', value: 0 }, false],
  [{ param: 'a', op: '>', value: '' }, false],
  [{ param: 'a', op: '>', value: { config: '' } }, false],
  [{ param: 'a', op: 'changed' }, true],
  [{ param: 'a', op: 'in', value: [] }, false],
  [{ geofence: [], is: 'outside' }, false],
  [{ geofence: ['f'], is: 'outside' }, true],
  [{ online: false }, true],
  [{ silent: '' }, false],
  [{ expr: '' }, false],
  [{ all: [{ online: false }, { param: '', op: '>', value: 0 }] }, false],
  [{ not: { online: false } }, true],
  [{ all: [] }, false],
  [{}, false],
  [null, false],
])('knows whether %j is filled in', (condition, isFilledIn) => {
  expect(isComplete(condition)).toBe(isFilledIn);
});
