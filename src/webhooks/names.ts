/** Looks up host names. A name server that keeps silent delays neither other names nor the rest of the process. */

import { promises as dns, TIMEOUT } from 'node:dns';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';

export interface FoundAddress {
  readonly address: string;
  readonly family: number;
}

/** As `dns.lookup` is called for all addresses of a name. */
export type Resolve = (
  hostname: string,
  options: { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: FoundAddress[]) => void,
) => void;

export interface ResolveOptions {
  /** Name servers, `address:port`; those of the system if there are none. */
  readonly servers?: readonly string[];
  /** How long the first question to a server waits for its answer. */
  readonly tryMs?: number;
}

/**
 * Asks name servers over sockets. `dns.lookup` would wait in one of the few threads that files and the database driver share: it is
 * asked only for names that name servers do not know, such as those in /etc/hosts.
 */
export function createResolve(options: ResolveOptions = {}): Resolve {
  const lookUp = createSystemLookup();
  const find = async (hostname: string): Promise<FoundAddress[]> =>
    (hostname.includes('.') ? await askServers(hostname, options) : null) ?? (await lookUp(hostname));
  return (hostname, _options, callback) => {
    find(hostname).then(
      (addresses) => callback(null, addresses),
      (error) => callback(error, []),
    );
  };
}

/** The addresses, those of IPv4 first; null where there are none. Throws where a name server did not answer in time. */
async function askServers(
  hostname: string,
  { servers, tryMs = LIMITS.webhookNameTryMs }: ResolveOptions,
): Promise<FoundAddress[] | null> {
  // One for each name: it reads the settings of the system as they are now.
  const resolver = new dns.Resolver({ timeout: tryMs, tries: LIMITS.webhookNameTries });
  if (servers !== undefined) resolver.setServers(servers);
  const answers = [resolver.resolve4(hostname), resolver.resolve6(hostname)];
  try {
    await Promise.any(answers);
    await Promise.race([Promise.allSettled(answers), clock.wait(LIMITS.webhookOtherFamilyMs)]);
  } catch (error) {
    const late = (error as AggregateError).errors.find(({ code }) => code === TIMEOUT);
    if (late !== undefined) throw late;
    return null;
  }
  resolver.cancel();
  const ended = await Promise.allSettled(answers);
  return ended.flatMap((answer, nth) =>
    answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family: nth === 0 ? 4 : 6 })) : [],
  );
}

/** Looks up names as the system does, one at a time: also one that nobody waits for any more still occupies its thread. */
function createSystemLookup(): (hostname: string) => Promise<FoundAddress[]> {
  let last: Promise<unknown> = Promise.resolve();
  return (hostname) => {
    const askedMs = clock.steadyMs();
    const found = last.then(() => {
      // The request has ended: no thread is occupied for it.
      if (clock.steadyMs() - askedMs > LIMITS.webhookAnswerMs) throw new Error('the name was not looked up in time');
      return dns.lookup(hostname, { all: true });
    });
    last = found.catch(() => undefined);
    return found;
  };
}
