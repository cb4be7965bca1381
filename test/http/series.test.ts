/** Series of parameters: exact over real packets, for those who may see them, and refused where they cannot be. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { parseSeriesQuery } from '../../src/history/series/query.js';
import { readSeries } from '../../src/history/series.js';
import { connectDatabase } from '../../src/platform/mongo/schema/connect.js';
import { useService } from '../support/fixture.js';
import { naiveSeries, type Reading } from '../support/naive-series.js';

const service = useService();
const PASSWORD = 'a password of eight';
const MINUTE_MS = 60_000;
const FROM_MS = Date.UTC(2026, 2, 28, 12);
const TO_MS = FROM_MS + 24 * 60 * MINUTE_MS;
let truck = '';

/** Every parameter has gaps of its own, and values of several types. */
const PACKETS = Array.from({ length: 1_400 }, (_, nth) => ({
  time: FROM_MS + nth * MINUTE_MS + ((nth * 7_919) % 1_000),
  ...(nth % 3 !== 0 && { speed: ((nth * 37) % 360) / 4 }),
  ...(nth % 200 < 90 && { engine: { rpm: nth % 50, mode: nth % 11 === 0 ? null : ['idle', 'run'][(nth >> 4) % 2] } }),
  ...(nth % 5 === 0 && { door: nth % 20 === 0 }),
}));

const valuesOf = (path: string): Reading[] =>
  PACKETS.map((packet) => {
    const members = path
      .split('.')
      .reduce<unknown>((value, name) => (value as Record<string, unknown>)?.[name], packet);
    return [packet.time, members as Reading[1]];
  });

const ask = async (query: string, path = `objects/${truck}/series`) =>
  (await service.admin('GET', `${path}?${query}`)).body;

beforeAll(async () => {
  truck = (await service.admin('POST', 'objects', { id: 'series-1', name: 'One' })).body._id;
  const { status } = await service.admin('POST', 'objects/series-1/packets', PACKETS);
  expect(status).toBe(200);
  await service.admin('POST', 'objects', { id: 'series-2', name: 'Two' });
  await service.admin('POST', 'objects/series-2/packets', [
    { time: FROM_MS, speed: 1 },
    { time: TO_MS + MINUTE_MS, speed: 3 },
  ]);
});

const FUNCTIONS = 'first,last,min,max,avg,sum,count,time-weighted-avg,increase,rate';
const MORE = 'derivative,duration,p50,p95,duration:run,duration:idle,duration:true';

