/** An installation from before packets were compressed, and packets that come and go while they are. */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from '@jest/globals';
import type { Db, Document } from 'mongodb';
import type { MqttClient } from 'mqtt';
import { ADMIN, type Listener, openListener, type ReceivedEvent, type TestService } from './fixture.js';
import { connectDevice, createObject } from './mqtt-device.js';
import { until } from './until.js';

const SNAPPY = { storageEngine: { wiredTiger: { configString: 'block_compressor=snappy' } } };
const SENDERS = ['first', 'second', 'third'];
const PAST_MS = Date.UTC(2020, 0, 1);
const SLICE_MS = 100;
const END_MS = 90_000;

/** Creates the collection of packets as former versions did, before Vigil starts for the first time. */
export const createUncompressed = (db: Db): Promise<unknown> => db.createCollection('packets', SNAPPY);

/** What is stored of the compression. */
export async function findCompression(db: Db): Promise<Document | null> {
  return db.collection<{ _id: string }>('installation').findOne({ _id: 'compression' });
}

const STAGES = ['requested', 'copying', 'comparing', 'exchanging', 'done'];
const ENDS = ['done', 'stopped', 'failed'];

/** Waits until the compression has reached a stage, or that end. */
export async function waitForStage(db: Db, stage: string): Promise<void> {
  let state: Document | null = null;
  const hasReached = async (): Promise<boolean> => {
    state = await findCompression(db);
    if (state?.stage === stage) return true;
    if (ENDS.includes(stage) && ENDS.includes(state?.stage)) throw new Error(`it ended otherwise than ${stage}`);
    return STAGES.includes(stage) && STAGES.indexOf(state?.stage) >= STAGES.indexOf(stage);
  };
  await until(hasReached, `the stage ${stage}`, END_MS).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(state)}`);
  });
}

export interface Collections {
  /** The kind of compression of the packets and of each index. */
  readonly kinds: readonly string[];
  readonly indexes: readonly string[];
  readonly copies: number;
  readonly validator: unknown;
}

/** The collections as they are. */
export async function findCollections(db: Db): Promise<Collections> {
  const all = await db.listCollections({ name: /^packets/ }).toArray();
  const [stored] = await db
    .collection('packets')
    .aggregate([{ $collStats: { storageStats: {} } }])
    .toArray();
  const { wiredTiger, indexDetails, indexSizes } = stored?.storageStats ?? {};
  const kinds = [wiredTiger, ...Object.values<Document>(indexDetails)].map(
    ({ creationString }) => /block_compressor=(\w*)/.exec(creationString)?.[1] ?? '',
  );
  const packets = all.find(({ name }) => name === 'packets') as Document | undefined;
  return {
    kinds,
    indexes: Object.keys(indexSizes).sort(),
    copies: all.length - 1,
    validator: packets?.options.validator,
  };
}

/** What is there after a complete compression. */
export const COMPRESSED: Collections = {
  kinds: ['zstd', 'zstd', 'zstd'],
  indexes: ['_id_', '_oid_1_time_1__ts_1'],
  copies: 0,
  validator: undefined,
};

/** Packets that are sent and removed all the time. */
export interface Traffic {
  /** Removes another slice of the history. */
  removeSome(): Promise<void>;
  /** Ends it, however the test ended. */
  close(): void;
  /** Ends it; every packet that was sent is acknowledged then. */
  stop(): Promise<void>;
  /** Checks that every packet is stored once, and that the listener has received each one that was sent once. */
  expectKept(): Promise<void>;
  /** Checks that a client of this instance that returns with a position from the beginning receives each packet since then once. */
  expectReplayed(url: string): Promise<void>;
}

/** Stores a history of so many packets, then sends over HTTP, with own `_id`s and times of any order, and over MQTT. */
export async function startTraffic(service: TestService, mqttUrl: string | null, history: number): Promise<Traffic> {
  for (const id of ['device', 'shrinking', ...SENDERS]) await createObject(service.admin, id);
  await storeHistory(service, history);
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const listener = await service.listen(token);
  const acknowledged: string[] = [];
  let isRunning = true;
  const sending = SENDERS.map(async (id) => {
    while (isRunning) acknowledged.push(await sendOne(service, id));
  });
  const device =
    mqttUrl === null ? null : await connectDevice(mqttUrl, 'device', { reconnectPeriod: 200, clean: false });
  if (device !== null) sending.push(publish(device, () => isRunning, acknowledged));
  let removed = 0;
  return {
    async removeSome() {
      const [from, to] = [PAST_MS + removed, PAST_MS + removed + SLICE_MS - 1];
      const { status } = await service.admin('DELETE', `objects/shrinking/packets?from=${from}&to=${to}`);
      expect(status).toBeLessThan(300);
      removed += SLICE_MS;
    },
    close() {
      isRunning = false;
      device?.end(true);
    },
    async stop() {
      isRunning = false;
      await Promise.all(sending);
      await device?.endAsync(true);
    },
    expectKept: () => expectKept(service, listener, { acknowledged, left: history - removed }),
    async expectReplayed(url) {
      const [first, ...others] = listener.received();
      const back = await openListener(url, token, { since: first?.position ?? '' });
      const keys = (received: readonly ReceivedEvent[]) =>
        received.map(({ payload }) => payload.key).filter((key) => key !== undefined);
      await until(() => back.received().length >= others.length, 'the events of the past', END_MS);
      expect(keys(back.received())).toEqual(keys(others));
      back.close();
    },
  };
}

async function storeHistory({ admin }: TestService, count: number): Promise<void> {
  const page = 5_000;
  for (let first = 0; first < count; first += page) {
    const times = Array.from({ length: Math.min(page, count - first) }, (_, at) => PAST_MS + first + at);
    const packets = times.map((time) => ({ time, text: `the history ${time}`, level: time % 100 }));
    expect((await admin('POST', 'objects/shrinking/packets', packets)).status).toBe(200);
  }
}

/** Sends a packet, some of them twice, and each again until it is acknowledged. */
async function sendOne({ admin }: TestService, id: string): Promise<string> {
  const _id = randomBytes(12).toString('hex');
  const packet = { _id, time: PAST_MS + Number.parseInt(_id.slice(0, 8), 16), key: _id };
  for (let left = _id.endsWith('0') ? 2 : 1; left > 0; ) {
    const { status, headers } = await admin('POST', `objects/${id}/packets`, packet);
    if (status === 200) left--;
    else {
      expect(status).toBe(503);
      expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
      await wait(20);
    }
  }
  return _id;
}

async function publish(device: MqttClient, isRunning: () => boolean, acknowledged: string[]): Promise<void> {
  for (let at = 0; isRunning(); at++) {
    const key = `mqtt-${at}`;
    await device.publishAsync('base/state', JSON.stringify({ key }), { qos: 1 });
    acknowledged.push(key);
  }
}

async function expectKept(
  { client, settled }: TestService,
  listener: Listener,
  { acknowledged, left }: { acknowledged: readonly string[]; left: number },
): Promise<void> {
  const packets = client.db().collection('packets');
  await until(async () => (await packets.countDocuments({ text: { $exists: true } })) === left, 'removals', 30_000);
  const stored = await packets.find({ key: { $exists: true } }, { projection: { key: 1 } }).toArray();
  expect(stored.map(({ key }) => key).sort()).toEqual(acknowledged.toSorted());
  await settled();
  const received = listener.received().map(({ name, payload }) => (name === 'object-packet' ? payload.key : name));
  expect(received.filter((key) => key !== undefined).sort()).toEqual(acknowledged.toSorted());
}
