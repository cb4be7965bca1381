/** The feed without a database: how it writes batches and ends its subscribers. */
import { afterEach, expect, test } from '@jest/globals';
import { pino } from 'pino';
import type { Caller } from '../../../src/core/access.js';
import type { Change } from '../../../src/core/change.js';
import { type EventBatch, NO_FILTER } from '../../../src/core/feed.js';
import { LIMITS } from '../../../src/core/limits.js';
import { createFeed, type Feed } from '../../../src/live/feed.js';
import { until } from '../../support/until.js';

// A busy machine would end a turn between two changes.
Object.assign(LIMITS, { turnMs: 60_000 });

const endings: (() => void)[] = [];

afterEach(() => {
  for (const end of endings.splice(0)) end();
});

/** A feed without a database: every caller sees the group `g`, which contains every object. */
function createLiveFeed(): Feed {
  const changedMs = { user: null, role: null };
  const createdMs = { user: 0, role: 0 };
  const caller = {
    userId: 'u',
    groupId: 'g',
    roleId: null,
    changedMs,
    createdMs,
    credentials: ['* /*'],
    scopes: null,
  } as unknown as Caller;
  const feed = createFeed({
    identify: async () => ({ ...caller, session: null, token: null }),
    wasAt: async () => true,
    deliveredTo: () => 'AAAAAAAAAA',
    deliveredToMs: () => 0,
    findObjects: async () => [],
    findGroups: async () => [],
    openHistory: async () => null,
    findAudience: () => ['group:g'],
    prepareAudiences: async () => undefined,
    isLive: () => true,
    maxSubscribers: { perUser: 1, perAddress: 1 },
    log: pino({ enabled: false }),
    now: () => 0,
  });
  endings.push(feed.stop);
  return feed;
}

const ASKED = { credentials: {}, address: 'a', filter: NO_FILTER, since: null };
const SILENT = {
  write: () => undefined,
  isDrained: () => true,
  gap: () => undefined,
  joined: () => undefined,
  end: () => undefined,
};

test('ends its subscribers at their own positions when it restarts at a new one', async () => {
  const feed = createLiveFeed();
  const before = 'AAAAAAAAAA';
  const after = 'BBBBBBBBBB';
  feed.begin(before);
  const endedAt: string[] = [];
  const sink = { ...SILENT, end: () => void endedAt.push(listening.position()) };
  const listening = await feed.listen({ ...ASKED, sink });
  listening.start();
  feed.begin(after);
  expect([endedAt, feed.stats().listeners]).toEqual([[before], 0]);
});

test('writes the changes of one reply of the database as one batch', async () => {
  const feed = createLiveFeed();
  feed.begin('AAAAAAAAAA');
  const written: string[][] = [];
  const write = (batch: EventBatch) => void written.push(batch.pieces('frame').map(({ position }) => position));
  (await feed.listen({ ...ASKED, sink: { ...SILENT, write } })).start();
  const changes = Array.from({ length: 10 }, (_, nth) => {
    const about = { store: 'packets', kind: 'created', id: String(nth), objectId: 'o', position: `AAAAAAAAB${nth}` };
    return { ...about, json: Buffer.from('{}') } as unknown as Change;
  });
  for (const change of changes) await feed.publish(change);
  await until(() => written.flat().length === changes.length, 'all changes to be written');
  expect(written).toEqual([changes.map(({ position }) => position)]);
});
