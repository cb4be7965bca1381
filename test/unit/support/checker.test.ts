/** The checker of the failover tests finds every kind of problem. */
import { describe, expect, test } from '@jest/globals';
import { toPosition } from '../../../src/platform/mongo/changes/decoder.js';
import { checkCounted, checkReceived, checkWritten, type Stored } from '../../slow/failover/checker.js';
import type { Client, ReceivedEvent } from '../../slow/failover/listeners.js';
import type { Sent } from '../../slow/failover/writers.js';

const RULES = { cuts: false };

const packet = (key: string, more: Partial<Sent> = {}): Sent => ({
  object: 'o',
  kind: 'packet',
  key,
  status: 200,
  retryAfter: 0,
  startMs: 0,
  endMs: 10,
  ...more,
});
const patch = (key: string): Sent => packet(key, { kind: 'patch' });
const stored = (packets: string[], mark = 'm2'): Stored => ({ packets, marks: new Map([['o', mark]]) });
const positionOf = (at: number): string => toPosition({ _data: `8265${String(at).padStart(12, '0')}` });
const client = (...events: readonly (readonly [name: ReceivedEvent['name'], payload: object])[]): Client => ({
  name: 'client',
  isConnected: () => true,
  stop: async () => undefined,
  received: events.map(([name, payload], at) => ({ name, payload, position: positionOf(at), atMs: at })),
});

const GOOD = client(
  ['object-packet', { key: 'a' }],
  ['object-update', { id: 'o', before: {}, after: { mark: 'm1' } }],
  ['object-packet', { key: 'b' }],
  ['object-update', { id: 'o', before: { mark: 'm1' }, after: { mark: 'm2' } }],
);
const SENT = [packet('a'), patch('m1'), packet('b'), packet('c', { status: 503, retryAfter: 1 }), patch('m2')];

test('finds no fault in an empty history', () => {
  expect(checkWritten(SENT, stored(['a', 'b']), RULES)).toEqual([]);
  expect(checkWritten(SENT, stored(['a', 'b', 'c']), RULES)).toEqual([]);
  expect(checkWritten([packet('a', { status: null })], stored([]), { ...RULES, cuts: true })).toEqual([]);
  expect(checkReceived(GOOD, SENT, stored(['a', 'b']))).toEqual([]);
});

describe('the check of writes', () => {
  test.each<[what: string, sent: Sent[], packets: string[]]>([
    ['acknowledged, not stored', [packet('a')], []],
    ['stored twice', [packet('a')], ['a', 'a']],
    ['stored, never sent', [packet('a')], ['a', 'x']],
    ['answered wrongly', [packet('a', { status: 500 })], []],
    ['answered wrongly', [packet('a', { status: 404 })], []],
    ['answered wrongly', [packet('a', { status: 503, retryAfter: 0 })], []],
    ['answered wrongly', [packet('a', { status: null })], []],
  ])('finds %s', (what, sent, packets) => {
    const found = checkWritten(sent, stored(packets), RULES);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(`1 ${what}: `);
  });
});

describe('the check of events', () => {
  const of = (received: readonly ReceivedEvent[]): Client => ({ ...GOOD, received });
  const { received } = GOOD;
  const [a, m1, b, m2] = received as [ReceivedEvent, ReceivedEvent, ReceivedEvent, ReceivedEvent];
  test.each<[what: string, received: ReceivedEvent[], packets: string[], mark: string]>([
    ['1 received twice', [a, m1, b, m2, { ...b, position: positionOf(9) }], ['a', 'b'], 'm2'],
    ['1 out of order', [m1, b, a, m2], ['a', 'b'], 'm2'],
    ['1 out of order', [a, m1, b, { ...m2, position: undefined }], ['a', 'b'], 'm2'],
    ['1 stored, not received', [a, m1, b, m2], ['a', 'b', 'c'], 'm2'],
    ['1 received, not stored', [a, m1, b, m2], ['a'], 'm2'],
    ['1 a change missed or repeated', [a, b, m2], ['a', 'b'], 'm3'],
    ['1 acknowledged change not received', [a, b, m2], ['a', 'b'], 'm2'],
    [
      'a gap: history gone',
      [a, m1, b, m2, { ...m2, name: 'gap', payload: { reason: 'history gone' } }],
      ['a', 'b'],
      'm2',
    ],
  ])('finds %s', (what, events, packets, mark) => {
    const found = checkReceived(of(events), SENT, stored(packets, mark));
    expect(found.join('\n')).toContain(`client: ${what}`);
  });

  test('finds a missing change in the middle of a chain', () => {
    const m3: ReceivedEvent = { ...m2, payload: { id: 'o', before: { mark: 'm2' }, after: { mark: 'm3' } } };
    expect(checkReceived(of([a, m1, b, m3]), [], stored(['a', 'b'], 'm3'))).toEqual([
      'client: 1 a change missed or repeated: m1, then m2→m3',
    ]);
  });
});

test('numbers of each object that do not increase', () => {
  expect(checkCounted(['a/1', 'b/1', 'a/2', 'b/10', 'a/4'])).toEqual([]);
  expect(checkCounted(['a/1', 'a/3', 'b/9', 'a/2'])).toEqual(['1 out of order: a/2']);
});
