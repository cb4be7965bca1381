/** Finds the addresses of receivers, and refuses those that webhooks may not be sent to. */

import { isIP, type LookupFunction } from 'node:net';
import { badRequest } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import { isAllowedAddress, type Network } from './address-policy.js';
import type { FoundAddress, Resolve } from './names.js';

/** The reason for which nothing was connected to. */
class AddressError extends Error {
  readonly code = 'ERR_WEBHOOK_ADDRESS';
}

const REFUSED = 'the address is not public, and not in WEBHOOK_NETWORKS';

/** The addresses of a host name that requests may be sent to. Throws `AddressError` where it has others alone. */
async function findAddresses(hostname: string, allowed: readonly Network[], resolve: Resolve): Promise<FoundAddress[]> {
  const literal = literalOf(hostname);
  const found = literal === null ? await lookUp(hostname, resolve) : [{ address: literal, family: isIP(literal) }];
  const good = found.filter(({ address }) => isAllowedAddress(address, allowed));
  if (good.length === 0) throw new AddressError(REFUSED);
  return good;
}

function literalOf(hostname: string): string | null {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(bare) === 0 ? null : bare;
}

const lookUp = (hostname: string, resolve: Resolve): Promise<FoundAddress[]> =>
  new Promise((fulfil, reject) => {
    resolve(hostname, { all: true }, (error, addresses) => (error === null ? fulfil(addresses) : reject(error)));
  });

/** For a connection: it connects to the checked addresses, so that no later answer of a name server counts. */
export function createLookup(allowed: readonly Network[], resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    findAddresses(hostname, allowed, resolve).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all) callback(null, addresses);
        else callback(null, first?.address ?? '', first?.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    );
  };
}

/** An address that is written into the URL is not looked up: it is checked here. */
export function checkLiteral(hostname: string, allowed: readonly Network[]): void {
  const literal = literalOf(hostname);
  if (literal !== null && !isAllowedAddress(literal, allowed)) throw new AddressError(REFUSED);
}

/**
 * Throws a 400 where nothing would be sent to the address. A name that is not known, or that nobody answers for in time, may be
 * known later.
 */
export async function checkReceiver(
  url: string,
  allowed: readonly Network[],
  resolve: Resolve,
  name = 'url',
): Promise<void> {
  const late = clock.wait(LIMITS.webhookResolveMs, { ref: false });
  try {
    await Promise.race([findAddresses(new URL(url).hostname, allowed, resolve), late]);
  } catch (error) {
    if (error instanceof AddressError) throw badRequest(`${name}: ${error.message}`);
  }
}
