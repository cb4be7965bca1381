/**
 * Packets over HTTP: sent one by one or many at once, stored once, received once, read back in their order. Long because
 * every way to send is held to the same packets.
 */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, eventsOf, expectRefusal } from '../support/answers.js';
import { ADMIN, type Answer, type Listener, useService } from '../support/fixture.js';

const NOW = Date.now();
const AHEAD_MS = 300_000;
const service = useService({ now: () => NOW });
const OWN = '65a00000000000000000000';
let listener: Listener;
let model: string;
let count = 0;

const create = async (more: object = {}) =>
  entityOf(await service.admin('POST', 'objects', { id: `o-${++count}`, name: 'Car', ...more }));
const post = (key: string, body?: unknown, headers?: Record<string, string>) =>
  service.admin('POST', `objects/${key}/packets`, body, headers);
const list = async (key: string, query = '') => (await service.admin('GET', `objects/${key}/packets?${query}`)).body;
const received = async () => {
  await service.settled();
  return eventsOf(listener.take());
};
const event = (payload: object) => ({ name: 'object-packet', payload });
const speeds = (packets: { speed: number }[]) => packets.map(({ speed }) => speed);

beforeAll(async () => {
  listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const children = [
    { id: 'speed', type: 'argument', dataType: 'number' },
    { id: 'on', type: 'argument', dataType: 'boolean' },
    { id: 'name', type: 'argument', dataType: 'string' },
    { id: 'pos', type: 'argument', dataType: 'object' },
    { type: 'subsystem', children: [{ id: 'list', type: 'argument', dataType: 'number[]' }] },
  ];
  model = entityOf(await service.admin('POST', 'models', { name: 'typed', data: { type: 'subsystem', children } }))._id;
});

describe('a packet', () => {
  test.each<[what: string, sent: object | undefined, shown: object]>([
    ['without a time', { speed: 5 }, { time: NOW, speed: 5 }],
    ['empty', {}, { time: NOW }],
    ['with a time in ms', { time: 1_700_000_000_000 }, { time: 1_700_000_000_000 }],
    ['with ms as text', { time: '1700000000000' }, { time: 1_700_000_000_000 }],
    ['with a day', { time: '2024-02-29' }, { time: Date.UTC(2024, 1, 29) }],
    ['with minutes', { time: '2024-02-29T12:30' }, { time: Date.UTC(2024, 1, 29, 12, 30) }],
    ['with a zone', { time: '2024-02-29T12:30:15.250+03:00' }, { time: Date.UTC(2024, 1, 29, 9, 30, 15, 250) }],
    ['with null as its time', { time: null }, { time: NOW }],
    ['of a clock that runs ahead', { time: NOW + AHEAD_MS }, { time: NOW + AHEAD_MS }],
    ['with seconds', { time: 1_700_000_000 }, { time: 1_700_000_000_000 }],
    ['with seconds as text', { time: '1700000000.25' }, { time: 1_700_000_000_250 }],
    ['with nanoseconds as text', { time: '1700000000123456789' }, { time: 1_700_000_000_123 }],
    [
      'with a time of Python',
      { time: '2024-02-29 12:30:15.250999+02' },
      { time: Date.UTC(2024, 1, 29, 10, 30, 15, 250) },
    ],
    ['with a time of HTTP', { time: 'Thu, 29 Feb 2024 12:30:15 GMT' }, { time: Date.UTC(2024, 1, 29, 12, 30, 15) }],
    ['offline', { online: false }, { time: NOW, online: false }],
    [
      'of every type',
      { n: 1.5, b: true, s: 'x', o: { a: [null] }, l: [1, 'a'], z: null },
      { time: NOW, n: 1.5, b: true, s: 'x', o: { a: [null] }, l: [1, 'a'], z: null },
    ],
    [
      'that sets what only the service does',
      { _ts: 1, _oid: 'x', _gid: 'y', id: 'z', success: false, _x: 1, a: 1 },
      { time: NOW, a: 1 },
    ],
  ])('is stored, returned, published once and read back: %s', async (_, sent, shown) => {
    const object = await create();
    const packet = entityOf(await post(object.id, sent));
    expect(packet).toEqual({
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      _ts: expect.any(Number),
      online: true,
      _oid: object._id,
      id: object.id,
      _gid: object.group,
      ...shown,
    });
    expect(Object.keys(packet).slice(0, 7)).toEqual(['_id', '_ts', 'time', 'online', '_oid', 'id', '_gid']);
    expect(packet._ts).toBeGreaterThanOrEqual(NOW * 1_000);
    expect(await received()).toEqual([event(packet)]);
    expect(await list(object._id)).toEqual([packet]);
    expect(entityOf(await service.admin('GET', `objects/${object.id}/packets/${packet._id}`))).toEqual(packet);
  });

  test('changes no field of its object', async () => {
    const object = await create();
    await post(object.id, { speed: 1 });
    const { state, ...after } = entityOf(await service.admin('GET', `objects/${object.id}`));
    expect(after).toEqual(object);
    expect((await received()).map((one) => (one as { name: string }).name)).toEqual(['object-packet']);
  });

  test('gets a later stamp than every earlier packet, also concurrently', async () => {
    const object = await create();
    const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => post(object.id, { n })));
    const stamps = answers.map(({ body }) => body._ts);
    expect(new Set(stamps).size).toBe(40);
    const later = entityOf(await post(object.id, {}));
    expect(later._ts).toBeGreaterThan(Math.max(...stamps));
    expect(await received()).toHaveLength(41);
  });
});

