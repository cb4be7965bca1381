/** Which network an address is of, for whatever is counted by address. */

/**
 * What one customer of a provider has: an IPv4 address, or the 2^64 addresses of an IPv6 network. An IPv4 address within IPv6 counts as
 * itself; what is no address stays as it is.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const groups = groupsOf(address);
  if (groups === null) return address;
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return [6, 7].flatMap((at) => [(groups[at] as number) >> 8, (groups[at] as number) & 255]).join('.');
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
  const [before, after] = [read(head), read(tail ?? '')];
  const missing = 8 - before.length - after.length;
  if (more.length > 0 || (tail === undefined ? missing !== 0 : missing < 1)) return null;
  const groups = [...before, ...Array<number>(missing).fill(0), ...after];
  return groups.includes(-1) ? null : groups;
}
