/** List parameters against real data: what comes back, in which order, and how one walks through all of it. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { entityOf, expectRefusal } from '../support/answers.js';
import { type Answer, useService } from '../support/fixture.js';

const MINUTE = 60_000;
const T0 = Date.now();
const clock = { ms: T0 };
const service = useService({ now: () => clock.ms });
const ROOT = new ObjectId('000000000000000000000001');
const ADMIN_ID = '000000000000000000000002';
const COUNT = 12;
/** The labels, in the order of their creation, one a minute. */
const labels: Record<string, unknown>[] = [];
let team: string;

const iso = (ms: number, length: number) => encodeURIComponent(new Date(ms).toISOString().slice(0, length));
const ask = (query: string, store = 'labels'): Promise<Answer> => service.admin('GET', `${store}?${query}`);
const numbers = ({ body }: Answer): number[] => body.map(({ n }: { n: number }) => n);
const pathOf = (link: string | undefined) => /^<(.*)>; rel="next"$/.exec(link ?? '')?.[1];

beforeAll(async () => {
  team = entityOf(await service.admin('POST', 'groups', { name: 'team' }))._id;
  const extras: Record<number, object> = {
    0: { kind: 'a', mark: null, config: { a: { b: 'deep' }, c: 1 } },
    1: { kind: 'b', mark: 5, config: { a: { b: 'other' } } },
    2: { kind: 'c', mark: '5', group: team },
    3: { kind: 'a,b', mark: true, tags: ['red', 'blue'] },
    4: { kind: 'null', mark: 'true', ref: '65a000000000000000000001' },
    5: { kind: '', mark: 5.5, tags: ['blue'] },
  };
  for (let n = 0; n < COUNT; n++) {
    clock.ms = T0 + n * MINUTE;
    const name = ['Üllő', 'alpha', 'Beta (1)', 'a.b*c', '50%', '100'][n] ?? `Label ${n}`;
    labels.push(entityOf(await service.admin('POST', 'labels', { name, n, ...extras[n] })));
  }
});

const all = Array.from({ length: COUNT }, (_, n) => n);

describe('a list of twelve objects at intervals of a minute', () => {
  test.each<[query: string, expected: number[]]>([
    ['', all],
    ['offset=10', [10, 11]],
    ['offset=12', []],
    ['offset=1000', []],
    ['limit=2', [0, 1]],
    ['offset=3&limit=2', [3, 4]],
    ['offset=0&limit=12', all],
    ['limit=0', []],
    ['limit=10001', all],
    ['meta=false&limit=1', [0]],
    ['meta=0&limit=1', [0]],
    [`from=${T0 + 10 * MINUTE}`, [10, 11]],
    [`to=${T0 + MINUTE}`, [0, 1]],
    [`begin=${T0 + 10 * MINUTE}`, [10, 11]],
    [`end=${T0 + MINUTE}`, [0, 1]],
    [`from=${T0 + 3 * MINUTE}&to=${T0 + 3 * MINUTE}`, [3]],
    [`from=${T0 + 3 * MINUTE + 1}&to=${T0 + 5 * MINUTE - 1}`, [4]],
    [`begin=${T0 + 3 * MINUTE}&to=${T0 + 4 * MINUTE}`, [3, 4]],
    [`from=${T0 + 10 * MINUTE}&begin=${T0 + 10 * MINUTE}`, [10, 11]],
    [`from=${T0 + 5 * MINUTE}&to=${T0}`, []],
    [`from=${iso(T0 + 10 * MINUTE, 24)}`, [10, 11]],
    [`from=${iso(T0 + 10 * MINUTE, 23)}`, [10, 11]],
    [`from=${iso(T0 - MINUTE, 16)}&to=${iso(T0 + MINUTE, 16)}Z`, T0 % MINUTE === 0 ? [0, 1] : [0]],
    [`from=${iso(T0 - 86_400_000, 10)}`, all],
    [`to=${iso(T0, 10)}`, all.filter((nth) => iso(T0 + nth * MINUTE, 10) === iso(T0, 10))],
    [`from=${iso(T0, 10)}&end=${iso(T0 + 86_400_000, 10)}`, all],
    [`to=${iso(T0 - 86_400_000, 10)}`, []],
    [`from=${T0 + 9 * MINUTE}&offset=1&limit=1`, [10]],
    ['sortBy=n', all],
    ['sortBy=-n', [...all].reverse()],
    ['sortBy=-_id&limit=2', [11, 10]],
    ['sortBy=time&offset=10', [10, 11]],
    ['sortBy=-config.a.b&limit=2', [1, 0]],
    ['sortBy=nothing&limit=3', [0, 1, 2]],
    ['colour=red&Limit=1&$limit=1&limit[]=1&_=17', all],
    ['only=n&n=5', all],
  ])('answers %s', async (query, expected) => expect(numbers(await ask(query))).toEqual(expected));
});