describe('a series', () => {
  test.each([
    ['points=7', 'fixed', null],
    ['points=300&gap=3 min', 'fixed', 3 * MINUTE_MS],
    ['every=1 h&tz=Europe/Berlin', 'hours', null],
    ['every=1 d&tz=Europe/Berlin&gap=90s', 'days', 1.5 * MINUTE_MS],
  ])('equals a naive evaluation of all packets with %s', async (query, _, gapMs) => {
    const fromMs = FROM_MS + 61_234;
    const toMs = TO_MS - 83 * MINUTE_MS;
    const paths = ['speed', 'engine.rpm', 'engine.mode', 'door', 'nothing'];
    for (const functions of [FUNCTIONS, MORE]) {
      const body = await ask(`params=${paths}&fn=${functions}&from=${fromMs}&to=${toMs}&${query}`);
      const asked = { fromMs, toMs, starts: body.time, gapMs, nowMs: Date.now() };
      for (const path of paths) {
        const naive = functions.split(',').map((name) => [name, naiveSeries(valuesOf(path), asked, name)] as const);
        const expected = naive.every(([, values]) => values === null) ? null : Object.fromEntries(naive);
        expect([path, body[path]]).toEqual([path, expected]);
      }
    }
  });

  test('has buckets of the calendar, on the day that clocks change too', async () => {
    const { time } = await ask(`params=speed&from=${FROM_MS}&to=${TO_MS}&every=1 d&tz=Europe/Berlin`);
    expect(time).toEqual(
      ['2026-03-27T23:00Z', '2026-03-28T23:00Z', '2026-03-29T22:00Z'].map((at) => Date.parse(at)).slice(0, 2),
    );
    const { time: hours } = await ask(
      'params=speed&from=2026-03-29T00:00%2B01:00&to=2026-03-29T23:59%2B02:00&every=1 h&tz=Europe/Berlin',
    );
    expect(hours).toHaveLength(23);
  });

  test('covers all packets without bounds', async () => {
    const body = await ask('params=speed&points=2', 'objects/series-2/series');
    expect(body).toEqual({
      time: [FROM_MS, FROM_MS + Math.ceil((TO_MS + MINUTE_MS - FROM_MS + 1) / 2)],
      speed: { first: [1, 3], last: [1, 3], min: [1, 3], max: [1, 3] },
    });
  });

  test('contains null for a parameter without values, and is empty without packets', async () => {
    expect(await ask('params=a,__proto__,a.b&points=1')).toEqual(
      JSON.parse(`{"time":[${PACKETS[0]?.time}],"a":null,"__proto__":null,"a.b":null}`),
    );
    await service.admin('POST', 'objects', { id: 'series-3', name: 'Three' });
    expect(await ask('params=speed', 'objects/series-3/series')).toEqual({ time: [], speed: null });
  });

  test.each([
    { title: 'a restart', counts: [100, 101, 0.2, 1.2], wrap: '', increase: 2.2 },
    { title: 'a restart at 0', counts: [4_831, 0, 5], wrap: '', increase: 5 },
    { title: 'two restarts', counts: [7, 2, 3, 1], wrap: '', increase: 4 },
    { title: 'no restart', counts: [5, 5, 8], wrap: '', increase: 3 },
    { title: 'an end of 16 bits', counts: [65_530, 65_535, 4, 10], wrap: '16', increase: 16 },
    { title: 'an end of 32 bits', counts: [4_294_967_290, 3], wrap: '32', increase: 9 },
    { title: 'a value of more than 16 bits, which was restarted', counts: [70_000, 3], wrap: '16', increase: 3 },
  ])('counts the increase of a counter over $title', async ({ title, counts, wrap, increase }) => {
    const id = `counter ${title.replaceAll(/[^a-z0-9]/g, '-')}`;
    await service.admin('POST', 'objects', { id, name: title });
    const packets = counts.map((kwh, nth) => ({ time: FROM_MS + nth * MINUTE_MS, kwh }));
    expect((await service.admin('POST', `objects/${id}/packets`, packets)).status).toBe(200);
    const { kwh } = await ask(`params=kwh&fn=increase,rate&points=1&wrap=${wrap}`, `objects/${id}/series`);
    const seconds = (counts.length - 1) * 60;
    expect(kwh).toEqual({ increase: [expect.closeTo(increase)], rate: [expect.closeTo(increase / seconds, 9)] });
  });

  test('counts the change of a value that falls', async () => {
    await service.admin('POST', 'objects', { id: 'level', name: 'Level' });
    const packets = [10, 4].map((level, nth) => ({ time: FROM_MS + nth * MINUTE_MS, level }));
    await service.admin('POST', 'objects/level/packets', packets);
    expect((await ask('params=level&fn=derivative&points=1', 'objects/level/series')).level).toEqual({
      derivative: [-0.1],
    });
  });

  test('has the same buckets for several objects', async () => {
    const query = `params=speed,door&from=${FROM_MS}&to=${TO_MS}&points=3`;
    const body = await ask(`objects=series-2,${truck},series-1,nothing,${new ObjectId()}&${query}`, 'series');
    const { time, ...one } = await ask(query);
    expect(body.time).toEqual(time);
    expect([body.objects[truck], body.objects['series-1']]).toEqual([one, one]);
    expect(body.objects['series-2']).toEqual({
      speed: { first: [1, null, null], last: [1, null, null], min: [1, null, null], max: [1, null, null] },
      door: null,
    });
    expect(Object.values(body.objects).filter((object) => object === null)).toHaveLength(2);
  });
});

