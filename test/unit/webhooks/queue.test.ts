/** The queue of a webhook while a read of its messages takes long: what happens meanwhile must not be lost. */
import { expect, test } from '@jest/globals';
import type { Database } from '../../../src/platform/mongo/driver/client.js';
import type { OwnedPartition } from '../../../src/processing/processor.js';
import { type Delivery, FIRST_REPLAYED_NUMBER } from '../../../src/webhooks/deliveries.js';
import { block, createQueue, offer, type Queue, recheck, startNext, unblock } from '../../../src/webhooks/queue.js';
import { until } from '../../support/until.js';

const [A, B] = ['a'.repeat(24), 'b'.repeat(24)] as const;
const LONG_MS = 1e9;
const LATEST = FIRST_REPLAYED_NUMBER - 1;

interface Read {
  readonly exceptObjects: readonly string[];
  readonly answer: (rows: readonly object[]) => void;
}

interface Send {
  readonly ids: readonly string[];
  readonly end: (waitMs: number | null) => void;
  readonly stored: () => void;
}

/** A row of the outbox, as the database gives it. */
const rowOf = (number: number, object: string) => ({
  _id: String(number).padStart(24, '0'),
  number,
  object,
  handler: 'f'.repeat(24),
  partition: 0,
  event: 'packet',
  body: '{}',
  attempts: 0,
  time: 0,
});

/** The same message as the engine offers it. */
function deliveryOf(number: number, objectId: string): Delivery {
  const { _id: id, handler: handlerId, object: _, time: timeMs, ...rest } = rowOf(number, objectId);
  return { ...rest, id, handlerId, objectId, timeMs, batch: null, handover: null };
}

/** A queue whose reads of the database, and whose sends, end when the test says so. */
function createSlowQueue({ committedNumber = LATEST } = {}) {
  const reads: Read[] = [];
  const sends: Send[] = [];
  const find = (filter: { object?: { $nin: readonly unknown[] } }) => ({
    toArray: () =>
      new Promise((answer) => {
        reads.push({ exceptObjects: (filter.object?.$nin ?? []).map(String), answer });
      }),
  });
  const start = (queue: Queue): void => {
    while (startNext(queue));
  };
  const queue = createQueue(
    {
      database: { db: { collection: () => ({ find }) } } as unknown as Database,
      owned: { index: 0, isOwned: () => true, committedNumber: () => committedNumber } as OwnedPartition,
      handlerId: 'f'.repeat(24),
      atOnce: () => 8,
      isBatch: () => false,
      mayStart: () => true,
      askTurn: start,
      takeBytes: () => true,
      send: (group: readonly Delivery[], end) =>
        new Promise((stored) => void sends.push({ ids: group.map(({ id }) => id), end, stored })),
      log: { warn: () => undefined },
    },
    true,
  );
  const read = async (nth: number): Promise<Read> => {
    await until(async () => reads.length > nth, `read ${nth}`);
    return reads[nth] as Read;
  };
  const sent = async (nth: number): Promise<Send> => {
    await until(async () => sends.length > nth, `send ${nth}`);
    return sends[nth] as Send;
  };
  return { queue, read, sent, sends };
}

test('reads the message of an object again whose pause ended while others were read', async () => {
  const { queue, read, sent } = createSlowQueue();
  block(queue, A, LONG_MS);
  recheck(queue);
  const others = await read(0);
  expect(others.exceptObjects).toEqual([A]);
  unblock(queue, A);
  others.answer([]);
  const retry = await read(1);
  expect(retry.exceptObjects).toEqual([]);
  retry.answer([rowOf(1, A)]);
  expect((await sent(0)).ids).toEqual([rowOf(1, A)._id]);
});

test('reads further messages once those in memory were sent while others were read', async () => {
  const { queue, read, sent } = createSlowQueue();
  recheck(queue);
  (await read(0)).answer([rowOf(1, A), rowOf(2, A)]);
  const first = await sent(0);
  // The second one waits for the first one: messages of other objects are looked for.
  recheck(queue);
  const others = await read(1);
  expect(others.exceptObjects).toEqual([A]);
  first.end(null);
  first.stored();
  const second = await sent(1);
  second.end(null);
  second.stored();
  await until(async () => queue.known.size === 0);
  others.answer([]);
  (await read(2)).answer([rowOf(3, A)]);
  expect((await sent(2)).ids).toEqual([rowOf(3, A)._id]);
});

test('sends no later message of an object before the failure of the first one is stored', async () => {
  const { queue, read, sent, sends } = createSlowQueue();
  recheck(queue);
  (await read(0)).answer([rowOf(1, A), rowOf(2, A), rowOf(3, B)]);
  const failed = await sent(0);
  failed.end(LONG_MS);
  // Somebody wants it sent now, while its failure is being stored.
  unblock(queue, A);
  const again = await read(1);
  again.answer([rowOf(1, A), rowOf(2, A), rowOf(3, B)]);
  await until(async () => !queue.isLoading);
  expect(sends.map(({ ids }) => ids)).toEqual([[rowOf(1, A)._id], [rowOf(3, B)._id]]);
  failed.stored();
  await until(async () => queue.blocked.get(A) !== undefined);
  unblock(queue, A);
  (await read(2)).answer([rowOf(1, A), rowOf(2, A)]);
  expect((await sent(2)).ids).toEqual([rowOf(1, A)._id]);
});

test('sends a message once that was read before its commit was answered', async () => {
  const { queue, read, sent, sends } = createSlowQueue({ committedNumber: 1 });
  recheck(queue);
  const replayed = rowOf(FIRST_REPLAYED_NUMBER, B);
  (await read(0)).answer([rowOf(1, A), rowOf(2, B), replayed]);
  expect((await sent(0)).ids).toEqual([rowOf(1, A)._id]);
  expect((await sent(1)).ids).toEqual([replayed._id]);
  // The commit was answered.
  offer(queue, [deliveryOf(2, B)]);
  const { end, stored } = await sent(1);
  end(null);
  stored();
  expect((await sent(2)).ids).toEqual([rowOf(2, B)._id]);
  expect(sends).toHaveLength(3);
});
