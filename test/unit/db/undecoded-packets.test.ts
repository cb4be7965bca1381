/** Packets, which are most changes, are not decoded by those whom other changes concern. */
import { expect, test } from '@jest/globals';
import type { Change } from '../../../src/core/change.js';
import { createDownlinks, type DownlinkDeps } from '../../../src/downlinks/downlinks.js';
import type { FanOut } from '../../../src/live/fanout.js';
import { createSubscriptions, type SubscriptionOptions } from '../../../src/live/subscriptions.js';

/** Its other members are read from bytes. */
const CHEAP: ReadonlySet<unknown> = new Set(['store', 'kind']);

test.each([
  ['the senders of commands', createDownlinks({} as DownlinkDeps)],
  ['the subscribers of live events', createSubscriptions({} as SubscriptionOptions, {} as FanOut)],
])('passes packets by %s without decoding them', async (_, { apply }) => {
  const decoded: unknown[] = [];
  const packet = new Proxy({ store: 'packets', kind: 'created' } as Change, {
    get(change, name) {
      if (!CHEAP.has(name)) decoded.push(name);
      return Reflect.get(change, name);
    },
  });
  await apply(packet);
  expect(decoded).toEqual([]);
});