describe('many packets', () => {
  test('are counted in one request, and published in order', async () => {
    const object = await create();
    const answer = await post(object.id, [
      { speed: 1, time: NOW + 10 },
      { speed: 2, time: NOW + 30 },
      { speed: 3, time: NOW + 20 },
    ]);
    expect(answer).toMatchObject({ status: 200, body: { success: true, count: 3 } });
    expect(Object.keys(answer.body)).toEqual(['success', 'count']);
    const events = (await received()) as { payload: { speed: number } }[];
    expect(speeds(events.map(({ payload }) => payload))).toEqual([1, 2, 3]);
    expect(speeds(await list(object.id))).toEqual([1, 3, 2]);
  });

  test('are accepted from none to ten thousand', async () => {
    const object = await create();
    expect((await post(object.id, [])).body).toEqual({ success: true, count: 0 });
    const many = Array.from({ length: 10_000 }, (_, speed) => ({ speed, time: NOW - 10_000 + speed }));
    expect((await post(object.id, many)).body).toEqual({ success: true, count: 10_000 });
    expectRefusal(await post(object.id, [...many, {}]), 400, '10000');
    const page = await list(object.id, 'only=speed');
    expect([page.length, page[0].speed, page[9_999].speed]).toEqual([10_000, 0, 9_999]);
    expect((await list(object.id, 'meta=true')).count).toBe(10_000);
    expect(await received()).toHaveLength(10_000);
  });
});

describe('a packet with an _id of the device', () => {
  test('is stored and published once when it is sent again', async () => {
    const object = await create();
    const sent = { _id: `${OWN}A`, speed: 1 };
    const first = entityOf(await post(object.id, sent));
    expect(first).toMatchObject({ _id: `${OWN}a`, speed: 1 });
    expect(entityOf(await post(object.id, sent))).toEqual(first);
    expect(entityOf(await post(object._id, { ...sent, speed: 2 }))).toEqual(first);
    expect((await post(object.id, [sent, { _id: `${OWN}b`, speed: 3 }, sent])).body).toEqual({
      success: true,
      count: 3,
    });
    expect(speeds(await list(object.id))).toEqual([1, 3]);
    expect(speeds((await received()).map((one) => (one as { payload: { speed: number } }).payload))).toEqual([1, 3]);
  });

  test('is stored once when it is sent many times concurrently', async () => {
    const object = await create();
    const answers = await Promise.all(Array.from({ length: 12 }, () => post(object.id, { _id: `${OWN}c`, speed: 1 })));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await list(object.id)).toHaveLength(1);
    expect(await received()).toHaveLength(1);
  });

  test('is independent of the same _id in another object', async () => {
    const mine = await create();
    const other = await create();
    const _id = `${OWN}d`;
    const theirs = entityOf(await post(other.id, { _id, speed: 1 }));
    const own = entityOf(await post(mine.id, { _id, speed: 2 }));
    expect((await post(mine.id, [{ _id, speed: 3 }, { speed: 4 }])).body).toEqual({ success: true, count: 2 });
    expect(own).toMatchObject({ _id, _oid: mine._id, speed: 2 });
    expect([await list(other.id), (await list(mine.id))[0]]).toEqual([[theirs], own]);
    for (const packet of [own, theirs]) {
      const path = `objects/${packet._oid}/packets`;
      expect(entityOf(await service.admin('GET', `${path}/${_id}`))).toEqual(packet);
      expect((await service.admin('GET', `${path}?where._id=${_id}`)).body).toEqual([packet]);
      expect((await service.admin('GET', `objects/${packet._oid}`)).body.state._oid).toBe(packet._oid);
    }
    expect(speeds(await list(mine.id))).toEqual([2, 4]);
    expect(speeds((await received()).map((one) => (one as { payload: { speed: number } }).payload))).toEqual([1, 2, 4]);
  });
});

