/** The header that a load balancer puts before a connection: whole, in parts, and forged. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { parseProxyHeader } from '../../../src/devices/mqtt/proxy-protocol.js';
import { proxyHeader } from '../../support/proxy-header.js';
import { fc } from '../../support/runs.js';

const text = (line: string): Buffer => Buffer.from(line, 'latin1');
const v6 = '2001:db8:0:0:0:0:0:1';

const SOUND: [what: string, header: Buffer, address: string | null][] = [
  ['version 1, IPv4', text('PROXY TCP4 192.0.2.7 198.51.100.1 56324 1883\r\n'), '192.0.2.7'],
  ['version 1, IPv6', text('PROXY TCP6 2001:db8::1 2001:db8::2 56324 1883\r\n'), '2001:db8::1'],
  ['version 1, of an unknown client', text('PROXY UNKNOWN\r\n'), null],
  [
    'version 1, of an unknown client, with optional fields',
    text('PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n'),
    null,
  ],
  ['version 2, IPv4', proxyHeader({ source: '192.0.2.7' }), '192.0.2.7'],
  ['version 2, IPv6', proxyHeader({ source: v6 }), v6],
  ['version 2, with more than addresses', proxyHeader({ source: '192.0.2.7', more: 60 }), '192.0.2.7'],
  ['version 2, the balancer itself', proxyHeader({ source: '192.0.2.7', command: 0 }), null],
  ['version 2, the balancer itself, without addresses', proxyHeader({ command: 0, family: 0 }), null],
  ['version 2, of an unknown client', proxyHeader({ family: 0 }), null],
  ['version 2, as long as it may be', proxyHeader({ family: 0, more: LIMITS.mqttProxyHeaderBytes - 16 }), null],
];

describe.each(SOUND)('%s', (_what, header, address) => {
  test('is parsed with any following bytes', () => {
    for (const rest of ['', '\x10', 'PROXY ', '\r\n']) {
      const parsed = parseProxyHeader(Buffer.concat([header, text(rest)]));
      expect(parsed).toEqual({ bytes: header.length, address });
    }
  });

  test('needs more bytes while it is incomplete', () => {
    for (let length = 0; length < header.length; length++) {
      expect(parseProxyHeader(header.subarray(0, length))).toBeNull();
    }
  });
});

test.each<[string, Buffer]>([
  ['MQTT', text('\x10\x7f\x00\x04MQTT')],
  ['TLS', text('\x16\x03\x01\x02\x00')],
  ['another protocol', text('GET / HTTP/1.1\r\n')],
  ['small letters', text('proxy TCP4 192.0.2.7 198.51.100.1 1 1\r\n')],
  ['no addresses', text('PROXY TCP4\r\n')],
  ['an address too few', text('PROXY TCP4 192.0.2.7 1 1\r\n')],
  ['an address of another family', text('PROXY TCP4 2001:db8::1 2001:db8::2 1 1\r\n')],
  ['a name', text('PROXY TCP4 localhost localhost 1 1\r\n')],
  ['an address that is none', text('PROXY TCP4 192.0.2.256 198.51.100.1 1 1\r\n')],
  ['a port that is none', text('PROXY TCP4 192.0.2.7 198.51.100.1 65536 1\r\n')],
  ['a port with a zero in front', text('PROXY TCP4 192.0.2.7 198.51.100.1 01 1\r\n')],
  ['two spaces', text('PROXY  TCP4 192.0.2.7 198.51.100.1 1 1\r\n')],
  ['UDP', text('PROXY UDP4 192.0.2.7 198.51.100.1 1 1\r\n')],
  ['a line without end', text(`PROXY UNKNOWN ${'x'.repeat(100)}`)],
  ['version 3', proxyHeader({ source: '192.0.2.7', version: 3 })],
  ['an unknown command', proxyHeader({ source: '192.0.2.7', command: 2 })],
  ['datagrams', proxyHeader({ source: '192.0.2.7', family: 0x12 })],
  ['a path', proxyHeader({ source: '192.0.2.7', family: 0x31, more: 216 })],
  ['addresses cut short', proxyHeader({ family: 0x11, more: 11 })],
  ['IPv6 addresses cut short', proxyHeader({ family: 0x21, more: 35 })],
  ['more than is taken', proxyHeader({ family: 0, more: LIMITS.mqttProxyHeaderBytes - 15 })],
])('refuses %s', (_what, bytes) => {
  expect(() => parseProxyHeader(bytes)).toThrow(/PROXY protocol/);
});

test('refuses, parses or waits for random bytes, and never waits beyond the maximum size', () => {
  const starts = fc.constantFrom(text(''), text('PROXY TCP4 '), proxyHeader({ source: v6 }).subarray(0, 13));
  const property = fc.property(starts, fc.uint8Array({ maxLength: 2_000 }), (start, rest) => {
    const bytes = Buffer.concat([start, rest]);
    let parsed: ReturnType<typeof parseProxyHeader>;
    try {
      parsed = parseProxyHeader(bytes);
    } catch (error) {
      expect(String(error)).toContain('PROXY protocol');
      return;
    }
    if (parsed === null) expect(bytes.length).toBeLessThan(LIMITS.mqttProxyHeaderBytes);
    else expect(parsed.bytes).toBeLessThanOrEqual(bytes.length);
  });
  fc.assert(property, { numRuns: 2_000 });
});
