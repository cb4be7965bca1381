/** Clients that resume while others read slowly or send unknown positions, and the memory of the replay buffer. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { ADMIN, openListener, useService } from '../support/fixture.js';
import { openRaw, type Raw } from '../support/raw-socket.js';
import { until } from '../support/until.js';

// Small pages, so that there are many; and slow clients stay connected until the end of a test.
Object.assign(LIMITS, { recentPage: 20, historyPage: 100, pollEvents: 10_000, pollBytes: 64 * 1_048_576 });
Object.assign(LIMITS, { slowMs: 600_000, pingTimeoutMs: 600_000 });

const service = useService();
const endings: (() => void)[] = [];
let headers: { Authorization: string };
let token: string;

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  headers = { Authorization: `Bearer ${token}` };
  for (const id of ['car', 'flood', 'big']) await service.admin('POST', 'objects', { id, name: id });
});

afterEach(() => {
  for (const end of endings.splice(0)) end();
});

const post = async (id: string, packets: object): Promise<void> =>
  expect((await service.admin('POST', `objects/${id}/packets`, packets)).status).toBe(200);

async function positionNow(): Promise<string> {
  await service.settled();
  return (await service.admin('GET', 'events')).body.position;
}

async function slowSince(since: string): Promise<Raw> {
  const raw = await openRaw(service.url, headers, `EIO=3&since=${since}`);
  raw.pause();
  endings.push(() => raw.socket.terminate());
  return raw;
}

test('sends events from the oplog and from memory while other clients read slowly', async () => {
  const before = await positionNow();
  const note = 'x'.repeat(60_000);
  for (let n = 0; n < 24; n++) await post('flood', Array(20).fill({ note }));
  const slow = [await slowSince(before), await slowSince(before), await slowSince(before)];
  const recent = await positionNow();
  await post('car', { n: 'last' });
  await service.settled();
  slow.push(await slowSince(before));
  for (const since of [before, recent]) {
    const back = await openListener(service.url, token, { since, events: 'object-packet', objects: 'car' });
    endings.push(back.close);
    await until(() => back.received().some(({ payload }) => payload.n === 'last'), 'the last packet');
  }
  const cutOff = service.logLines.filter((line) => line.includes('"socket disconnected"'));
  expect(cutOff).toEqual([]);
});

test('sends every event once to a client that resumes after times without any client', async () => {
  const { replayBufferIdleMs } = LIMITS;
  Object.assign(LIMITS, { replayBufferIdleMs: 0 });
  endings.push(() => Object.assign(LIMITS, { replayBufferIdleMs }));
  const listen = async (since: string | null) => {
    const listener = await openListener(service.url, token, { ...(since !== null && { since }), objects: 'car' });
    endings.push(listener.close);
    return listener;
  };
  const numbersOf = ({ received }: Pick<Awaited<ReturnType<typeof listen>>, 'received'>) =>
    received().map(({ payload }) => payload.n);
  const first = await positionNow();
  await post('car', { n: 'none' });
  const middle = await positionNow();
  const present = await listen(null);
  await post('car', { n: 'one' });
  await until(() => numbersOf(present).length === 1, 'the first event');
  const early = await listen(first);
  const late = await listen(middle);
  await until(() => numbersOf(early).length === 2 && numbersOf(late).length === 1, 'the missed events');
  const gone = () => service.logLines.filter((line) => line.includes('"socket disconnected"')).length;
  const wasGone = gone();
  for (const { close } of [present, early, late]) close();
  await until(() => gone() === wasGone + 3, 'three clients to be disconnected');
  await post('car', { n: 'none again' });
  await service.settled();
  const back = await listen(first);
  await post('car', { n: 'after' });
  await until(() => numbersOf(back).includes('after'), 'the last event');
  expect(numbersOf(back)).toEqual(['none', 'one', 'none again', 'after']);
  expect([numbersOf(early), numbersOf(late)]).toEqual([['none', 'one'], ['one']]);
});

test('sends events to a client that resumes while it waits for the future positions of others, and then a gap to those', async () => {
  const { backfillAheadMs } = LIMITS;
  endings.push(() => Object.assign(LIMITS, { backfillAheadMs }));
  Object.assign(LIMITS, { backfillAheadMs: 600_000 });
  const since = await positionNow();
  await post('car', { n: 1 });
  await service.settled();
  const ahead = `gn${since.slice(2)}`;
  const openAhead = async () => {
    const opened = await Promise.all(
      Array.from({ length: 6 }, () => openListener(service.url, token, { since: ahead })),
    );
    endings.push(...opened.map(({ close }) => close));
    return opened;
  };
  const waiting = await openAhead();
  const back = await openListener(service.url, token, { since });
  endings.push(back.close);
  await until(() => back.received().length > 0, 'the event');
  expect(waiting.flatMap(({ received }) => received())).toEqual([]);
  for (const { close } of waiting) close();
  Object.assign(LIMITS, { backfillAheadMs: 100 });
  const given = await openAhead();
  await until(() => given.every(({ received }) => received().length > 0), 'a gap for each unknown position');
  for (const { take } of given) {
    expect(take()).toMatchObject([{ name: 'gap', payload: { reason: 'unknown position', from: ahead } }]);
  }
});

test('keeps changes of large objects in memory within a limit', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const heapBytes = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const beforeBytes = heapBytes();
  const rounds = 60;
  for (let n = 0; n < rounds; n++) {
    const body = { notes: Array.from({ length: 10 }, (_, at) => `${n} ${at}`.padEnd(50_000, 'x')) };
    expect((await service.admin('PATCH', 'objects/big', body)).status).toBe(200);
    await service.settled();
    service.changes.splice(0);
  }
  expect(heapBytes() - beforeBytes).toBeLessThan(rounds * 500_000);
});
