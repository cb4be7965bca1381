/** How the history is stored: what it takes on disk is most of what an installation needs. */
import { expect, test } from '@jest/globals';
import type { Document } from 'mongodb';
import { useService } from '../support/fixture.js';

const service = useService();

test('compresses packets and all of their indexes with zstd', async () => {
  const packets = service.client.db().collection('packets');
  const [stored] = await packets.aggregate([{ $collStats: { storageStats: {} } }]).toArray();
  const { wiredTiger, indexDetails } = stored?.storageStats ?? {};
  const kinds = [wiredTiger, ...Object.values<Document>(indexDetails)].map(({ creationString }) => creationString);
  expect(kinds).toHaveLength(3);
  for (const kind of kinds) expect(kind).toContain('block_compressor=zstd');
});
