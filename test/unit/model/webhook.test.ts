/** Which settings of a webhook are refused, which addresses it may be sent to, and what `only` leaves of an event. */
import { describe, expect, test } from '@jest/globals';
import { parseWebhook, pickData } from '../../../src/core/webhook.js';
import { isAllowedAddress, parseNetworks } from '../../../src/webhooks/address-policy.js';

describe('a handler', () => {
  test.each<[fields: object, field: RegExp]>([
    [{ url: 'ftp://a.example' }, /^url: /],
    [{ url: 'nonsense' }, /^url: /],
    [{ url: 5 }, /^url: /],
    [{ url: 'https://user@a.example' }, /^url: .*user name/],
    [{ url: 'https://user:pass@a.example' }, /^url: .*user name/],
    [{ url: `https://a.example/${'x'.repeat(3_000)}` }, /^url: at most/],
    [{ events: 'object-packet' }, /^events: /],
    [{ events: ['nothing'] }, /^events: /],
    [{ objects: [1] }, /^objects: /],
    [{ model: 'x' }, /^model: /],
    [{ labels: {} }, /^labels: /],
    [{ only: [''] }, /^only: /],
    [{ mode: 'each' }, /^mode: /],
    [{ active: 'yes' }, /^active: /],
    [{ headers: ['a'] }, /^headers: /],
    [{ headers: { 'content-length': '1' } }, /^headers.content-length: /],
    [{ headers: { 'Webhook-Id': '1' } }, /^headers.webhook-id: /],
    [{ headers: { 'x-a': 'a\r\nb: c' } }, /^headers.x-a: /],
    [{ headers: { 'a b': 'c' } }, /^headers: /],
  ])('is refused with %j', (fields, field) => {
    expect(() => parseWebhook({ url: 'https://a.example', ...(fields as object) })).toThrow(field);
  });

  test('is not checked without a url', () => {
    expect(parseWebhook({ userCode: 'while (true);', events: 'x', mode: 7, url: null })).toBeNull();
  });
});

describe('an address', () => {
  test.each([
    '127.0.0.1',
    '127.1.2.3',
    '0.0.0.0',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '192.0.2.1',
    '198.18.0.1',
    '203.0.113.9',
    '240.0.0.1',
    '168.63.129.16',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::127.0.0.1',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd00:ec2::254',
    'ff02::1',
    '2002:7f00:1::',
    '2001::1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::1',
    '2001:db8::1',
    '100::1',
    'fec0::1',
    'localhost',
    '',
    '127.1',
    '0x7f000001',
  ])('is refused: %s', (address) => expect(isAllowedAddress(address, [])).toBe(false));

  test.each(['8.8.8.8', '1.1.1.1', '2606:4700::1111', '::ffff:8.8.8.8'])('is public: %s', (address) => {
    expect(isAllowedAddress(address, [])).toBe(true);
  });

  test('is refused for metadata services, even in an allowed network', () => {
    const networks = parseNetworks('10.0.0.0/8, 169.254.0.0/16, fd00::/8, 0.0.0.0/0');
    expect(isAllowedAddress('10.9.9.9', networks ?? [])).toBe(true);
    for (const address of ['169.254.169.254', '168.63.129.16', 'fd00:ec2::254', '::ffff:169.254.169.254']) {
      expect(isAllowedAddress(address, networks ?? [])).toBe(false);
    }
  });

  test('refuses invalid networks in the configuration', () => {
    expect(['10.0.0.0/99', 'intranet', '10.0.0.1/'].map(parseNetworks)).toEqual([null, null, null]);
  });
});

describe('only', () => {
  const packet = { _id: 'p', _oid: 'o', id: 'own', time: 1, _ts: 2, speed: 3, engine: { rpm: 4, oil: 5 } };
  test('keeps the named fields of a packet, also nested ones, and those that identify it', () => {
    expect(pickData(packet, ['engine.rpm', 'engine.none'])).toEqual({
      _id: 'p',
      _oid: 'o',
      id: 'own',
      time: 1,
      engine: { rpm: 4 },
    });
  });
  test('drops an event that has none of the fields', () => {
    expect(pickData(packet, ['height'])).toBeNull();
    expect(pickData({ id: 'o', before: { name: 'a' }, after: { name: 'b' } }, ['status'])).toBeNull();
  });
});
