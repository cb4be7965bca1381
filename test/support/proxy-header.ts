/** Headers of version 2 of the PROXY protocol, valid and invalid ones. */
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');

interface Header {
  /** Eight groups of IPv6, or IPv4; without it, the header has no address. */
  readonly source?: string;
  readonly version?: number;
  readonly command?: number;
  readonly family?: number;
  /** The number of bytes after the addresses. */
  readonly more?: number;
}

export function proxyHeader({ source, version = 2, command = 1, family, more = 0 }: Header): Buffer {
  const isVersion6 = source?.includes(':') ?? false;
  const address = isVersion6
    ? Buffer.from(
        (source ?? '')
          .split(':')
          .flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255]),
      )
    : Buffer.from((source ?? '').split('.').map(Number));
  const addresses = source === undefined ? Buffer.alloc(0) : Buffer.concat([address, address, Buffer.alloc(4, 7)]);
  const fixed = Buffer.from([version * 16 + command, family ?? (isVersion6 ? 0x21 : 0x11), 0, 0]);
  fixed.writeUInt16BE(addresses.length + more, 2);
  return Buffer.concat([SIGNATURE, fixed, addresses, Buffer.alloc(more)]);
}
