/** Series, tracks and exports without bounds: which packets decide the interval, and that the answer names it. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { Long, ObjectId } from 'mongodb';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { useService } from '../support/fixture.js';

const service = useService();
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const nowMs = Date.now();
const FIRST_MS = nowMs - 3 * HOUR_MS;
const LAST_MS = nowMs - HOUR_MS;

const good = [FIRST_MS, FIRST_MS + HOUR_MS, LAST_MS];
/** The times of packets that arrived now, and the interval that is taken. */
const CASES: readonly (readonly [what: string, times: readonly number[], interval: readonly number[]])[] = [
  ['no outlier', good, [FIRST_MS, LAST_MS]],
  ['one packet of 1970', [1_000, ...good], [FIRST_MS, LAST_MS]],
  ['one packet of 1980', [315_964_800_000, ...good], [FIRST_MS, LAST_MS]],
  ['one packet of 2007, of a week rollover', [1_176_184_800_000, ...good], [FIRST_MS, LAST_MS]],
  [
    'an hour of packets of 2007, and one of 2001',
    [Date.UTC(2001, 0, 1), ...Array.from({ length: 60 }, (_, nth) => 1_176_184_800_000 + nth * 60_000), ...good],
    [FIRST_MS, LAST_MS],
  ],
  ['one packet of 2080', [...good, Date.UTC(2080, 0, 1)], [FIRST_MS, LAST_MS]],
  ['one packet ten hours ahead, and one of 1970', [0, ...good, nowMs + 10 * HOUR_MS], [FIRST_MS, LAST_MS]],
  ['one packet of last month', [nowMs - 30 * DAY_MS, ...good], [nowMs - 30 * DAY_MS, LAST_MS]],
  [
    'years that were imported',
    Array.from({ length: 40 }, (_, nth) => nowMs - (40 - nth) * 40 * DAY_MS),
    [nowMs - 1_600 * DAY_MS, nowMs - 40 * DAY_MS],
  ],
  ['nothing but packets of 2007', [1_176_184_800_000, 1_176_184_860_000], [1_176_184_800_000, 1_176_184_860_000]],
];

beforeAll(async () => {
  for (const [nth, [name, times]] of CASES.entries()) {
    const object = new ObjectId((await service.admin('POST', 'objects', { id: `interval-${nth}`, name })).body._id);
    const packets = times.map((time, at) => {
      const _id: unknown = toPacketKey(new ObjectId().toHexString(), object);
      const _ts = Long.fromNumber(nowMs * 1_000 + at);
      const values = { speed: at, lat: 52, lon: 13 + at / 1_000 };
      return { _id: _id as ObjectId, _ts, time, online: true, _oid: object, id: '', _gid: new ObjectId(), ...values };
    });
    await service.client.db().collection('packets').insertMany(packets);
  }
});

const toText = (interval: readonly number[]): string => interval.map((ms) => new Date(ms).toISOString()).join('/');

describe.each(CASES.map(([what, times, interval], nth) => ({ what, times, interval, id: `interval-${nth}` })))(
  'with $what',
  ({ times, interval, id }) => {
    const isWithin = (ms: number): boolean => ms >= (interval[0] as number) && ms <= (interval[1] as number);
    const within = times.filter(isWithin);

    test('covers the plausible packets in a series', async () => {
      const { body, headers } = await service.admin('GET', `objects/${id}/series?params=speed&fn=count&points=1`);
      expect(body).toEqual({ time: [interval[0]], speed: { count: [within.length] } });
      expect(headers['x-interval']).toBe(toText(interval));
    });

    test('covers them in a track', async () => {
      const { body, headers } = await service.admin('GET', `objects/${id}/track`);
      expect(body.properties).toMatchObject({ from: within[0], to: within.at(-1), packets: within.length });
      expect(headers['x-interval']).toBe(toText(interval));
    });

    test('covers them in an export', async () => {
      const { text, headers } = await service.admin('GET', `objects/${id}/packets?format=ndjson`);
      const exported = text.split('\n').filter(Boolean);
      expect(exported.map((line) => JSON.parse(line).time)).toEqual(within);
      expect(headers['x-interval']).toBe(toText(interval));
    });

    test('covers everything with bounds', async () => {
      const all = `from=0&to=${Date.UTC(2099, 0, 1)}`;
      const { text, headers } = await service.admin('GET', `objects/${id}/packets?format=ndjson&${all}`);
      expect(text.split('\n').filter(Boolean)).toHaveLength(times.length);
      expect(headers['x-interval']).toBeUndefined();
      const { body } = await service.admin('GET', `objects/${id}/series?params=speed&fn=count&points=1&${all}`);
      expect(body.speed.count).toEqual([times.length]);
    });
  },
);

test('covers the packets of all of several objects', async () => {
  const { headers } = await service.admin(
    'GET',
    'series?objects=interval-0,interval-3,interval-7&params=speed&points=1',
  );
  expect(headers['x-interval']).toBe(toText([nowMs - 30 * DAY_MS, LAST_MS]));
});

test('covers the others with an upper bound before all plausible packets', async () => {
  const { body } = await service.admin('GET', 'objects/interval-3/series?params=speed&fn=count&points=1&to=2010-01-01');
  expect(body).toEqual({ time: [1_176_184_800_000], speed: { count: [1] } });
});