describe('an invalid series', () => {
  test.each([
    ['', 'params'],
    ['params=', 'params'],
    ['params=$a', 'params'],
    ['params=time', 'params'],
    [`params=${Array.from({ length: 21 }, (_, nth) => `p${nth}`)}`, 'params'],
    ['params=a&params=b', 'params'],
    ['params=a&points=0', 'points'],
    ['params=a&points=10001', 'points'],
    ['params=a&points=many', 'points'],
    ['params=a&points=5&every=1 h', 'points'],
    ['params=a&every=0 h', 'every'],
    ['params=a&every=999999999 y', 'every'],
    ['params=a&every=999999999 months', 'every'],
    ['params=a&every=999999999 w', 'every'],
    ['params=a&every=1 fortnight', 'every'],
    ['params=a&every=1 s', 'every'],
    ['params=a&tz=Nowhere/Else', 'tz'],
    ['params=a&fn=mean', 'fn'],
    ['params=a&fn=p100', 'fn'],
    [`params=a&fn=${Array.from({ length: 11 }, () => 'avg')}`, 'fn'],
    ['params=a&gap=0', 'gap'],
    ['params=a&gap=soon', 'gap'],
    ['params=a&wrap=8', 'wrap'],
    ['params=a&wrap=true', 'wrap'],
    ['params=a&from=2026-03-02&to=2026-03-01', 'from'],
    ['params=a&from=soon', 'from'],
  ])('is refused with a 400 that names the parameter: %s', async (query, name) => {
    const { status, body } = await service.admin('GET', `objects/${truck}/series?${query}`);
    expect([status, body.helper?.message]).toEqual([400, expect.stringMatching(new RegExp(`^${name}: `))]);
  });

  test.each(['', 'objects=', `objects=${Array.from({ length: 101 }, (_, nth) => `o${nth}`)}`])(
    'is refused for objects: %s',
    async (query) => {
      const { status, body } = await service.admin('GET', `series?params=a&${query}`);
      expect([status, body.helper?.message]).toEqual([400, expect.stringMatching(/^objects: /)]);
    },
  );
});

describe('a series that costs too much', () => {
  test('is refused with a 413 for too many numbers', async () => {
    const params = Array.from({ length: 20 }, (_, nth) => `p${nth}`);
    const { status, body } = await service.admin(
      'GET',
      `objects/${truck}/series?params=${params}&points=10000&fn=minmax,avg,sum`,
    );
    expect([status, body.helper.message]).toEqual([413, expect.stringContaining('fewer points')]);
  });

  test('is refused with a 413 if it takes too long', async () => {
    const database = await connectDatabase(service.mongodbUri);
    const texts = {
      params: 'speed',
      points: 10,
      every: null,
      tz: null,
      fn: null,
      gap: null,
      wrap: null,
      fromMs: null,
      toMs: null,
    };
    const asked = { query: parseSeriesQuery(texts), nowMs: Date.now() };
    await expect(readSeries(database, [truck], { ...asked, workMs: -1 })).rejects.toMatchObject({
      status: 413,
      help: expect.stringContaining('shorter interval'),
    });
    expect((await readSeries(database, [truck], asked)).starts).toHaveLength(10);
    await database.client.close();
  });
});

test('reveals no objects that the caller does not see or may not read', async () => {
  const group = (await service.admin('POST', 'groups', { name: 'series' })).body._id;
  await service.admin('POST', 'users', { login: 'series', password: PASSWORD, group });
  const call = service.as(await service.tokenOf('series', PASSWORD));
  expect((await call('GET', `objects/${truck}/series?params=speed`)).status).toBe(404);
  expect((await call('GET', `series?objects=${truck}&params=speed`)).body).toEqual({
    time: [],
    objects: { [truck]: null },
  });
  const { body } = await service.admin('POST', 'tokens', { name: 'series', scopes: ['GET /objects/series-2/*'] });
  const narrow = service.as(body.token);
  const { objects } = (await narrow('GET', 'series?objects=series-1,series-2&params=speed&points=1')).body;
  expect([objects['series-1'], objects['series-2']?.speed.max]).toEqual([null, [3]]);
  expect((await narrow('GET', 'objects/series-1/series?params=speed')).status).toBe(403);
  expect((await service.as(null)('GET', 'series?objects=series-1&params=speed')).status).toBe(401);
});

test('refuses a store with the name of its path', async () => {
  expect((await service.admin('POST', 'stores', { name: 'series' })).status).toBe(409);
});
