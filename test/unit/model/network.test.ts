/** What counts as one address of a stranger: an IPv4 address, or a /64 of IPv6. */
import { isIPv6 } from 'node:net';
import { expect, test } from '@jest/globals';
import { networkOf } from '../../../src/core/network.js';
import { fc } from '../../support/runs.js';

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['::FFFF:c000:0207', '192.0.2.7'],
  ['0:0:0:0:0:ffff:c000:207', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:0001:2::', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:db8::1:2:3:4:5', '2001:db8:0:1::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['64:ff9b::192.0.2.7', '64:ff9b:0:0::/64'],
  ['unknown', 'unknown'],
  ['1:2', '1:2'],
  ['1::2::3', '1::2::3'],
  ['1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8:9'],
  ['x::1', 'x::1'],
])('counts %s as %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

test('counts every address of one /64 as one, however it is written', () => {
  const property = fc.property(fc.ipV6(), fc.ipV6(), (address, other) => {
    const network = networkOf(address);
    if (!network.endsWith('::/64')) return;
    const prefix = network.slice(0, -'::/64'.length);
    const host = groupsOfHost(other);
    for (const same of [`${prefix}:${host}`, `${prefix}:${host}`.toUpperCase(), `${prefix}::`]) {
      expect(isIPv6(same)).toBe(true);
      expect(networkOf(same)).toBe(network);
    }
  });
  fc.assert(property);
});

/** Four groups, made of any text. */
function groupsOfHost(text: string): string {
  const digits = `${text.replace(/[^0-9a-f]/gi, '')}1234567890abcdef`.slice(0, 16);
  return (digits.match(/.{4}/g) as string[]).join(':');
}
