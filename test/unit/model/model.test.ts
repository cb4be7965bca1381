/** What a model's tree declares, and which values fit a declared type. */
import { describe, expect, test } from '@jest/globals';
import type { Json, JsonObject } from '../../../src/core/json.js';
import { type DataType, declarationsOf, isOfType, modelData, toType } from '../../../src/core/model.js';

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

describe('the declarations of a tree', () => {
  test('contain typed arguments as parameters and actions as commands, at any depth', () => {
    const { parameters, actions } = declarationsOf(TREE);
    expect(Object.fromEntries(parameters)).toEqual({ speed: 'number', on: 'boolean' });
    expect(Object.fromEntries(actions)).toEqual({ 'engine.stop': { force: false }, reset: {} });
  });

  test.each([[null], [undefined], ['text'], [[]], [{}], [{ children: 'x' }], [{ children: [null, 1, []] }]])(
    'are empty for %j',
    (data) => {
      const { parameters, actions } = declarationsOf(data);
      expect([parameters.size, actions.size]).toEqual([0, 0]);
    },
  );
});

describe('a tree', () => {
  test.each<[what: string, data: unknown, fits: boolean]>([
    ['the example', TREE, true],
    ['empty', {}, true],
    ['with fields of its own', { colour: 'red', children: [{ colour: 1 }] }, true],
    ['an argument without an id', { children: [{ type: 'argument', dataType: 'number' }] }, false],
    ['an argument named like a field of the service', { children: [{ type: 'argument', id: '_ts' }] }, true],
    ['an argument named with a dot', { children: [{ type: 'argument', id: 'in1.voltage' }] }, true],
    ['an argument whose name begins with a digit', { children: [{ type: 'argument', id: '3303_0_5601' }] }, true],
    ['an argument named with a space', { children: [{ type: 'argument', id: 'a b' }] }, false],
    ['another node with a type of its own', { children: [{ type: 'config', id: 'a', dataType: 'table' }] }, true],
    ['another node whose type of values is a list', { children: [{ type: 'config', dataType: ['a', 'b'] }] }, true],
    [
      'an argument whose type of values is a list',
      { children: [{ type: 'argument', id: 'a', dataType: ['a'] }] },
      false,
    ],
    ['a folder with a type', { type: 'subsystem', dataType: 'date', children: [] }, true],
    ['an action that begins with !', { children: [{ type: 'action', id: '!govecs_lock' }] }, true],
    ['an action with a slash', { children: [{ type: 'action', id: 'a/b' }] }, false],
    ['an argument of no known type', { children: [{ type: 'argument', id: 'a', dataType: 'date' }] }, false],
    ['an action with a space', { children: [{ type: 'action', id: 'a b' }] }, false],
    ['an action without an id', { children: [{ children: [{ type: 'action' }] }] }, false],
    ['an action whose parameters are a list', { children: [{ type: 'action', id: 'a', params: [] }] }, false],
    ['children that are no list', { children: {} }, false],
    ['a child that is no object', { children: [1] }, false],
  ])('is accepted or refused: %s, %s', (_, data, fits) => expect(modelData.safeParse(data).success).toBe(fits));
});

describe('a value', () => {
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
  test.each(values)('has its types: %j, %j', (value, types) => {
    expect(all.filter((type) => isOfType(value, type))).toEqual(types);
  });
});

test.each<[value: Json, type: DataType, result: Json | undefined]>([
  ['21.30', 'number', 21.3],
  [' -5 ', 'number', -5],
  ['1e3', 'number', 1_000],
  ['.5', 'number', 0.5],
  [5, 'number', 5],
  [null, 'number', null],
  ['', 'number', undefined],
  [' ', 'number', undefined],
  ['0x10', 'number', undefined],
  ['1e999', 'number', undefined],
  ['Infinity', 'number', undefined],
  ['12 km', 'number', undefined],
  [true, 'number', undefined],
  [['1', 2], 'number[]', undefined],
  [[null], 'number[]', undefined],
  ['1', 'number[]', undefined],
  ['1', 'string', '1'],
  [1, 'string', undefined],
  ['true', 'boolean', true],
  ['yes', 'boolean', undefined],
])('reads %j, declared as %s, as %j', (value, type, result) => expect(toType(value, type)).toEqual(result));

describe('a tree exported by another platform', () => {
  const argument = (id: string, more: object = {}) => ({ id, type: 'argument', dataType: 'number', ...more });

  test('declares the last message without topics', () => {
    const of = (folder: string) => ({
      children: [{ id: folder, children: [argument('topic', { reference: 'topic' }), argument('payload')] }],
    });
    const last = declarationsOf(of('mqtt-last'));
    const other = declarationsOf(of('other'));
    expect([last.keepsLastMessage, last.references.size, last.parameters.size]).toEqual([true, 0, 0]);
    expect([other.keepsLastMessage, other.references.size, other.parameters.size]).toEqual([false, 1, 2]);
  });

  test('accepts any ids of nodes', () => {
    const children = [{ id: { toString: 1 }, children: [argument('speed')] }];
    expect([...declarationsOf({ id: [], children }).parameters.keys()]).toEqual(['speed']);
  });

  test('declares parameters that are members of another one', () => {
    const children = [
      argument('position', { dataType: 'object', reference: 'gps' }),
      argument('lat', { reference: 'position.lat' }),
      argument('first', { reference: 'position.list.0' }),
      argument('speed', { reference: 'navigation.speed' }),
      argument('other', { reference: 'lat.x' }),
    ];
    expect(declarationsOf({ children }).members).toEqual([
      { parameter: 'lat', of: 'position', path: ['lat'] },
      { parameter: 'first', of: 'position', path: ['list', '0'] },
    ]);
  });
});
