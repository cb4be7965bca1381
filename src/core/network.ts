/** Maps addresses to networks, for limits per address. */

/**
 * Returns the network of one customer: an IPv4 address, or the /64 network of an IPv6 address. IPv4-mapped addresses count as
 * IPv4. Text that is not an address is returned unchanged.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const groups = groupsOf(address);
  if (groups === null) return address;
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped)
    return [6, 7].flatMap((index) => [(groups[index] as number) >> 8, (groups[index] as number) & 255]).join('.');
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** The eight groups of an IPv6 address (RFC 4291, 2.2); null for other text. */
function groupsOf(address: string): number[] | null {
  const text = address.replace(/%.*$/s, '').replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [head = '', tail, ...more] = text.split('::');
  const read = (part: string): number[] =>
    part === ''
      ? []
      : part.split(':').map((group) => (/^[0-9a-f]{1,4}$/i.test(group) ? Number.parseInt(group, 16) : -1));
  const before = read(head);
  const after = read(tail ?? '');
  const missing = 8 - before.length - after.length;
  if (more.length > 0 || (tail === undefined ? missing !== 0 : missing < 1)) return null;
  const groups = [...before, ...Array<number>(missing).fill(0), ...after];
  return groups.includes(-1) ? null : groups;
}
