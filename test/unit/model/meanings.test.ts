/** What the values of a parameter mean: which states and thresholds a model may declare, and what a value means. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { modelData } from '../../../src/core/model.js';
import { meaningOf, TONES } from '../../../src/core/tones.js';

/** The first fault of a model whose second parameter is this one; null without any. */
function faultOf(fields: object): string | null {
  const children = [
    { type: 'argument', id: 'other' },
    { type: 'argument', id: 'one', ...fields },
  ];
  const issue = modelData.safeParse({ children }).error?.issues[0];
  return issue === undefined ? null : `${issue.path.slice(2).join('.')}: ${issue.message}`;
}

const DOOR = [
  { value: true, label: 'Open', tone: 'warning' },
  { value: false, label: 'Closed', tone: 'ok' },
];
const COLD = [
  { from: 8, tone: 'critical', label: 'Too warm' },
  { from: 6, to: 8, tone: 'warning' },
  { to: 2, tone: 'info', label: null },
];

describe('a parameter', () => {
  test.each<[what: string, fields: object]>([
    ['states of booleans', { dataType: 'boolean', states: DOOR }],
    ['states of any values', { states: [{ value: 1 }, { value: '1' }, { value: true, label: null, tone: null }] }],
    ['thresholds', { dataType: 'number', thresholds: COLD }],
    ['thresholds of any values, and states', { thresholds: COLD, states: [{ value: 0, label: 'Off' }] }],
    ['no states', { dataType: 'object', states: [], thresholds: [] }],
    ['null', { states: null, thresholds: null }],
    ['every tone', { states: TONES.map((tone) => ({ value: tone, tone })) }],
    [
      'overlapping thresholds',
      {
        thresholds: [
          { from: 5, tone: 'critical' },
          { from: 3, tone: 'warning' },
        ],
      },
    ],
  ])('may have %s', (_what, fields) => {
    expect(faultOf(fields)).toBe(null);
  });

  test.each<[fields: object, fault: RegExp]>([
    [{ states: {} }, /^states: .*array/],
    [{ states: [1] }, /^states\.0: /],
    [{ states: [{ label: 'Open' }] }, /^states\.0\.value: expected true, false, a number or text$/],
    [{ states: [{ value: null }] }, /^states\.0\.value: expected true, false, a number or text$/],
    [
      { states: [{ value: 1, tone: 'red' }] },
      /^states\.0\.tone: expected one of ok, info, warning, critical, unknown, stale$/,
    ],
    [{ states: [{ value: 1, colour: 'red' }] }, /^states\.0: .*colour/],
    [{ states: [{ value: 1 }, { value: 2 }, { value: 1 }] }, /^states\.2\.value: this value has a state already$/],
    [
      { dataType: 'boolean', states: [{ value: true }, { value: 'on' }] },
      /^states\.1\.value: expected a boolean, as dataType says$/,
    ],
    [{ dataType: 'number[]', states: [{ value: 1 }] }, /^states: only numbers, booleans and texts have states$/],
    [{ states: [{ value: 1, label: 'x'.repeat(LIMITS.meaningLabelCharacters + 1) }] }, /^states\.0\.label: /],
    [{ states: [{ value: 'x'.repeat(LIMITS.stateValueCharacters + 1) }] }, /^states\.0\.value: /],
    [{ states: Array.from({ length: LIMITS.parameterStates + 1 }, (_, value) => ({ value })) }, /^states: /],
    [{ thresholds: [{ from: 1 }] }, /^thresholds\.0\.tone: expected one of ok, /],
    [{ thresholds: [{ tone: 'ok' }] }, /^thresholds\.0\.from: expected from, to or both$/],
    [
      {
        thresholds: [
          { from: 1, tone: 'ok' },
          { from: 2, to: 2, tone: 'ok' },
        ],
      },
      /^thresholds\.1\.to: expected more than from$/,
    ],
    [{ thresholds: [{ from: '1', tone: 'ok' }] }, /^thresholds\.0\.from: /],
    [{ dataType: 'string', thresholds: [{ from: 1, tone: 'ok' }] }, /^thresholds: only numbers have thresholds$/],
    [
      { thresholds: Array.from({ length: LIMITS.parameterThresholds + 1 }, (_, from) => ({ from, tone: 'ok' })) },
      /^thresholds: /,
    ],
  ])('may not have %j', (fields, fault) => {
    expect(faultOf(fields)).toMatch(fault);
  });

  test('may have anything there if it is none, as other platforms export it', () => {
    const children = [{ type: 'subsystem', states: 7, thresholds: 'x' }, { states: [{ tone: 1 }] }];
    expect(modelData.safeParse({ children }).success).toBe(true);
  });
});

describe('a value', () => {
  test.each<[value: unknown, meaning: object]>([
    [8, { tone: 'critical', note: 'Too warm' }],
    [100, { tone: 'critical', note: 'Too warm' }],
    [7.99, { tone: 'warning' }],
    [6, { tone: 'warning' }],
    [5, {}],
    [2, {}],
    [1.99, { tone: 'info' }],
    [-7, { text: 'Broken', tone: 'unknown' }],
    ['7', {}],
    [null, {}],
    [{ from: 1 }, {}],
  ])('means what is declared: %j', (value, meaning) => {
    const states = [{ value: -7, label: 'Broken', tone: 'unknown' }];
    expect(meaningOf(value, { states, thresholds: COLD })).toEqual(meaning);
  });

  test('means what the state of the same type says', () => {
    const states = [{ value: 1, label: 'One' }, { value: '1', label: 'Text' }, ...DOOR];
    expect([1, '1', true, false].map((value) => meaningOf(value, { states }))).toEqual([
      { text: 'One' },
      { text: 'Text' },
      { text: 'Open', tone: 'warning' },
      { text: 'Closed', tone: 'ok' },
    ]);
  });

  test.each([
    [undefined],
    [null],
    ['x'],
    [[null, 1, 'x', { value: 1, tone: 'red' }, { from: 0, tone: 'red' }, { from: 0 }]],
  ])('means nothing where an earlier version stored %j', (stored) => {
    expect(meaningOf(1, { states: stored, thresholds: stored })).toEqual({});
  });
});
