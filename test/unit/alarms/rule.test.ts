/** Rules: what is accepted, and errors that name the place. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../src/core/json.js';
import { parseCondition } from '../../../src/core/rule/condition.js';
import { parseRule } from '../../../src/core/rule/rule.js';
import { isOpen, nextOpening, parseSchedule, type Schedule } from '../../../src/core/rule/schedule.js';
import { readCode } from '../../support/docs/markdown.js';

const HOT = { param: 'temperature', op: '>', value: 8 };
const ID = 'a'.repeat(24);
const rule = (fields: JsonObject): JsonObject => ({ name: 'Too warm', when: HOT, ...fields });

describe('rules', () => {
  test('has defaults', () => {
    expect(parseRule(rule({}))).toMatchObject({
      isActive: true,
      severity: 'warning',
      forMs: 0,
      clear: null,
      clearForMs: 0,
      controlMs: 3_600_000,
      schedule: null,
      actions: [],
      select: { objects: null, group: null, model: null, labels: null },
    });
  });

  test.each<[about: string, fields: JsonObject]>([
    [
      'every operator',
      { when: { all: [HOT, { param: 'a', op: 'in', value: [1, 'b'] }, { param: 'a', op: 'changed' }] } },
    ],
    ['a range', { when: { param: 'a.b', op: 'between', value: [1, { config: 'max' }] } }],
    ['a threshold of the object', { when: { param: 'a', op: '<=', value: { config: 'limits.max' } } }],
    [
      'geofences',
      {
        when: {
          any: [
            { geofence: ID, is: 'inside' },
            { geofence: [ID], on: 'exit' },
          ],
        },
      },
    ],
    [
      'silence, presence and expressions',
      { when: { all: [{ silent: '10 min' }, { not: { online: false } }, { expr: 'p.a' }] } },
    ],
    ['members that are null', { when: { ...HOT, all: null }, clear: null, then: null, remind: null, select: null }],
    ['actions', { then: [{ webhook: ID }, { command: 'defrost', params: { minutes: 5 } }] }],
    ['50 conditions', { when: { all: Array(49).fill(HOT) }, clear: HOT }],
    ['durations as numbers', { for: 1_000, clearFor: '2 min', control: '1 h' }],
  ])('accepts %s', (_about, fields) => expect(() => parseRule(rule(fields))).not.toThrow());

  test.each<[message: string, fields: JsonObject]>([
    ['when: required', { when: null }],
    ['when: expected a condition', { when: 'temperature > 8' }],
    ['when: expected one of param', { when: {} }],
    ['when: expected one of param', { when: { ...HOT, online: true } }],
    ['when.valu: not known', { when: { param: 'a', op: '>', valu: 8 } }],
    ['when.op: expected one of >', { when: { param: 'a', op: '=>', value: 8 } }],
    ['when.all[1].op: expected one of >', { when: { all: [HOT, { param: 'a', op: 'gt', value: 8 }] } }],
    ['when.any[0].not.value: expected a number', { when: { any: [{ not: { param: 'a', op: '>', value: '8' } }] } }],
    ['when.all: expected a list', { when: { all: [] } }],
    ['when.all: expected a list', { when: { all: HOT } }],
    ['when.param: expected the name', { when: { param: 'a..b', op: '>', value: 8 } }],
    ['when.param: expected the name', { when: JSON.parse('{"param": "a.__proto__.b", "op": "changed"}') }],
    ['when.value: expected two numbers', { when: { param: 'a', op: 'between', value: [9, 8] } }],
    ['when.value: not known with changed', { when: { param: 'a', op: 'changed', value: 1 } }],
    ['when.value.max: expected only config', { when: { param: 'a', op: '>', value: { max: 1 } } }],
    ['when.geofence: expected the _id', { when: { geofence: 'home', is: 'inside' } }],
    ['when.is: expected inside', { when: { geofence: ID, is: 'in' } }],
    ['when: expected either is or on', { when: { geofence: ID } }],
    ['when.silent: expected a duration', { when: { silent: 'long' } }],
    ['when.silent: expected a duration', { when: { silent: 0 } }],
    ['when.online: expected true or false', { when: { online: 'no' } }],
    ['when.all[0].expr: line 1, column 10', { when: { all: [{ expr: 'p.speed >' }] } }],
    ['when.expr: line 1, column 1: expected a condition', { when: { expr: 'p.t + 1' } }],
    ['when.expr: line 1, column 1: expected a condition', { when: { expr: '-p.t' } }],
    ['when.expr: line 1, column 1: expected a condition', { when: { expr: 'p.a ? p.t * 2 : p.b' } }],
    ['clear.op: expected one of', { clear: { param: 'a', op: '?' } }],
    ['when: a rule has at most 50 conditions', { when: { all: Array(50).fill(HOT) }, clear: HOT }],
    ['for: expected a duration', { for: '10 parsecs' }],
    ['for: expected a duration', { for: '3 years' }],
    ['clearFor: expected a duration', { clearFor: -1 }],
    ['control: expected a duration', { control: {} }],
    ['severity: expected info', { severity: 'high' }],
    ['active: expected true or false', { active: 'yes' }],
    ['select.object: not known', { select: { object: 'a' } }],
    ['select.objects: expected a list', { select: { objects: 'cold-1' } }],
    ['select.group: expected an _id', { select: { group: 'berlin' } }],
    ['schedule.days: expected a list', { schedule: { days: ['monday'] } }],
    ['schedule.from: expected a time', { schedule: { from: '8:00' } }],
    ['schedule.to: expected a time', { schedule: { to: '24:30' } }],
    ['schedule.tz: expected a time zone', { schedule: { tz: 'Europe/Atlantis' } }],
    ['then: expected a list', { then: { webhook: ID } }],
    ['then[0]: expected', { then: [{}] }],
    ['then[1].webhook: expected an _id', { then: [{ webhook: ID }, { webhook: 'crm' }] }],
    ['then[0].command: expected the name', { then: [{ command: 'a b' }] }],
    ['then[0].params: expected an object', { then: [{ command: 'a', params: [] }] }],
    ['then[0].notify: expected users or group', { then: [{ notify: {} }] }],
    ['remind: the rule notifies nobody', { remind: '30 min' }],
    ['escalate: expected a list', { escalate: {} }],
    [
      'escalate[1].after: expected no less',
      { escalate: ['2 min', '1 min'].map((after) => ({ after, then: [{ notify: { users: [ID] } }] })) },
    ],
    ['a rule has at most 65536 characters', { note: 'x'.repeat(65_536) }],
  ])('refuses with: %s', (message, fields) => expect(() => parseRule(rule(fields))).toThrow(message));
});

describe('schedules', () => {
  const scheduleOf = (fields: JsonObject): Schedule => parseSchedule(fields) as Schedule;
  const WORK = scheduleOf({ days: ['mon', 'tue'], from: '08:00', to: '18:00', tz: 'Europe/Berlin' });
  // The clock skips these hours on 29 March 2026.
  const EARLY = scheduleOf({ days: ['sun'], from: '02:00', to: '03:00', tz: 'Europe/Berlin' });
  const NIGHT = scheduleOf({ days: ['fri'], from: '22:00', to: '06:00', tz: 'America/New_York' });

  test.each<[about: string, schedule: Schedule, at: string, open: boolean, next: string]>([
    ['before', WORK, '2026-01-05T06:59:59Z', false, '2026-01-05T07:00:00Z'],
    ['at the beginning', WORK, '2026-01-05T07:00:00Z', true, '2026-01-06T07:00:00Z'],
    ['at the end', WORK, '2026-01-05T17:00:00Z', false, '2026-01-06T07:00:00Z'],
    ['on another day', WORK, '2026-01-07T10:00:00Z', false, '2026-01-12T07:00:00Z'],
    ['in summer time', WORK, '2026-07-06T06:00:00Z', true, '2026-07-07T06:00:00Z'],
    ['at night', NIGHT, '2026-01-10T04:00:00Z', true, '2026-01-17T03:00:00Z'],
    ['in the morning after', NIGHT, '2026-01-10T10:59:00Z', true, '2026-01-17T03:00:00Z'],
    ['after the night', NIGHT, '2026-01-10T11:00:00Z', false, '2026-01-17T03:00:00Z'],
    ['across the change of the clock', NIGHT, '2026-03-14T10:00:00Z', false, '2026-03-21T02:00:00Z'],
    ['before hours that the clock skips', EARLY, '2026-03-24T12:00:00Z', false, '2026-04-05T00:00:00Z'],
    ['a week before them', EARLY, '2026-03-22T12:00:00Z', false, '2026-04-05T00:00:00Z'],
  ])('knows an instant %s', (_about, schedule, at, open, next) => {
    expect(isOpen(schedule, Date.parse(at))).toBe(open);
    expect(new Date(nextOpening(schedule, Date.parse(at))).toISOString().replace('.000', '')).toBe(next);
  });

  test('is always open without days and times', () => expect(isOpen(scheduleOf({}), 1e12)).toBe(true));
});

test.each(['docs/reference/alarms.md', 'docs/how-to/alarms-from-elsewhere.md'])(
  'reads the conditions of %s',
  (page) => {
    const written = readCode(readFileSync(page, 'utf8').replace(/^```[^`]*^```$/gm, '')).filter((code) =>
      /^\{"(param|all|any|not|geofence|silent|online|expr)"[^…]*\}$/.test(code),
    );
    expect(written.length).toBeGreaterThan(5);
    for (const code of written) parseCondition(JSON.parse(code.replaceAll('<_id>', ID)), 'when');
  },
);
