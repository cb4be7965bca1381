/** Packets far ahead of time, which earlier versions stored: a part of the history, but of nothing that shows the present. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { Long, ObjectId } from 'mongodb';
import { DEFAULT_MODEL_ID } from '../../src/core/builtin.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { useService } from '../support/fixture.js';

const service = useService();
const HOUR_MS = 3_600_000;
const startMs = Date.now();
const ids = new Map<string, string>();

/** Stores packets as an earlier version did; the first arrived first. */
async function store(id: string, packets: readonly { time: number; online?: boolean; [name: string]: unknown }[]) {
  const object = new ObjectId(ids.get(id));
  const documents = packets.map(({ time, online = true, ...parameters }, nth) => {
    const _id: unknown = toPacketKey(new ObjectId().toHexString(), object);
    const _ts = Long.fromNumber((startMs - 600_000 + nth) * 1_000);
    return { _id: _id as ObjectId, _ts, time, online, _oid: object, id, _gid: new ObjectId(), ...parameters };
  });
  await service.client.db().collection('packets').insertMany(documents);
}

const AHEAD = { time: startMs + 10 * HOUR_MS, speed: 50, lat: 1, lon: 1, ahead: true };
const NOW = { time: startMs - 60_000, speed: 3, lat: 52, lon: 13 };
const OBJECTS: readonly (readonly [id: string, packets: Parameters<typeof store>[1]])[] = [
  ['values', [AHEAD, NOW]],
  ['offline', [AHEAD, NOW, { time: startMs - 30_000, online: false }]],
  ['offline-ahead', [NOW, { time: startMs + HOUR_MS, online: false }]],
  ['many-ahead', [...Array.from({ length: 30 }, (_, nth) => ({ ...AHEAD, time: AHEAD.time + nth })), NOW]],
  ['presence-ahead', [NOW, ...Array.from({ length: 20 }, (_, nth) => ({ time: AHEAD.time + nth, online: false }))]],
  ['only-ahead', [AHEAD]],
  ['forecast', [NOW, AHEAD]],
  ['forecast-too-far', [NOW, { ...AHEAD, time: startMs + 100 * HOUR_MS }]],
];

beforeAll(async () => {
  const body = { name: 'Forecast', timeAhead: '1 day' };
  const { _id: forecast } = (await service.admin('POST', 'models', body)).body;
  for (const [id, packets] of OBJECTS) {
    const model = id.startsWith('forecast') ? forecast : DEFAULT_MODEL_ID;
    ids.set(id, (await service.admin('POST', 'objects', { id, name: id, model })).body._id);
    await store(id, packets);
  }
});

const STATES: readonly (readonly [id: string, state: { speed: number; online: boolean; time: number } | undefined])[] =
  [
    ['values', { speed: 3, online: true, time: NOW.time }],
    ['offline', { speed: 3, online: false, time: NOW.time }],
    ['offline-ahead', { speed: 3, online: true, time: NOW.time }],
    ['many-ahead', { speed: 3, online: true, time: NOW.time }],
    ['presence-ahead', { speed: 3, online: true, time: NOW.time }],
    ['only-ahead', undefined],
    ['forecast', { speed: 50, online: true, time: AHEAD.time }],
    ['forecast-too-far', { speed: 3, online: true, time: NOW.time }],
  ];

describe.each(STATES)('the state of the object %s', (id, expected) => {
  const isExpected = (state: unknown): void => {
    if (expected === undefined) expect(state).toBeUndefined();
    else expect(state).toMatchObject(expected);
  };

  test('is of the present, read by _id, by its own id, and with some fields', async () => {
    isExpected((await service.admin('GET', `objects/${ids.get(id)}`)).body.state);
    isExpected((await service.admin('GET', `objects/${id}`)).body.state);
    isExpected((await service.admin('GET', `objects/${id}?only=state`)).body.state);
    isExpected((await service.admin('GET', `objects/${id}?only=state.speed,state.online,state.time`)).body.state);
  });

  test('is of the present in a list', async () => {
    for (const only of ['', '&only=id,state', '&only=id,state.speed,state.time,state.online']) {
      const { body } = await service.admin('GET', `objects?where.id=${OBJECTS.map(([one]) => one)}${only}`);
      isExpected(body.find((one: { id: string }) => one.id === id).state);
    }
  });

  test('is of the present in lists by it, and as the latest values', async () => {
    for (const online of [true, false]) {
      const { body } = await service.admin('GET', `objects?where.id=${id}&where.state.online=${online}`);
      expect([online, body.length]).toEqual([online, expected?.online === online ? 1 : 0]);
    }
    const { body } = await service.admin('GET', `objects?where.id=${id}&state=latest-of-each&only=id,state.speed`);
    expect(body[0].latest.speed).toEqual(expected && { value: expected.speed, time: expected.time });
  });
});

test('orders objects by their present in lists by time', async () => {
  const { body } = await service.admin('GET', 'objects?sortBy=-state.time&limit=1');
  expect(body[0].id).toBe('forecast');
});

test('keeps what is ahead in the history', async () => {
  const { body } = await service.admin('GET', 'objects/values/packets');
  expect(body.map(({ time }: { time: number }) => time)).toEqual([NOW.time, AHEAD.time]);
});

test('reads no more packets than it needs to find what comes before', async () => {
  const id = new ObjectId(ids.get('values'));
  const pipeline = [{ $match: { _oid: id, time: { $lte: startMs } } }, { $sort: { time: -1, _ts: -1 } }, { $limit: 1 }];
  const command = { aggregate: 'packets', pipeline, cursor: {} };
  const plan = await service.client.db().command({ explain: command, verbosity: 'executionStats' });
  const stats = plan.executionStats ?? plan.stages[0].$cursor.executionStats;
  expect(stats).toMatchObject({ totalKeysExamined: 1, totalDocsExamined: 1 });
});