describe('a filter or a search', () => {
  test.each<[query: string, expected: number[]]>([
    ['where.n=3', [3]],
    ['where.n=3,1,99', [1, 3]],
    ['where.n="3"', []],
    ['where.kind=a', [0]],
    ['where.kind=a,b', [0, 1]],
    ['where.kind=a%2Cb', [0, 1]],
    ['where.kind="a,b"', [3]],
    ['where.kind="null"', [4]],
    ['where.kind=null', all.slice(6)],
    ['where.kind=', [5]],
    ['where.mark=5', [1]],
    ['where.mark="5"', [2]],
    ['where.mark=5,"5",5.5', [1, 2, 5]],
    ['where.mark=true', [3]],
    ['where.mark="true"', [4]],
    ['where.mark=null', [0, ...all.slice(6)]],
    ['where.name=100', [5]],
    ['where.name="100"', [5]],
    ['where.config.a.b=deep', [0]],
    ['where.config.a.b=deep&where.config.c=2', []],
    ['where.config.a.b=deep,other&where.n=1', [1]],
    ['where.tags=blue', [3, 5]],
    ['where.ref=65a000000000000000000001', [4]],
    ['where.kind=%24ne', []],
    [`where.owner=${ADMIN_ID}&limit=2`, [0, 1]],
    ['where.owner=65a000000000000000000001', []],
    [`where.branch=${ROOT}&offset=11`, [11]],
    ['where.access=65a000000000000000000001', []],
    ['where.missing=1', []],
    ['search=label', all.slice(6)],
    ['search=LABEL 1', [10, 11]],
    ['search=%20LABEL 1%C2%A0', [10, 11]],
    ['search=(1)', [2]],
    ['search=.b*', [3]],
    ['search=50%25', [4]],
    ['search=ü', [0]],
    ['search=zzz', []],
    ['search=a&where.n=1,2&sortBy=-n', [2, 1]],
  ])('answers %s', async (query, expected) =>
    expect(numbers(await ask(encodeURI(query).replaceAll('%25', '%')))).toEqual(expected),
  );

  test('finds entities of a group, also by a reference in capitals', async () => {
    expect(numbers(await ask(`where.group=${team}`))).toEqual([2]);
    expect(numbers(await ask(`where.group=${team.toUpperCase()},${ROOT}&limit=4`))).toEqual([0, 1, 2, 3]);
    expect(numbers(await ask(`where._id=${labels[1]?._id},${labels[4]?._id}`))).toEqual([1, 4]);
  });

  test('finds objects by id, name and model, and users by login', async () => {
    await service.admin('POST', 'objects', { id: '0042', name: 'Tram' });
    const found = async (store: string, query: string) => (await ask(query, store)).body.length;
    expect(await found('objects', 'search=004')).toBe(1);
    expect(await found('objects', 'search=tra')).toBe(1);
    expect(await found('objects', 'where.id=0042')).toBe(1);
    expect(await found('objects', 'where.id=42')).toBe(0);
    expect(
      await found('objects', 'where.model=000000000000000000000010&where.models.id=000000000000000000000010'),
    ).toBe(1);
    expect(await found('objects', 'where.active=true&where.status=')).toBe(1);
    expect(await found('users', 'search=ADM')).toBe(1);
  });

  test.each<[store: string, query: string, mention: string]>([
    ['users', 'where._password=x', '_password'],
    ['users', 'where._password.x=1', '_password'],
    ['users', 'sortBy=_password', '_password'],
    ['users', 'sortBy=-_password.a', '_password'],
    ['tokens', 'where._expires=null', '_expires'],
    ['users', 'meta=1&where._password=null', '_password'],
    ['objects', 'where.state.speed=1', 'state'],
    ['objects', 'sortBy=state.speed', 'state'],
  ])('finds nothing by hidden fields: %s?%s', async (store, query, mention) => {
    expectRefusal(await ask(query, store), 400, mention);
  });
});