describe('a parameter that the model declares', () => {
  test.each<[packet: object, wrong: string | null]>([
    [{ speed: 1.5, on: false, name: '', pos: {}, list: [] }, null],
    [{ speed: null, on: null, name: null, pos: null, list: null }, null],
    [{ list: [1, 2.5], undeclared: ['kept'], Speed: 'kept' }, null],
    [{ speed: 'x1' }, 'speed: expected number'],
    [{ speed: '' }, 'speed: expected number'],
    [{ speed: true }, 'speed: expected number'],
    [{ on: 2 }, 'on: expected boolean'],
    [{ on: 'yes' }, 'on: expected boolean'],
    [{ name: 1 }, 'name: expected string'],
    [{ pos: [] }, 'pos: expected object'],
    [{ pos: 'x' }, 'pos: expected object'],
    [{ list: 1 }, 'list: expected number[]'],
    [{ list: [1, '2'] }, 'list: expected number[]'],
    [{ list: [null] }, 'list: expected number[]'],
  ])('is checked by its type: %j', async (packet, wrong) => {
    const object = await create({ model });
    const answer = await post(object.id, packet);
    if (wrong === null) expect(entityOf(answer)).toMatchObject(packet);
    else expectRefusal(answer, 400, wrong);
    expect(await list(object.id)).toHaveLength(wrong === null ? 1 : 0);
    expect(await received()).toHaveLength(wrong === null ? 1 : 0);
  });

  test('is checked by a new type as soon as the model, or that of the object, changes', async () => {
    const changing = entityOf(await service.admin('POST', 'models', { name: 'changing' }))._id;
    const object = await create({ model: changing });
    entityOf(await post(object.id, { speed: 'x' }));
    const data = { children: [{ id: 'speed', type: 'argument', dataType: 'number' }] };
    entityOf(await service.admin('PATCH', `models/${changing}`, { data }));
    expectRefusal(await post(object.id, { speed: 'x' }), 400, 'speed');
    entityOf(await service.admin('PATCH', `objects/${object.id}`, { model: '000000000000000000000010' }));
    entityOf(await post(object.id, { speed: 'x' }));
    const names = (await received()).map((one) => (one as { name: string }).name);
    expect(names).toEqual(['object-packet', 'object-update', 'object-packet']);
  });
});

describe('an invalid packet', () => {
  test.each<[what: string, body: unknown, mention: string]>([
    ['that is text', '"text"', 'JSON'],
    ['that is null', 'null', 'JSON'],
    ['with a blank _id', { _id: ' ' }, '_id: expected a number, or text of at most 128 characters'],
    ['with a time that is none', { time: 'soon' }, 'time: expected'],
    ['with a date in digits', { time: 20_240_229 }, 'time: these digits look like a date: write "2024-02-29"'],
    ['with the minimum date of .NET', { time: '0001-01-01T00:00:00' }, 'time: expected'],
    ['with digits of no unit', { time: 170_000_000_000_000 }, 'time: expected'],
    ['with a day that is not', { time: '2023-02-29' }, 'time: expected'],
    ['that is online by word', { online: 'yes' }, 'online: expected a boolean'],
  ])('is neither stored nor published: %s', async (_, body, mention) => {
    const object = await create();
    expectRefusal(await post(object.id, body), 400, mention);
    expect(await list(object.id)).toEqual([]);
    expect(await received()).toEqual([]);
  });
});

