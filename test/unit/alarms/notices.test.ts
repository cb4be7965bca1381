/** What is due of an alarm at which time: messages, reminders and escalations, also those that were missed. */
import { describe, expect, test } from '@jest/globals';
import { renderTemplate } from '../../../src/core/rule/template.js';
import { type Notice, planSteps } from '../../../src/notifications/notices.js';
import type { Notification } from '../../../src/notifications/outbox.js';
import { toMessage } from '../../../src/notifications/text.js';

const ADA = { users: ['a'], group: null, text: null };
const BOB = { users: ['b'], group: null, text: null };
const OPEN = { isCleared: false, isAcknowledged: false };
const NOTICE: Notice = {
  alarmId: '0123456789abcdef01234567',
  partition: 0,
  notify: [ADA],
  escalation: [
    { afterMs: 100, notify: [BOB] },
    { afterMs: 300, notify: [ADA, BOB] },
  ],
  remindMs: 200,
  recordedMs: 1_000,
  isRaisedTold: false,
  escalated: 0,
  reminders: 0,
  gateway: null,
};
const told = (fields: Partial<Notice> = {}): Notice => ({ ...NOTICE, isRaisedTold: true, ...fields });
const namesOf = (plan: ReturnType<typeof planSteps>): string[] => plan.steps.map(({ name }) => name);

describe('what is due', () => {
  test('begins with the alarm, and goes on with the earliest step', () => {
    const plan = planSteps(NOTICE, OPEN, 1_000);
    expect([namesOf(plan), plan.dueMs, plan.isOver]).toEqual([['raised'], 1_100, false]);
  });

  test('is each step once its time has come', () => {
    const first = planSteps(told(), OPEN, 1_100);
    expect([namesOf(first), first.after.escalated, first.dueMs]).toEqual([['escalated-1'], 1, 1_200]);
    const second = planSteps(told({ escalated: 1 }), OPEN, 1_200);
    expect(second.steps).toEqual([{ name: 'reminder-1', notify: [ADA, BOB] }]);
    expect(second.dueMs).toBe(1_300);
  });

  test('is one reminder where several were missed, and every escalation', () => {
    const plan = planSteps(told(), OPEN, 1_950);
    expect([namesOf(plan), plan.after]).toEqual([
      ['escalated-1', 'escalated-2', 'reminder-4'],
      { isRaisedTold: true, escalated: 2, reminders: 4 },
    ]);
    expect(plan.dueMs).toBe(2_000);
  });

  test('is nothing more once somebody has acknowledged, until the end', () => {
    const acknowledged = planSteps(told(), { isCleared: false, isAcknowledged: true }, 5_000);
    expect([acknowledged.steps, acknowledged.dueMs, acknowledged.isOver]).toEqual([[], null, false]);
    const cleared = planSteps(told(), { isCleared: true, isAcknowledged: true }, 5_000);
    expect([cleared.steps, cleared.isOver]).toEqual([[{ name: 'cleared', notify: null }], true]);
  });

  test('is one message where the alarm is over before it was told', () => {
    const plan = planSteps(NOTICE, { isCleared: true, isAcknowledged: false }, 9_000);
    expect([namesOf(plan), plan.isOver]).toEqual([['raised'], true]);
  });

  test('is nothing at first where only later steps notify', () => {
    const plan = planSteps({ ...NOTICE, notify: [], remindMs: null }, OPEN, 1_000);
    expect([plan.steps, plan.dueMs]).toEqual([[], 1_100]);
  });
});

const FACTS = {
  object: { name: 'Cold {{values.t}}' },
  values: { t: 9.5, engine: { oil: 'low' }, list: [1], none: null, lines: 'a\r\n\nhttps://b' },
};

test.each([
  ['{{object.name}}', 'Cold {{values.t}}'],
  ['{{ values.t }} °C', '9.5 °C'],
  ['{{values.engine.oil}} {{values.list}}', 'low [1]'],
  ['{{values.lines}}', 'a https://b'],
  ['{{values.none}} {{values.missing}} {{values.t.x}} {{values.constructor}}', '– – – –'],
])('renders %s', (template, text) => expect(renderTemplate(template, FACTS)).toBe(text));

test('says what the condition read on one line, whatever a device has sent', () => {
  const why = [{ condition: 'mode != "ok"', holds: true, value: 'bad\n\nhttps://example.com' }];
  const alarm = { _id: 'a', name: 'Mode', status: 'raised', raised: 0, why };
  const row = { id: '1', step: 'raised', severity: 'info', text: null } as Notification;
  const { text } = toMessage(row, { alarm, object: {}, publicUrl: null });
  expect(text).toBe('mode != "ok": bad https://example.com\nSince 1970-01-01 00:00:00 UTC');
});
