/** Packets, which are most changes, are not decoded by those who only need commands. */
import { expect, test } from '@jest/globals';
import type { Change } from '../../../src/core/change.js';
import { createDownlinks, type DownlinkDeps } from '../../../src/downlinks/downlinks.js';

test('passes packets by the senders of commands without decoding them', () => {
  const decoded: string[] = [];
  const packet = new Proxy({ store: 'packets', kind: 'created' } as Change, {
    get(change, name) {
      if (name === 'store' || name === 'kind') return change[name];
      decoded.push(String(name));
      return null;
    },
  });
  createDownlinks({} as DownlinkDeps).apply(packet);
  expect(decoded).toEqual([]);
});