describe('the maximum size of a packet', () => {
  // No one string of it is over the limit of strings.
  const sized = (bytes: number) => ({ a: 'x'.repeat(bytes / 2), b: 'x'.repeat(bytes / 2) });

  test('refuses a larger one', async () => {
    const { id } = await create();
    await received();
    expectRefusal(await post(id, sized(LIMITS.packetBytes)), 413, `a packet has at most ${LIMITS.packetBytes} bytes`);
    expect([await list(id), await received()]).toEqual([[], []]);
    expect(entityOf(await service.admin('GET', `objects/${id}`))).not.toHaveProperty('state');
  });

  test.each<[what: string, sent: object]>([
    ['a list of 7,000 small integers', { fft: Array.from({ length: 7_000 }, (_, n) => n % 10) }],
    ['a list of 10,000 small integers', { fft: Array.from({ length: 10_000 }, (_, n) => n % 10) }],
    ['three lists of 10,000', { a: Array(10_000).fill(1), b: Array(10_000).fill(0), c: Array(9_999).fill(7) }],
    ['a list of empty lists', { all: Array(10_000).fill([]) }],
    ['a matrix', { m: Array.from({ length: 100 }, () => Array(150).fill(0.5)) }],
  ])('counts the bytes that the sender sees: %s', async (_, sent) => {
    const bytes = JSON.stringify(sent).length;
    expect(bytes).toBeLessThan(LIMITS.packetBytes);
    const { id } = await create();
    expect(entityOf(await post(id, sent))).toMatchObject(sent);
    expect((await post(id, [sent, sent])).body).toMatchObject({ success: true, count: 2 });
    expect(await list(id)).toMatchObject([sent, sent, sent]);
    expect(entityOf(await service.admin('GET', `objects/${id}`)).state).toMatchObject(sent);
    await received();
  });

  test('is told with the size of the packet, and without a place for a single one', async () => {
    const { id } = await create();
    const sent = { fft: Array(10_000).fill(1_234_567) };
    const { helper } = (await post(id, sent)).body;
    expect(helper.message).toBe(
      `a packet has at most ${LIMITS.packetBytes} bytes of JSON; this one has ${JSON.stringify(sent).length}`,
    );
  });

  test('accepts a packet just below it', async () => {
    const { id } = await create();
    const stored = entityOf(await post(id, sized(LIMITS.packetBytes - 1_000)));
    expect(await list(id)).toEqual([stored]);
    await received();
  });
});

