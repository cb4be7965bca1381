/** A command as it is read from a path and a body, its states, and what goes to the device. */
import { describe, expect, test } from '@jest/globals';
import {
  COMMAND_STATUSES,
  type CommandOutcome,
  hasOutcome,
  newCommand,
  OPEN_STATUSES,
  parseCommand,
  parseOutcome,
  parseTtl,
  statusesBefore,
  toDelivery,
} from '../../../src/core/command.js';
import type { JsonObject } from '../../../src/core/json.js';
import { declarationsOf } from '../../../src/core/model.js';

const NONE = declarationsOf(null);
const DECLARED = declarationsOf({
  children: [
    { type: 'action', id: 'open', params: { door: 1, fast: false, nested: { a: 1, b: 2 } } },
    { type: 'action', id: 'close' },
  ],
});

describe('a valid command', () => {
  test.each<[name: string, body: unknown, declared: typeof NONE, params: object]>([
    ['anything', undefined, NONE, {}],
    ['anything', {}, NONE, {}],
    ['set', { a: 1, b: { c: null } }, NONE, { a: 1, b: { c: null } }],
    ['A-z_0.9:x', undefined, NONE, {}],
    ['x'.repeat(64), undefined, NONE, {}],
    ['open', undefined, DECLARED, { door: 1, fast: false, nested: { a: 1, b: 2 } }],
    ['open', { fast: true, more: 1 }, DECLARED, { door: 1, fast: true, nested: { a: 1, b: 2 }, more: 1 }],
    ['open', { nested: { a: 5 } }, DECLARED, { door: 1, fast: false, nested: { a: 5 } }],
    ['close', undefined, DECLARED, {}],
  ])('accepts %s %j', (name, body, declared, params) => {
    expect(parseCommand(name, body, declared)).toEqual({ command: name, params });
  });
});

describe('an invalid command', () => {
  test.each<[name: string, body: unknown, declared: typeof NONE, status: number]>([
    ['start', {}, DECLARED, 404],
    ['constructor', {}, DECLARED, 404],
    ['Open', {}, DECLARED, 404],
    ['', {}, NONE, 400],
    ['a b', {}, NONE, 400],
    ['ключ', {}, NONE, 400],
    ['a/b', {}, NONE, 400],
    ['x'.repeat(65), {}, NONE, 400],
    ['a\n', {}, NONE, 400],
    ['a', [], NONE, 400],
    ['a', null, NONE, 400],
    ['a', 'text', NONE, 400],
    ['a', { $x: 1 }, NONE, 400],
    ['open', { 'a.b': 1 }, DECLARED, 400],
  ])('is refused: %j %j', (name, body, declared, status) => {
    expect(() => parseCommand(name, body, declared)).toThrow(expect.objectContaining({ status }));
  });
});

test('creates commands as queued, with their creation and expiry times', () => {
  expect(newCommand('o', { command: 'open', params: { a: 1 }, ttlMs: 10 }, 5)).toEqual({
    object: 'o',
    command: 'open',
    params: { a: 1 },
    status: 'queued',
    times: { queued: 5 },
    expires: 15,
  });
  expect(COMMAND_STATUSES).toEqual(['queued', 'sent', 'delivered', 'done', 'failed', 'expired']);
});

test('permits each status only after its predecessors, and none after a final one', () => {
  const table = Object.fromEntries(COMMAND_STATUSES.map((status) => [status, statusesBefore(status)]));
  const open = ['queued', 'sent', 'delivered'];
  expect(table).toEqual({
    queued: ['sent'],
    sent: ['queued', 'sent'],
    delivered: ['sent'],
    done: open,
    failed: open,
    expired: open,
  });
  expect(OPEN_STATUSES).toEqual(open);
});

describe('the lifetime of a command', () => {
  const day = 86_400_000;
  const hour = 3_600_000;
  test.each<[text: string | null, ttlMs: number]>([
    [null, day],
    ['24 h', day],
    ['1 s', 1_000],
    ['1000', 1_000],
    ['1.5h', 1.5 * hour],
    ['90 days', 90 * day],
    [String(90 * day), 90 * day],
  ])('is parsed: %j', (text, ttlMs) => expect(parseTtl(text)).toBe(ttlMs));

  test.each(['', '0', '999', '-5', '91 days', '1e9', 'soon', '5 parsecs', 'NaN', String(90 * day + 1)])(
    'refuses %j',
    (text) => {
      expect(() => parseTtl(text)).toThrow(
        expect.objectContaining({ status: 400, message: expect.stringMatching(/^ttl: .*1 s to 90 days/) }),
      );
    },
  );
});

