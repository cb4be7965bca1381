/** Clients that change their transport, and a feed that loses its place, in the middle of everything. */
import { createRequire } from 'node:module';
import { afterEach, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { io as io4 } from 'socket.io-client';
import { createFeed, type Feed } from '../../src/live/feed.js';
import type { Caller } from '../../src/model/access.js';
import type { Change } from '../../src/model/change.js';
import { type EventBatch, NO_FILTER } from '../../src/model/feed.js';
import { ADMIN, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

interface AnySocket {
  on(name: string, listener: (...args: { n: number; position: string }[]) => void): void;
  disconnect(): void;
  io: { engine: { transport: { name: string } } };
}
type Connect = (url: string, options: object) => AnySocket;

const require = createRequire(import.meta.url);
const GENERATIONS = [
  require('socket.io-client-1') as Connect,
  require('socket.io-client-2') as Connect,
  io4 as unknown as Connect,
];

const service = useService();
const endings: (() => void)[] = [];

afterEach(() => {
  for (const end of endings.splice(0)) end();
});

test('polling becomes a WebSocket in the middle of a burst: nothing is lost, doubled or out of order', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  await service.admin('POST', 'objects', { id: 'busy', name: 'Busy' });
  let [sent, isOver] = [0, false];
  const writing = (async () => {
    while (!isOver) {
      const packets = Array.from({ length: 10 }, () => ({ n: sent++, note: 'ü ☂ 𝄞 \u2028' }));
      expect((await service.admin('POST', 'objects/busy/packets', packets)).status).toBe(200);
    }
  })();
  const ears = GENERATIONS.flatMap((connect) =>
    Array.from({ length: 5 }, () => {
      const extraHeaders = { Authorization: `Bearer ${token}` };
      const socket = connect(service.url, { forceNew: true, reconnection: false, extraHeaders });
      const received: [n: number, position: string][] = [];
      let polled = 0;
      socket.on('object-packet', ({ n } = { n: -1, position: '' }, { position } = { n: -1, position: '' }) => {
        received.push([n, position]);
        if (socket.io.engine.transport.name === 'polling') polled++;
      });
      endings.push(() => socket.disconnect());
      return { received, isUpgraded: () => socket.io.engine.transport.name === 'websocket', polled: () => polled };
    }),
  );
  const areOn = () => ears.every(({ received, isUpgraded }) => isUpgraded() && received.length > 50);
  await until(areOn, 'all to have changed, and to hear', 30_000);
  isOver = true;
  await writing;
  await until(
    () => ears.every(({ received }) => received.at(-1)?.[0] === sent - 1),
    'all to have received the last',
    30_000,
  );
  for (const { received } of ears) {
    const first = received[0]?.[0] ?? -1;
    expect(received.map(([n]) => n)).toEqual(Array.from({ length: sent - first }, (_, at) => first + at));
    expect(new Set(received.map(([, position]) => position)).size).toBe(received.length);
  }
  // Some were told before they changed, or this shows nothing.
  expect(ears.some(({ polled }) => polled() > 0)).toBe(true);
}, 120_000);

/** A feed without a database: whoever asks sees the group `g`, in which every object is. */
function createLiveFeed(): Feed {
  const caller = { userId: 'u', groupId: 'g', roleId: null, credentials: ['* /*'], scopes: null } as unknown as Caller;
  const feed = createFeed({
    identify: async () => ({ ...caller, session: null, token: null }),
    findObjects: async () => [],
    findGroups: async () => [],
    openHistory: async () => null,
    findAudience: () => ['group:g'],
    prepareAudiences: async () => undefined,
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

test('a feed that has to begin anew ends its listeners at the position they have, not at the new one', async () => {
  const feed = createLiveFeed();
  const [before, after] = ['AAAAAAAAAA', 'BBBBBBBBBB'];
  feed.begin(before);
  const endedAt: string[] = [];
  const sink = { ...SILENT, end: () => void endedAt.push(listening.position()) };
  const listening = await feed.listen({ ...ASKED, sink });
  listening.start();
  feed.begin(after);
  expect([endedAt, feed.stats().listeners]).toEqual([[before], 0]);
});

test('what the database tells in one go is written in one go', async () => {
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
  await until(() => written.flat().length === changes.length, 'everything to be written');
  expect(written).toEqual([changes.map(({ position }) => position)]);
});