describe('the history of packets', () => {
  let key: string;
  let sent: { _id: string; time: number; _ts: number; speed: number }[];
  const T = Date.UTC(2024, 1, 29, 12);
  const ask = (query: string) => service.admin('GET', `objects/${key}/packets?${query}`);

  beforeAll(async () => {
    const object = await create({ id: 'history' });
    key = object.id;
    // By arrival: late ones, and three of one time.
    const minutes = [5, 1, 3, 3, 0, 3, 2, 4];
    for (const [speed, minute] of minutes.entries()) entityOf(await post(key, { speed, time: T + minute * 60_000 }));
    sent = await list(object._id);
    await post((await create()).id, { speed: 99, time: T });
  });

  test.each<[query: string, expected: number[]]>([
    ['', [4, 1, 6, 2, 3, 5, 7, 0]],
    ['limit=3', [4, 1, 6]],
    ['limit=0', []],
    ['offset=6', [7, 0]],
    ['offset=2&limit=2', [6, 2]],
    [`begin=${T + 60_000}&end=${T + 180_000}`, [1, 6, 2, 3, 5]],
    [`from=${T + 240_000}`, [7, 0]],
    [`to=${T}`, [4]],
    ['begin=2024-02-29T12:04', [7, 0]],
    ['begin=2024-02-29T15:04%2B03:00', [7, 0]],
    ['begin=2024-02-29T15:04+03:00', [7, 0]],
    ['begin=2024-02-29&end=2024-02-29T12:00', [4]],
    ['begin=2024-02-29&end=2024-02-29', [4, 1, 6, 2, 3, 5, 7, 0]],
    ['end=2024-02-28', []],
    ['begin=2025-01-01', []],
    ['where.speed=3,4', [4, 3]],
    ['where.online=false', []],
    ['sortBy=-time', [0, 7, 5, 3, 2, 6, 1, 4]],
    ['sortBy=time', [4, 1, 6, 2, 3, 5, 7, 0]],
    ['sortBy=speed', [0, 1, 2, 3, 4, 5, 6, 7]],
    ['sortBy=-_ts&limit=2', [7, 6]],
    ['sortBy=-_id', [7, 6, 5, 4, 3, 2, 1, 0]],
    ['colour=red', [4, 1, 6, 2, 3, 5, 7, 0]],
  ])('is sorted by time, then by arrival: %s', async (query, expected) => {
    expect(speeds((await ask(query)).body)).toEqual(expected);
  });

  test.each([1, 2, 3, 4, 8, 9])('is read by Link with %d a page, each packet once', async (limit) => {
    const found: number[] = [];
    let path: string | undefined = `/api/v1/objects/${key}/packets?limit=${limit}`;
    while (path !== undefined) {
      const answer: Answer = await service.admin('GET', path);
      found.push(...speeds(answer.body));
      path = /^<(.*)>; rel="next"$/.exec(answer.headers.link ?? '')?.[1];
    }
    expect(found).toEqual([4, 1, 6, 2, 3, 5, 7, 0]);
  });

  test('continues after a packet of this object, and from the oldest packet after an unknown one', async () => {
    expect(speeds((await ask(`after=${sent[3]?._id}`)).body)).toEqual([3, 5, 7, 0]);
    expect(speeds((await ask(`after=${sent[7]?._id}`)).body)).toEqual([]);
    const other = entityOf(await post((await create()).id, {}));
    for (const unknown of [other._id, 'f'.repeat(24)]) {
      expect(speeds((await ask(`after=${unknown}&limit=2`)).body)).toEqual([4, 1]);
    }
  });

  test('supports `meta`, with the first and the last packet', async () => {
    expect((await ask('meta=true')).body).toEqual({ count: 8, first: sent[0], last: sent[7] });
    expect((await ask(`meta=true&begin=${T + 60_000}&end=${T + 120_000}`)).body).toMatchObject({
      count: 2,
      first: { speed: 1 },
      last: { speed: 6 },
    });
    expect((await ask('meta=true&begin=2025-01-01')).body).toEqual({ count: 0, first: null, last: null });
    expectRefusal(await ask('meta=true&limit=1'), 400, 'limit');
  });

  test('respects `only`, also for a single packet', async () => {
    expect((await ask('limit=1&only=speed%2Ctime')).body).toEqual([{ _id: sent[0]?._id, speed: 4, time: T }]);
    expect(entityOf(await service.admin('GET', `objects/${key}/packets/${sent[0]?._id}?only=speed`))).toEqual({
      _id: sent[0]?._id,
      speed: 4,
    });
  });

  test('contains no packet of another object, and none for an invalid id', async () => {
    const other = entityOf(await post((await create()).id, {}));
    for (const id of [other._id, '65a0000000000000000000ff', 'x', '1', '%24ne']) {
      expectRefusal(await service.admin('GET', `objects/${key}/packets/${id}`), 404);
    }
    for (const [method, path] of [
      ['GET', 'nowhere/packets'],
      ['POST', 'nowhere/packets'],
      ['GET', `65a0000000000000000000ff/packets/${other._id}`],
    ] as const) {
      expectRefusal(await service.admin(method, `objects/${path}`, method === 'POST' ? {} : undefined), 404);
    }
  });

  test('accepts no changes', async () => {
    for (const [method, path, allow] of [
      ['PUT', '', 'GET, POST, DELETE, HEAD'],
      ['PATCH', `/${sent[0]?._id}`, 'GET, HEAD'],
      ['DELETE', `/${sent[0]?._id}`, 'GET, HEAD'],
      ['POST', `/${sent[0]?._id}`, 'GET, HEAD'],
    ] as const) {
      const answer = await service.admin(method, `objects/${key}/packets${path}`, method === 'DELETE' ? undefined : {});
      expectRefusal(answer, 405);
      expect(answer.headers.allow).toBe(allow);
    }
    expectRefusal(
      await service.admin('DELETE', `objects/${key}/packets`),
      400,
      'from, to: at least one of them is required',
    );
    expect(await list(key)).toEqual(sent);
  });

  test('disappears with its object', async () => {
    const object = await create();
    const packet = entityOf(await post(object.id, {}));
    await service.admin('DELETE', `objects/${object._id}`);
    expectRefusal(await service.admin('GET', `objects/${object._id}/packets`), 404);
    expectRefusal(await service.admin('GET', `objects/${object._id}/packets/${packet._id}`), 404);
    expectRefusal(await post(object._id, {}), 404);
  });
});

test('stores packets before it acknowledges them, with references as ids', async () => {
  const object = await create();
  const packet = entityOf(await post(object.id, { speed: 1 }));
  const stored = await service.client
    .db()
    .collection('packets')
    .findOne({ _oid: new ObjectId(object._id) });
  expect(stored).toMatchObject({
    _oid: new ObjectId(object._id),
    _gid: new ObjectId(object.group),
    speed: 1,
    time: packet.time,
  });
});
