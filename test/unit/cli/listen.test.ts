/** How `vigil listen` shows events. */
import { expect, test } from '@jest/globals';
import { formatCounts, formatEvent, objectOf } from '../../../src/cli/event-text.js';

const NOW = new Date(2026, 0, 2, 13, 4, 5);
const ID = '0123456789abcdef01234567';
const PACKET = { _id: 'p', _ts: 1, time: NOW.getTime(), online: true, _oid: ID, _gid: 'g', id: 'car-1', lat: 48.1 };

interface Shown {
  readonly event: string;
  readonly data: object;
}

const live = (event: string, data: object): Shown => ({ event, data });

test.each<[string, Shown, string]>([
  ['a packet', live('object-packet', { ...PACKET, on: true }), '13:04:05  car-1  lat 48.1  on true'],
  ['an offline packet', live('object-packet', { ...PACKET, online: false }), '13:04:05  car-1  online false  lat 48.1'],
  [
    'an old packet',
    live('object-packet', { ...PACKET, time: new Date(2014, 8, 10, 6, 54, 7).getTime() }),
    '13:04:05  car-1  lat 48.1  (2014-09-10 06:54:07)',
  ],
  [
    'an update',
    live('object-update', { id: ID, before: { status: 'a' }, after: { status: 'b' } }),
    '13:04:05  car-1  status: "a" → "b"',
  ],
  [
    'a field that is new',
    live('object-update', { id: ID, before: {}, after: { config: { a: 1 } } }),
    '13:04:05  car-1  config: none → {"a":1}',
  ],
  [
    'a command',
    live('object-command-req', { id: ID, command: { command: 'open', params: { door: 1 }, status: 'queued' } }),
    '13:04:05  car-1  open {"door":1}: queued',
  ],
  [
    'the answer to one',
    live('object-command-err', { id: ID, command: { command: 'open', params: {}, status: 'failed', result: 'no' } }),
    '13:04:05  car-1  open {}: failed "no"',
  ],
  ['a gap', live('gap', {}), '13:04:05  gap: events before this moment are lost {}'],
  ['an unknown event', live('news', { a: 1 }), '13:04:05  news  {"a":1}'],
])('formats %s', (_what, event, line) => expect(formatEvent(event, 'car-1', NOW)).toBe(line));

test('removes control characters from values of devices', () => {
  const event = live('object-packet', { ...PACKET, 'k\u001b[2J': '\u001b[31m\u009b1m\n' });
  expect(formatEvent(event, 'car\u0007\n', NOW)).not.toMatch(/\p{Cc}/u);
});

test('finds the object of packets and updates', () => {
  expect(objectOf(live('object-packet', PACKET))).toBe(ID);
  expect(objectOf(live('object-update', { id: ID }))).toBe(ID);
  expect(objectOf(live('gap', {}))).toBe('');
});

test('counts the busiest object first', () => {
  const counts = new Map(Object.entries({ b: 1, a: 2 }));
  expect(formatCounts(counts)).toBe('3 events\n  a: 2\n  b: 1');
  expect(formatCounts(new Map())).toBe('0 events');
});