describe('the result of a command', () => {
  test.each<[body: object, outcome: object]>([
    [{ status: 'done' }, { status: 'done', result: undefined }],
    [
      { status: 'failed', result: 'jammed', more: 1 },
      { status: 'failed', result: 'jammed' },
    ],
    [
      { status: 'done', result: { a: [null, { b: 2 }] } },
      { status: 'done', result: { a: [null, { b: 2 }] } },
    ],
    [
      { status: 'done', result: null },
      { status: 'done', result: null },
    ],
  ])('is parsed: %j', (body, outcome) => expect(parseOutcome(body)).toEqual(outcome));

  test.each<[body: unknown, named: string]>([
    [undefined, 'body'],
    [null, 'body'],
    [[], 'body'],
    ['done', 'body'],
    [{}, 'status'],
    [{ status: 'expired' }, 'status'],
    [{ status: 'sent' }, 'status'],
    [{ status: 'DONE' }, 'status'],
    [{ status: null }, 'status'],
    [{ status: ['done'] }, 'status'],
    [{ status: 'done', result: { $set: 1 } }, 'result.$set'],
    [{ status: 'done', result: Array(10_000).fill('x'.repeat(10)) }, 'result'],
  ])('is refused by name: %j', (body, named) => {
    const refused = expect.objectContaining({ status: 400, message: expect.stringContaining(named) });
    expect(() => parseOutcome(body)).toThrow(refused);
  });

  test.each<[command: Parameters<typeof hasOutcome>[0], outcome: CommandOutcome, same: boolean]>([
    [{ status: 'done' }, { status: 'done', result: undefined }, true],
    [{ status: 'done', result: { a: 1 } }, { status: 'done', result: { a: 1 } }, true],
    [{ status: 'done', result: { a: 1 } }, { status: 'done', result: { a: 2 } }, false],
    [{ status: 'done', result: null }, { status: 'done', result: undefined }, false],
    [{ status: 'done' }, { status: 'failed', result: undefined }, false],
    [{ status: 'expired' }, { status: 'done', result: undefined }, false],
  ])('compares %j with the earlier result: %j', (command, outcome, same) =>
    expect(hasOutcome(command, outcome)).toBe(same),
  );
});

describe('the payload for the device', () => {
  const sent = (params: JsonObject = { a: 1 }) => ({ _id: 'c', command: 'open', params });
  const whole = '{"_id":"c","command":"open","params":{"a":1}}';
  test.each<[params: JsonObject, action: JsonObject | undefined, topic: string | null, payload: string]>([
    [{ a: 1 }, undefined, null, whole],
    [{ a: 1 }, {}, null, whole],
    [{ a: 1 }, { a: 5 }, null, whole],
    [{ a: 1 }, { topic: 'relay/1' }, 'relay/1', whole],
    [{ topic: 'relay/1', payload: 'ON' }, { topic: 'relay/1', payload: 'ON' }, 'relay/1', 'ON'],
    [{ payload: '' }, { payload: '' }, null, ''],
    [{ payload: null }, { payload: null }, null, ''],
    [{ payload: 'ON' }, { payload: null }, null, 'ON'],
    [{ payload: { on: true } }, { payload: { on: true } }, null, '{"on":true}'],
    [{ payload: 5 }, { payload: 5 }, null, '5'],
    // The sender may say what, not where to; nor anything that the model has not said.
    [{ topic: 'relay/2', payload: 'OFF' }, { topic: 'relay/1', payload: 'ON' }, 'relay/1', 'OFF'],
    [{ topic: 'relay/2', payload: 'OFF' }, {}, null, JSON.stringify(sent({ topic: 'relay/2', payload: 'OFF' }))],
    ...[
      '',
      'a/+',
      '#',
      '$SYS/x',
      'a\u0000',
      'a\n',
      'a\u0085',
      'a\uffff',
      '\u{1fffe}',
      '\ud800',
      'x'.repeat(257),
      5,
      null,
    ].map((topic): [JsonObject, JsonObject, null, string] => [{ a: 1 }, { topic }, null, whole]),
  ])("replaces %j by the action's template %j", (params, action, topic, payload) => {
    expect(toDelivery(sent(params), action)).toEqual({ topic, payload });
  });
});
