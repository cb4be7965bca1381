/** A client on another machine: one with a network of its own, and a cable to the engine's. */
import { existsSync, readFileSync } from 'node:fs';
import type { Engine } from './engine.js';

const IF_INET6 = '/proc/net/if_inet6';
const NETWORKS = [
  { client: '198.51.100.2', engine: '198.51.100.1', bits: 24 },
  { client: 'fd00:76::2', engine: 'fd00:76::1', bits: 64 },
];

/** Whether this machine has IPv6, and the program that lays cables. */
export const HAS_IPV6 =
  existsSync(IF_INET6) &&
  readFileSync(IF_INET6, 'utf8') !== '' &&
  ['/sbin/ip', '/usr/sbin/ip', '/usr/bin/ip'].some(existsSync);

const CLIENT = `
  const [url, body] = process.argv.slice(1);
  const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body };
  fetch(url, init).then(({ status }) => console.log(status), ({ cause }) => console.log(String(cause)));
`;

/** Sends one request for each of IPv4 and IPv6 over TLS; gives the answers, and the addresses they were sent from. */
export async function requestFromOutside(
  engine: Engine,
  port: number,
  path: string,
  body: object,
): Promise<{ address: string; status: number }[]> {
  const lines = [
    'unshare --net sleep 600 & client=$!',
    'until [ "$(readlink /proc/$client/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done',
    'at_client() { nsenter --net=/proc/$client/ns/net -- "$@"; }',
    'ip link add cable type veth peer name cable netns $client',
    'ip link set cable up; at_client ip link set cable up',
    ...NETWORKS.flatMap(({ client, engine: own, bits }) => {
      const options = own.includes(':') ? 'nodad' : '';
      return [
        `ip addr add ${own}/${bits} dev cable ${options}`,
        `at_client ip addr add ${client}/${bits} dev cable ${options}`,
      ];
    }),
    ...NETWORKS.map(({ engine: own }) => {
      const host = own.includes(':') ? `[${own}]` : own;
      return `NODE_TLS_REJECT_UNAUTHORIZED=0 at_client '${process.execPath}' -e "$0" "https://${host}:${port}${path}" "$1"`;
    }),
    'kill $client; ip link del cable 2> /dev/null || true',
  ];
  const said = await engine.inside('sh', '-c', `set -e\n${lines.join('\n')}`, CLIENT, JSON.stringify(body));
  const statuses = said.split('\n').map(Number);
  return NETWORKS.map(({ client }, at) => ({ address: client, status: statuses[at] ?? 0 }));
}
