/** What a change of many objects asks for: only of those that it changes, and of at most 100 in one request. */
import { expect, test } from '@jest/globals';
import { type BulkChange, toRequests } from '../../../src/console/home/bulk.js';

interface Given {
  readonly group?: string;
  readonly model?: string;
  readonly labels?: unknown;
  readonly config?: { readonly offlineAfter: unknown };
}

const object = (_id: string, fields: Given = {}) => ({ _id, model: 'm', group: 'g', ...fields });

const MANY = Array.from({ length: 250 }, (_, index) => object(`o-${index}`));

test.each<[BulkChange, ReturnType<typeof object>[], object[]]>([
  [{ kind: 'group', value: 'h' }, [object('a'), object('b', { group: 'h' })], [{ ids: ['a'], group: 'h' }]],
  [{ kind: 'model', value: 'n' }, [object('a'), object('b', { model: 'n' })], [{ ids: ['a'], body: { model: 'n' } }]],
  [
    { kind: 'offlineAfter', value: ' 10 min ' },
    [object('a'), object('b', { config: { offlineAfter: '10 min' } }), object('c', { config: { offlineAfter: 5 } })],
    [{ ids: ['a', 'c'], body: { config: { offlineAfter: '10 min' } } }],
  ],
  [
    { kind: 'offlineAfter', value: '' },
    [object('a'), object('b', { config: { offlineAfter: null } }), object('c', { config: { offlineAfter: 5 } })],
    [{ ids: ['c'], body: { config: { offlineAfter: null } } }],
  ],
  [
    { kind: 'addLabel', value: 'two words' },
    [
      object('a'),
      object('b', { labels: ['x'] }),
      object('c', { labels: ['two words', 'x'] }),
      object('d', { labels: [] }),
    ],
    [
      { ids: ['a', 'd'], body: { labels: ['two words'] } },
      { ids: ['b'], body: { labels: ['x', 'two words'] } },
    ],
  ],
  [
    { kind: 'removeLabel', value: 'x' },
    [
      object('a'),
      object('b', { labels: ['x', 'y'] }),
      object('c', { labels: ['y', 'x'] }),
      object('d', { labels: 'x' }),
    ],
    [{ ids: ['b', 'c'], body: { labels: ['y'] } }],
  ],
])('asks for %j', (change, objects, requests) => {
  expect(toRequests(change, objects)).toEqual(requests);
});

test('asks of at most 100 objects at once, and of each once', () => {
  for (const change of [
    { kind: 'group', value: 'h' },
    { kind: 'model', value: 'n' },
    { kind: 'addLabel', value: 'x' },
    { kind: 'offlineAfter', value: '1 h' },
  ] as const) {
    const requests = toRequests(change, MANY);
    expect(requests.map(({ ids }) => ids.length)).toEqual([100, 100, 50]);
    expect(requests.flatMap(({ ids }) => ids)).toEqual(MANY.map(({ _id }) => _id));
  }
});
