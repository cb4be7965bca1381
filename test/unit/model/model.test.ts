/** What a model's tree declares, and which values fit a declared type. */
import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../src/model/json.js';
import { type DataType, declarationsOf, isOfType, modelData } from '../../../src/model/model.js';

const TREE: JsonObject = {
  id: 'car',
  name: 'Car',
  type: 'subsystem',
  children: [
    { id: 'speed', name: 'Speed', type: 'argument', dataType: 'number', unit: 'km/h', reference: 'car/+/speed' },
    { id: 'untyped', type: 'argument' },
    {
      id: 'engine',
      type: 'subsystem',
      children: [
        { id: 'on', type: 'argument', dataType: 'boolean' },
        { id: 'engine.stop', type: 'action', params: { force: false } },
        { id: 'reset', type: 'action' },
      ],
    },
  ],
};

describe('a tree declares', () => {
  test('arguments with a type as parameters and actions as commands, however deep they stand', () => {
    const { parameters, actions } = declarationsOf(TREE);
    expect(Object.fromEntries(parameters)).toEqual({ speed: 'number', on: 'boolean' });
    expect(Object.fromEntries(actions)).toEqual({ 'engine.stop': { force: false }, reset: {} });
  });

  test.each([[null], [undefined], ['text'], [[]], [{}], [{ children: 'x' }], [{ children: [null, 1, []] }]])(
    'nothing, when it is %j',
    (data) => {
      const { parameters, actions } = declarationsOf(data);
      expect([parameters.size, actions.size]).toEqual([0, 0]);
    },
  );
});

describe('a tree may be', () => {
  test.each<[what: string, data: unknown, fits: boolean]>([
    ['the example', TREE, true],
    ['empty', {}, true],
    ['with fields of its own', { colour: 'red', children: [{ colour: 1 }] }, true],
    ['an argument without an id', { children: [{ type: 'argument', dataType: 'number' }] }, false],
    ['an argument named like a field of the service', { children: [{ type: 'argument', id: '_ts' }] }, false],
    ['an argument named with a dot', { children: [{ type: 'argument', id: 'a.b' }] }, false],
    ['an argument of no known type', { children: [{ type: 'argument', id: 'a', dataType: 'date' }] }, false],
    ['an action with a space', { children: [{ type: 'action', id: 'a b' }] }, false],
    ['an action without an id', { children: [{ children: [{ type: 'action' }] }] }, false],
    ['an action whose parameters are a list', { children: [{ type: 'action', id: 'a', params: [] }] }, false],
    ['children that are no list', { children: {} }, false],
    ['a child that is no object', { children: [1] }, false],
  ])('%s: %s', (_, data, fits) => expect(modelData.safeParse(data).success).toBe(fits));
});

describe('a value fits its declared type', () => {
  const values: [value: unknown, types: DataType[]][] = [
    [1.5, ['number']],
    [true, ['boolean']],
    ['text', ['string']],
    ['1', ['string']],
    [{}, ['object']],
    [{ a: [1] }, ['object']],
    [[], ['number[]', 'boolean[]', 'string[]']],
    [[1, 2], ['number[]']],
    [[true], ['boolean[]']],
    [['a'], ['string[]']],
    [[1, 'a'], []],
    [[null], []],
    [[[1]], []],
    [null, ['number', 'boolean', 'string', 'object', 'number[]', 'boolean[]', 'string[]']],
  ];
  const all: DataType[] = ['number', 'boolean', 'string', 'object', 'number[]', 'boolean[]', 'string[]'];
  test.each(values)('%j: only %j', (value, types) => {
    expect(all.filter((type) => isOfType(value, type))).toEqual(types);
  });
});
