/** Lists of objects by their state: filtered and sorted by whether and when they were last seen. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { DEFAULT_MODEL_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { useService } from '../support/fixture.js';

const service = useService();
const T = Date.now() - 60_000;

/** Own id, and the packets that were sent. */
const OBJECTS: readonly (readonly [id: string, packets: object[]])[] = [
  ['never', []],
  ['old', [{ time: T, n: 1 }]],
  [
    'late-packet',
    [
      { time: T + 3_000, n: 1 },
      { time: T + 1_000, n: 2 },
    ],
  ],
  [
    'offline',
    [
      { time: T + 2_000, n: 1 },
      { time: T + 9_000, online: false },
    ],
  ],
  [
    'back',
    [
      { time: T + 4_000, n: 1 },
      { time: T + 5_000, online: false },
      { time: T + 6_000, online: true },
    ],
  ],
  ['same-time', [{ time: T, n: 2 }]],
];

beforeAll(async () => {
  for (const [id, packets] of OBJECTS) {
    entityOf(await service.admin('POST', 'objects', { id, name: id, plate: id.slice(0, 1) }));
    for (const packet of packets) entityOf(await service.admin('POST', `objects/${id}/packets`, packet));
  }
});

const list = async (query: string): Promise<string[]> => {
  const { status, body } = await service.admin('GET', `objects?${query}`);
  if (status !== 200) throw new Error(`${query}: ${status} ${JSON.stringify(body)}`);
  return body.map(({ id }: { id: string }) => id);
};

describe('a list by state', () => {
  test.each<[query: string, ids: string[]]>([
    ['sortBy=-_id&where.state.online=true', ['same-time', 'back', 'late-packet', 'old']],
    ['where.state.online=true', ['old', 'late-packet', 'back', 'same-time']],
    ['where.state.online=false', ['offline']],
    ['where.state.online=null', ['never']],
    ['where.state.online=true,null', ['never', 'old', 'late-packet', 'back', 'same-time']],
    [`where.state.time=${T}`, ['old', 'same-time']],
    ['sortBy=state.time', ['never', 'old', 'same-time', 'offline', 'late-packet', 'back']],
    ['sortBy=-state.time', ['back', 'late-packet', 'offline', 'old', 'same-time', 'never']],
    ['sortBy=state.online', ['never', 'offline', 'old', 'late-packet', 'back', 'same-time']],
    ['sortBy=-state.time&where.state.online=true', ['back', 'late-packet', 'old', 'same-time']],
    ['sortBy=-state.time&where.plate=o', ['offline', 'old']],
    ['sortBy=name&where.state.online=true', ['back', 'late-packet', 'old', 'same-time']],
    ['sortBy=-state.time&search=e', ['late-packet', 'offline', 'same-time', 'never']],
    ['sortBy=-state.time&offset=1&limit=2', ['late-packet', 'offline']],
    ['sortBy=-state.time&limit=0', []],
    ['sortBy=-state.time&offset=100', []],
  ])('returns the objects in order with %s', async (query, ids) => {
    expect(await list(query)).toEqual(ids);
  });

  test('contains objects in the same form as every list', async () => {
    const { body: plain } = await service.admin('GET', 'objects');
    const { body: sorted } = await service.admin('GET', 'objects?sortBy=state.time');
    const byId = (a: { _id: string }, b: { _id: string }) => (a._id < b._id ? -1 : 1);
    expect([...sorted].sort(byId)).toEqual(plain);
    const { body: some, text } = await service.admin('GET', 'objects?sortBy=-state.time&limit=2&only=name,state.time');
    expect(some.map(({ _id, ...rest }: { _id: string }) => rest)).toEqual([
      { name: 'back', state: { time: T + 4_000, _id: expect.any(String) } },
      { name: 'late-packet', state: { time: T + 3_000, _id: expect.any(String) } },
    ]);
    expect(text).toMatch(/^\[\n\{.*\}\n,\n\{.*\}\n\]\n$/);
  });

  test('is read page by page by key', async () => {
    const first = await service.admin('GET', 'objects?where.state.online=true&limit=2');
    const next = /^<\/api\/v1\/(.*)>; rel="next"$/.exec(first.headers.link ?? '')?.[1] as string;
    const ids = [...first.body, ...(await service.admin('GET', next)).body].map(({ id }) => id);
    expect(ids).toEqual(['old', 'late-packet', 'back', 'same-time']);
  });

  test('supports `meta`', async () => {
    const { body } = await service.admin('GET', 'objects?meta=true&where.state.online=true');
    expect([body.count, body.first.id, body.last.id]).toEqual([4, 'old', 'same-time']);
    const none = await service.admin('GET', 'objects?meta=true&where.state.time=1');
    expect(none.body).toEqual({ count: 0, first: null, last: null });
  });
});

test('contains only what its caller sees', async () => {
  const group = entityOf(await service.admin('POST', 'groups', { name: 'other' }))._id;
  const viewer = await createPerson(service, { group, role: VIEWER_ROLE_ID });
  expect((await viewer.call('GET', 'objects?sortBy=state.time')).body).toEqual([]);
  expect((await viewer.call('GET', 'objects?meta=true&where.state.online=true')).body.count).toBe(0);
});

test.each(['sortBy=state.speed', 'where.state.speed=1', 'sortBy=state', 'where.state._ts=1'])(
  'is refused with %s',
  async (query) => expectRefusal(await service.admin('GET', `objects?${query}`), 400, 'state'),
);

test('is refused if more objects remain than the limit', async () => {
  const before = LIMITS.stateListObjects;
  try {
    Object.assign(LIMITS, { stateListObjects: 5 });
    expectRefusal(await service.admin('GET', 'objects?sortBy=state.time'), 400, 'restrict the list by other fields');
    expect(await list('sortBy=state.time&where.plate=o')).toEqual(['old', 'offline']);
  } finally {
    Object.assign(LIMITS, { stateListObjects: before });
  }
});

test('keeps its order over several batches', async () => {
  const before = LIMITS.stateListBatch;
  const objects = Array.from({ length: 50 }, (_, n) => ({
    _id: new ObjectId(),
    id: `many-${n}`,
    name: 'many',
    plate: 'm',
    access: [],
    time: T,
    owner: new ObjectId(),
    group: new ObjectId('000000000000000000000001'),
    branch: [new ObjectId('000000000000000000000001')],
    model: new ObjectId(DEFAULT_MODEL_ID),
    models: { id: new ObjectId(DEFAULT_MODEL_ID) },
  }));
  await service.client.db().collection('objects').insertMany(objects);
  for (const [n, { id }] of objects.entries()) {
    entityOf(await service.admin('POST', `objects/${id}/packets`, { time: T + ((n * 37) % 50), n }));
  }
  try {
    Object.assign(LIMITS, { stateListBatch: 7 });
    const times = (await service.admin('GET', 'objects?where.plate=m&sortBy=-state.time')).body.map(
      ({ state }: { state: { time: number } }) => state.time - T,
    );
    expect(times).toEqual(Array.from({ length: 50 }, (_, n) => 49 - n));
  } finally {
    Object.assign(LIMITS, { stateListBatch: before });
  }
});
