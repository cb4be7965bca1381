/** A command as it is read from a path and a body. */
import { describe, expect, test } from '@jest/globals';
import { COMMAND_STATUSES, newCommand, readCommand } from '../../src/model/command.js';
import { declarationsOf } from '../../src/model/model.js';

const NONE = declarationsOf(null);
const DECLARED = declarationsOf({
  children: [
    { type: 'action', id: 'open', params: { door: 1, fast: false, nested: { a: 1, b: 2 } } },
    { type: 'action', id: 'close' },
  ],
});

describe('a command is read', () => {
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
  ])('%s %j', (name, body, declared, params) => {
    expect(readCommand(name, body, declared)).toEqual({ command: name, params });
  });
});

describe('a command is refused', () => {
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
  ])('%j %j', (name, body, declared, status) => {
    expect(() => readCommand(name, body, declared)).toThrow(expect.objectContaining({ status }));
  });
});

test('a new command is queued, and says since when', () => {
  expect(newCommand('o', { command: 'open', params: { a: 1 } }, 5)).toEqual({
    object: 'o',
    command: 'open',
    params: { a: 1 },
    status: 'queued',
    times: { queued: 5 },
  });
  expect(COMMAND_STATUSES).toEqual(['queued', 'sent', 'delivered', 'done', 'failed', 'expired']);
});