describe('only', () => {
  const shown = (entity: Record<string, unknown> | undefined, ...names: string[]) =>
    Object.fromEntries(['_id', ...names].map((name) => [name, entity?.[name]]));

  test.each<[query: string, names: string[]]>([
    ['only=n', ['n']],
    ['only=_id', []],
    ['only=kind,n', ['kind', 'n']],
    ['only=kind%2Cn', ['kind', 'n']],
    ['only=kind%2C%20n', ['kind', 'n']],
    ['only=n,n', ['n']],
    ['only=missing', []],
    ['only=config.a.b,config.c', ['config']],
    ['only=config.a,config', ['config']],
    ['only=', Object.keys({ n: 1 })],
  ])('returns these fields and _id: %s', async (query, names) => {
    const [first] = (await ask(`limit=1&${query}`)).body;
    expect(first).toEqual(query === 'only=' ? labels[0] : shown(labels[0], ...names));
    const { success, ...single } = (await service.admin('GET', `labels/${labels[0]?._id}?${query}`)).body;
    expect({ success, single }).toEqual({ success: true, single: first });
  });

  test('returns a part of a nested field', async () => {
    expect((await ask('limit=1&only=config.a')).body).toEqual([{ _id: labels[0]?._id, config: { a: { b: 'deep' } } }]);
  });
});

describe('meta', () => {
  test.each<[query: string, expected: number[]]>([
    ['meta=true', all],
    ['meta=1', all],
    ['meta', all],
    ['meta=yes', all],
    [`meta=true&from=${T0 + 5 * MINUTE}`, all.slice(5)],
    ['meta=true&where.tags=blue', [3, 5]],
    ['meta=true&search=label', all.slice(6)],
    ['meta=true&where.n=99', []],
  ])('counts and returns the first and the last: %s', async (query, expected) => {
    const first = labels[expected[0] ?? -1] ?? null;
    const last = labels[expected.at(-1) ?? -1] ?? null;
    const answer = await ask(query);
    expect(answer.body).toEqual({ count: expected.length, first, last });
    expect(Object.keys(answer.body)).toEqual(['count', 'first', 'last']);
  });

  test('is empty for an empty list, and respects `only`', async () => {
    expect((await ask('meta=true', 'handlers')).body).toEqual({ count: 0, first: null, last: null });
    expect((await ask('meta=true&only=n')).body).toEqual({
      count: COUNT,
      first: { _id: labels[0]?._id, n: 0 },
      last: { _id: labels[11]?._id, n: 11 },
    });
  });

  test('covers only what the caller sees, like lists', async () => {
    await service.admin('POST', 'users', { login: 'member', password: 'long enough', group: team });
    const member = service.as(await service.tokenOf('member', 'long enough'));
    expect((await member('GET', 'labels')).body).toEqual([labels[2]]);
    expect((await member('GET', 'labels?meta=true')).body).toEqual({ count: 1, first: labels[2], last: labels[2] });
    expect((await member('GET', 'labels?where.n=1,2&search=a')).body).toEqual([labels[2]]);
    expectRefusal(await member('GET', `labels/${labels[1]?._id}`), 404);
  });
});

test('refuses an invalid parameter on every list, and names it', async () => {
  await service.admin('POST', 'objects', { id: 'refusing', name: 'n' });
  const refused = [
    'limit=-1',
    'offset=1.5',
    'limit=x',
    'limit=1&limit=2',
    'meta=true&limit=1',
    'meta=true&offset=0',
    'from=x',
    'from=20261123',
    'end=1795500000',
    'from=1&begin=2',
    'to=1&end=2',
    'only=$x',
    'sortBy=$x',
    'where.$or=1',
    'after=x',
    'where.a=1&where.a=2',
    'only=a&only=b',
  ];
  for (const store of ['labels', 'objects', 'commands', 'objects/refusing/packets']) {
    for (const query of refused)
      expectRefusal(await ask(query, store), 400, /(?:.*&)?([\w.$]+)=/.exec(query)?.[1] as string);
  }
});

