/** Which packets are the same one, sent again, where devices identify them in a form of their own. */
import { describe, expect, test } from '@jest/globals';
import { type Declarations, declarationsOf } from '../../../src/core/model.js';
import { parseBatch } from '../../../src/packets/packet.js';

const NOW = 1_750_000_000_000;
const ID = '65a00000000000000000000a';
const NONE = declarationsOf(null);
const DECLARED = declarationsOf({ children: [{ type: 'argument', id: 'speed', dataType: 'number' }] });
const parseMessages = (body: unknown, declared: Declarations, nowMs: number) =>
  parseBatch(body, declared, nowMs).messages;

describe('an identifier of another form', () => {
  const idOf = (body: object) => parseBatch(body, NONE, NOW).messages[0]?.id;

  test.each<[_id: unknown]>([['2b021f63'], ['x'.repeat(128)], [5], [0], [-1.5], ['é 1'], [`${ID}0`]])(
    'is kept as messageId, and identifies the packet: %j',
    (_id) => {
      const [message] = parseMessages({ _id, n: 1 }, NONE, NOW);
      expect(message?.parameters).toEqual({ n: 1, messageId: _id });
      expect(message?.id).toMatch(/^[0-9a-f]{24}$/);
      expect(idOf({ _id, n: 1 })).toBe(message?.id);
      expect(idOf({ _id: `x${_id}`.slice(0, 100), n: 1 })).not.toBe(message?.id);
    },
  );

  test.each<[what: string, other: object]>([
    ['a value', { n: 2 }],
    ['the type of a value', { n: '1' }],
    ['a further field', { n: 1, door: 'open' }],
    ['a member', { n: 1, a: { b: 2 } }],
    ['its time', { n: 1, time: NOW }],
    ['online', { n: 1, online: false }],
    ['a field that cannot be stored', { n: 1, $x: 1 }],
    ['no parameters', {}],
  ])('identifies with the whole packet, so that a counter that begins anew hides none: %s', (_, other) => {
    for (const _id of [1, '1', 'boot-1']) {
      expect(idOf({ _id, ...other })).not.toBe(idOf({ _id, n: 1 }));
      expect(idOf({ _id, ...other })).toBe(idOf({ _id, ...other }));
    }
  });

  test('identifies a packet as it was sent, whatever the model makes of it', () => {
    const sent = { _id: 1, n: 1, speed: '50' };
    expect(parseMessages(sent, DECLARED, NOW)[0]?.id).toBe(idOf(sent));
  });

  test('identifies a packet with a field that is nested far too deep', () => {
    const deep = JSON.parse(`{"_id":1,"n":1,"deep":${'['.repeat(30_000)}${']'.repeat(30_000)}}`);
    expect(idOf(deep)).toMatch(/^[0-9a-f]{24}$/);
  });

  test('tells text from a number, keeps a messageId of the device, and adds none to a report of presence', () => {
    expect(idOf({ _id: '5', n: 1 })).not.toBe(idOf({ _id: 5, n: 1 }));
    expect(parseMessages({ _id: 'a', messageId: 'b' }, NONE, NOW)[0]?.parameters).toEqual({ messageId: 'b' });
    expect(parseMessages({ _id: 'a', online: false }, NONE, NOW)[0]?.parameters).toEqual({});
  });
});
