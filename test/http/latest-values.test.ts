/** Objects with the last value of each parameter: `state=latest-of-each`. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';

const service = useService();
const NOW = Date.now() - 1_000_000;

const list = async (query: string) => (await service.admin('GET', `objects?state=latest-of-each&${query}`)).body;

beforeAll(async () => {
  for (const id of ['one', 'two', 'none']) await service.admin('POST', 'objects', { id, name: id, kind: 'latest' });
  await service.admin('POST', 'objects/one/packets', [
    { time: NOW, speed: 1, fuel: 80, name: 'x', pos: { lat: 1, lon: 2 } },
    { time: NOW + 1, speed: 2, fuel: null, pos: { lat: 3 } },
    // It came later, but is older.
    { time: NOW - 1, speed: 3, tags: ['a', { b: 1 }] },
    { time: NOW + 2, online: false },
  ]);
  const many = Array.from({ length: 250 }, (_, nth) => ({ time: NOW + nth, speed: nth }));
  await service.admin('POST', 'objects/two/packets', [{ time: NOW - 5, rare: true, 'ä"\\': 'ü' }, ...many]);
});

describe('a list of objects', () => {
  test('contains the last value of each parameter with its time', async () => {
    const [one, two, none] = await list('where.kind=latest');
    expect(one).not.toHaveProperty('state');
    expect(one.latest).toEqual({
      speed: { value: 2, time: NOW + 1 },
      fuel: { value: 80, time: NOW },
      name: { value: 'x', time: NOW },
      pos: { value: { lat: 3 }, time: NOW + 1 },
      tags: { value: ['a', { b: 1 }], time: NOW - 1 },
      online: { value: false, time: NOW + 2 },
    });
    expect(two.latest).toEqual({
      speed: { value: 249, time: NOW + 249 },
      rare: { value: true, time: NOW - 5 },
      'ä"\\': { value: 'ü', time: NOW - 5 },
      online: { value: true, time: NOW + 249 },
    });
    expect(none.latest).toEqual({});
  });

  test('contains only the named parameters, also nested ones', async () => {
    const found = await list('where.kind=latest&only=id,state.pos.lon,state.rare,state.nothing');
    expect(found.map(({ id, latest }: { id: string; latest: object }) => [id, latest])).toEqual([
      ['one', { 'pos.lon': { value: 2, time: NOW } }],
      ['two', { rare: { value: true, time: NOW - 5 } }],
      ['none', {}],
    ]);
    expect((await list('where.kind=latest&only=id'))[0]).not.toHaveProperty('latest');
  });

  test('searches only the latest packets', async () => {
    await service.admin('POST', 'objects', { id: 'long', name: 'long', kind: 'long' });
    const packets = Array.from({ length: LIMITS.latestPackets + 1 }, (_, nth) => ({
      time: NOW + nth,
      [`p${nth}`]: nth,
    }));
    await service.admin('POST', 'objects/long/packets', packets);
    const [{ latest }] = await list('where.kind=long');
    expect([latest.p0, latest.p1]).toEqual([undefined, { value: 1, time: NOW + 1 }]);
  });

  test('has the parameters of a device of thousands of names in pages by name', async () => {
    await service.admin('POST', 'objects', { id: 'macs', name: 'macs', kind: 'macs' });
    const nameOf = (nth: number): string => `ä${String(nth).padStart(4, '0')}`;
    const packets = Array.from({ length: 100 }, (_, at) => ({
      time: NOW + at,
      // In any order, each twice.
      ...Object.fromEntries(
        Array.from({ length: 100 }, (_, nth) => [nameOf((at * 7_919 + nth * 104_729) % 5_000), at]),
      ),
    }));
    await service.admin('POST', 'objects/macs/packets', packets);
    const newest = new Map<string, object>();
    for (const { time, ...values } of packets) {
      for (const [name, value] of Object.entries(values)) newest.set(name, { value, time });
    }
    newest.set('online', { value: true, time: NOW + 99 });
    const found = new Map<string, object>();
    for (let after = ''; ; ) {
      const [{ latest, latestNext }] = await list(`where.kind=macs&latestAfter=${encodeURIComponent(after)}`);
      const names = Object.keys(latest);
      expect(names.length).toBeLessThanOrEqual(LIMITS.latestParameters);
      for (const name of names) found.set(name, latest[name]);
      if (latestNext === undefined) break;
      expect([names.length, latestNext]).toEqual([LIMITS.latestParameters, names.at(-1)]);
      after = latestNext;
    }
    expect(found.size).toBeGreaterThan(2 * LIMITS.latestParameters);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(newest));
  });

  test('is returned in pages', async () => {
    const many = Array.from({ length: LIMITS.latestObjects + 1 }, (_, nth) => ({
      name: `n${nth}`,
      id: `n-${nth}`,
      kind: 'many',
    }));
    await Promise.all(many.map((body) => service.admin('POST', 'objects', body)));
    const first = await service.admin('GET', 'objects?state=latest-of-each&where.kind=many');
    expect(first.body).toHaveLength(LIMITS.latestObjects);
    const next = /^<(.*)>; rel="next"$/.exec(first.headers.link ?? '')?.[1] as string;
    expect((await service.admin('GET', next)).body).toHaveLength(1);
  });

  test.each(['state=newest', 'state=latest-of-each&meta=1', 'state=latest-of-each&state=latest-of-each'])(
    'is refused with %s',
    async (query) => {
      const { status, body } = await service.admin('GET', `objects?${query}`);
      expect([status, body.helper.message]).toEqual([400, expect.stringMatching(/^state: /)]);
    },
  );

  test('ignores the parameter for other stores', async () => {
    expect((await service.admin('GET', 'labels?state=latest-of-each')).status).toBe(200);
  });
});
