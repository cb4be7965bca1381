/** What a model could declare of the parameters that objects send. */
import { expect, test } from '@jest/globals';
import { proposalsOf } from '../../../src/console/models/proposals.js';

const typeOf = (...values: unknown[]): string | null | undefined =>
  proposalsOf(
    values.map((value) => ['one', value] as const),
    {},
  )[0]?.dataType;

test('proposes the type that all values have', () => {
  expect([typeOf(1, 2.5), typeOf(true), typeOf('a'), typeOf({ rpm: 1 })]).toEqual([
    'number',
    'boolean',
    'string',
    'object',
  ]);
  expect([typeOf([1, 2]), typeOf(['a']), typeOf([true])]).toEqual(['number[]', 'string[]', 'boolean[]']);
});

test('proposes no type where values have several, or one that models do not have', () => {
  expect([typeOf(1, 'a'), typeOf(1, 'a', 1), typeOf([1, 'a']), typeOf([]), typeOf([null]), typeOf([{}])]).toEqual([
    null,
    null,
    null,
    null,
    null,
    null,
  ]);
});

test('leaves out unknown values, names that models refuse, and what the model declares at any level', () => {
  const tree = {
    children: [
      {
        id: 'folder',
        children: [
          { type: 'argument', id: 'inner' },
          { type: 'action', id: 'stop' },
        ],
      },
    ],
  };
  const names = ['inner', 'two words', 'x'.repeat(65), 'stop', 'folder', 'door2', 'door10'];
  const found = proposalsOf([...names.map((name) => [name, 1] as const), ['unknown', null]], tree);
  expect(found.map(({ name }) => name)).toEqual(['door2', 'door10', 'folder', 'stop']);
});

test('proposes at most 500 parameters', () => {
  const many = Array.from({ length: 600 }, (_, nth) => [`p${nth}`, nth] as const);
  expect(proposalsOf(many, {})).toHaveLength(500);
});
