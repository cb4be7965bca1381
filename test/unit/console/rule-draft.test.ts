/** Rules while they are edited: what forms show of a condition, what is typed as a value, what a change sends. */
import { expect, test } from '@jest/globals';
import {
  actionKindOf,
  contentOf,
  kindOf,
  toChange,
  toScalar,
  toScalars,
  toTyped,
  toTypedList,
  valueFor,
} from '../../../src/console/rules/draft.js';

test.each([
  [{ param: 'a', op: '>', value: 8 }, 'param'],
  [{ param: 'a', op: '>', value: { config: 'limit' } }, 'param'],
  [{ param: 'a', op: 'between', value: [1, 2] }, 'param'],
  [{ param: 'a', op: 'in', value: [1, 'b', true] }, 'param'],
  [{ param: 'a', op: 'changed' }, 'param'],
  [{ online: false }, 'offline'],
  [{ online: true }, 'online'],
  [{ silent: '10 min' }, 'silent'],
  [{ geofence: ['a', 'b'], is: 'inside' }, 'geofence'],
  [{ geofence: 'a', on: 'exit' }, 'geofence'],
  [{ all: [{ online: true }] }, 'all'],
  [{ any: [] }, 'any'],
  [{ not: { online: true } }, 'not'],
  [{ expr: 'p.a > 1' }, 'expr'],
])('shows %j as a form of the kind %s', (condition, kind) => {
  expect(kindOf(condition)).toBe(kind);
});

test.each([
  null,
  'a',
  [],
  {},
  { param: 'a', op: 'near', value: 8 },
  { param: 'a', op: '>', value: 8, note: 'b' },
  { param: 'a', op: '>', value: { config: 'limit', else: 3 } },
  { param: 'a', op: 'between', value: [1, { config: 'b' }] },
  { param: 'a', op: 'between', value: [1, 2, 3] },
  { param: 'a', op: '>' },
  { silent: 600_000 },
  { geofence: 'a', is: 'inside', on: 'exit' },
  { geofence: 3, is: 'inside' },
  { online: 'no' },
  { all: [], note: 'b' },
  { not: [] },
])('leaves %j to JSON', (condition) => {
  expect(kindOf(condition)).toBe('json');
});

test.each([
  ['8', 8],
  ['-1.5', -1.5],
  ['1,5', 1.5],
  ['1,500', '1,500'],
  ['0,125', 0.125],
  ['-2,0005', -2.0005],
  ['1e3', 1000],
  ['true', true],
  ['open', 'open'],
  ['"12"', '12'],
  ['"true"', 'true'],
  ['0012', '0012'],
  ['8944110068765432109', '8944110068765432109'],
  ['', ''],
])('takes %s as %j', (typed, value) => {
  expect(toScalar(typed)).toBe(value);
});

test.each([8, -1.5, 1e21, true, 'open', '12', 'true', '"quoted"', ' a ', '', '0012', '1,5', '1,500'])(
  'shows %j so that typing it gives the same value',
  (value) => {
    expect(toScalar(toTyped(value))).toBe(value);
  },
);

test.each([[['x, y', '12', 3, true]], [['a', 'b']], [[]]])(
  'shows the list %j so that typing it gives it again',
  (values) => {
    expect(toScalars(toTypedList(values))).toEqual(values);
  },
);

test('keeps as much of a value as another operator takes', () => {
  expect(valueFor('between', 8)).toEqual([8, 8]);
  expect(valueFor('>', [8, 9])).toBe(8);
  expect(valueFor('in', 'a')).toEqual(['a']);
  expect(valueFor('changed', 8)).toBeUndefined();
  expect(valueFor('<', { config: 'limit' })).toEqual({ config: 'limit' });
});

test.each([
  [{ notify: { users: ['a'], group: 'b', text: 'c' } }, 'notify'],
  [{ webhook: 'a' }, 'webhook'],
  [{ command: 'a', params: { b: 1 } }, 'command'],
  [{ command: 'a', params: [1] }, 'json'],
  [{ notify: { users: ['a'], by: 'mail' } }, 'json'],
  [{ webhook: 'a', params: {} }, 'json'],
])('shows the action %j as %s', (action, kind) => {
  expect(actionKindOf(action)).toBe(kind);
});

test('sends what was changed, removes what a rule can be without, and names what cannot be removed', () => {
  const before = contentOf({
    _id: 'a',
    time: 1,
    name: 'b',
    when: { online: false },
    for: '1 h',
    clear: null,
    remark: 'c',
  });
  expect(before).toEqual({ name: 'b', when: { online: false }, for: '1 h', remark: 'c' });
  expect(toChange(before, { name: 'b', when: { online: true }, remark: 'c' })).toEqual({
    change: { when: { online: true }, for: null },
    kept: null,
  });
  expect(toChange(before, { name: 'b', when: { online: false }, for: '1 h' })).toEqual({ change: {}, kept: 'remark' });
});