describe('a walk from page to page by Link', () => {
  async function walk(start: string): Promise<{ pages: number[]; found: number[] }> {
    const pages: number[] = [];
    const found: number[] = [];
    for (let path: string | undefined = `/api/v1/labels?${start}`; path !== undefined; ) {
      const answer: Answer = await service.admin('GET', path);
      expect(answer.status).toBe(200);
      pages.push(answer.body.length);
      found.push(...numbers(answer));
      path = pathOf(answer.headers.link);
    }
    return { pages, found };
  }

  test.each<[start: string, pages: number[], found: number[]]>([
    ['limit=5', [5, 5, 2], all],
    ['limit=1', [...all.map(() => 1), 0], all],
    ['limit=6', [6, 6, 0], all],
    ['limit=12', [12, 0], all],
    ['limit=13', [12], all],
    ['', [12], all],
    ['limit=4&offset=3', [4, 4, 1], all.slice(3)],
    ['limit=2&where.n=1,4,7,9,11', [2, 2, 1], [1, 4, 7, 9, 11]],
    ['limit=3&search=label&only=n%2Cname', [3, 3, 0], all.slice(6)],
    [`limit=4&from=${T0 + 2 * MINUTE}&to=${T0 + 8 * MINUTE}&colour=a%26b`, [4, 3], all.slice(2, 9)],
  ])('visits each element once, in order: %s', async (start, pages, found) =>
    expect(await walk(start)).toEqual({ pages, found }),
  );

  test('continues correctly after deletions and additions', async () => {
    const { headers } = await ask('limit=3', 'geofences');
    expect(headers.link).toBeUndefined();
    const ids: string[] = [];
    for (const n of [0, 1, 2, 3]) ids.push(entityOf(await service.admin('POST', 'geofences', { n }))._id);
    const first = await ask('limit=2', 'geofences');
    await service.admin('DELETE', `geofences/${ids[1]}`);
    const rest = await service.admin('GET', pathOf(first.headers.link) as string);
    expect([numbers(first), numbers(rest)]).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });

  test('has no next page in an order of its own, nor after an empty page', async () => {
    expect((await ask('limit=2&sortBy=n')).headers.link).toBeUndefined();
    expect((await ask('limit=0')).headers.link).toBeUndefined();
    expect((await ask('meta=true')).headers.link).toBeUndefined();
  });
});

describe('a list on the wire', () => {
  const linesOf = (text: string) => text.split('\n');
  test('has one line per element, and a Content-Length', async () => {
    for (const query of ['', 'limit=1', 'limit=2', 'limit=0', 'where.n=99', 'only=n']) {
      const answer = await ask(query);
      const elements = answer.body.map((element: object) => JSON.stringify(element)).join('\n,\n');
      expect(answer.text).toBe(elements === '' ? '[\n]\n' : `[\n${elements}\n]\n`);
      expect(answer.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'content-length': String(Buffer.byteLength(answer.text)),
      });
    }
  });

  test('contains at most 10000 entities, and the rest with offset or after', async () => {
    const common = { owner: new ObjectId(ADMIN_ID), group: ROOT, branch: [ROOT], access: [], time: T0 };
    await service.client
      .db()
      .collection('handlers')
      .insertMany(Array.from({ length: 10_007 }, (_, n) => ({ n, ...common })));
    for (const query of ['only=n', 'limit=10001&only=n', 'limit=999999&only=n', 'limit=10000&only=n']) {
      const answer = await ask(query, 'handlers');
      expect([answer.body.length, answer.body[0].n, answer.body[9_999].n]).toEqual([10_000, 0, 9_999]);
      expect(linesOf(answer.text)).toHaveLength(20_002);
      const next = await service.admin('GET', pathOf(answer.headers.link) as string);
      expect(numbers(next)).toEqual([10_000, 10_001, 10_002, 10_003, 10_004, 10_005, 10_006]);
    }
    expect(numbers(await ask('offset=10000', 'handlers'))).toHaveLength(7);
    expect((await ask('meta=true&only=n', 'handlers')).body).toMatchObject({ count: 10_007, last: { n: 10_006 } });
  });
});
