/** Which addresses webhooks may be sent to: public ones, and those of networks that the operator allows. Pure. */
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Network = readonly [Address, number];

/** Refuses every network: what answers there hands out credentials of the machine, or serves its cloud. */
const NEVER = [
  '168.63.129.16/32',
  '169.254.169.254/32',
  '169.254.170.2/32',
  '100.100.100.200/32',
  'fd00:ec2::254/128',
].map((text) => ipaddr.parseCIDR(text));
/** All of IPv6 that has been given to anybody to be reached at. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3');

/** A network as text, `10.0.0.0/8`, or a single address; null for anything else. */
function parseNetwork(text: string): Network | null {
  try {
    if (text.includes('/')) return ipaddr.parseCIDR(text);
    const address = ipaddr.parse(text);
    return [address, address.kind() === 'ipv4' ? 32 : 128];
  } catch {
    return null;
  }
}

const isIn = (address: Address, [network, bits]: Network): boolean =>
  address.kind() === network.kind() && address.match(network as never, bits as never);

/** Whether requests may be sent to the address. */
export function isAllowedAddress(text: string, allowed: readonly Network[]): boolean {
  const bare = text.replace(/%.*$/, '');
  if (!ipaddr.isValid(bare)) return false;
  // An IPv4 address within an IPv6 one is the IPv4 address.
  const address = ipaddr.process(bare);
  if (NEVER.some((network) => isIn(address, network))) return false;
  if (allowed.some((network) => isIn(address, network))) return true;
  if (address.range() !== 'unicast') return false;
  return address.kind() === 'ipv4' || isIn(address, GLOBAL_IPV6);
}

/** Networks, separated by commas; null where one of them is none. */
export function parseNetworks(text: string): Network[] | null {
  const found = text.split(',').flatMap((part) => (part.trim() === '' ? [] : [parseNetwork(part.trim())]));
  const good = found.filter((network) => network !== null);
  return good.length === found.length ? good : null;
}
