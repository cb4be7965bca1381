/** Parameters and objects with names of any script and with any sign are selected, filtered and charted like all others. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { toQueryString } from '../../src/client/query.js';
import { expectRefusal } from '../support/answers.js';
import { useService } from '../support/fixture.js';

const service = useService();
const TIME_MS = Date.UTC(2026, 0, 2);
/** Every name that a packet may have, with its spelling in a list where that is another one. */
const NAMES: readonly [name: string, spelled?: string][] = [
  ['Öldruck'],
  ['Температура'],
  ['温度'],
  ['🌡'],
  ['air temperature'],
  ['3303/0/5601'],
  ['!govecs_lock'],
  ['7'],
  ['-1'],
  ['a$b'],
  ['100%'],
  ['a&b=c;d'],
  ['#+*'],
  ['5" pipe'],
  ['\\'],
  ['a\tb'],
  ['a,b', '"a,b"'],
  ['"', '""""'],
  ['"a","b"', '"""a"",""b"""'],
  [' a ', '" a "'],
  [' ', '" "'],
  ['n'.repeat(128)],
];
const DEEP = 'Motor 1.Öl, heiß';

const numberOf = (name: string): number => NAMES.findIndex(([one]) => one === name) + 1;
const spell = ([name, spelled = name]: readonly [name: string, spelled?: string]): string =>
  encodeURIComponent(spelled);
const ask = async (path: string) => {
  const { status, body } = await service.admin('GET', path);
  expect([path, status, body.helper]).toEqual([path, 200, undefined]);
  return body;
};

beforeAll(async () => {
  const parameters = Object.fromEntries(NAMES.map(([name]) => [name, numberOf(name)]));
  for (const id of ['any', 'any, too', '"any"']) {
    await service.admin('POST', 'objects', { id, name: 'Any', ...(id === 'any' && parameters) });
    const packet = {
      time: TIME_MS,
      ...parameters,
      'Motor 1': { 'Öl, heiß': 90 },
      ['m'.repeat(128)]: { ['n'.repeat(128)]: 1 },
    };
    const path = `objects/${encodeURIComponent(id)}/packets`;
    const { status, body } = await service.admin('POST', path, packet);
    expect([status, body.helper]).toEqual([200, undefined]);
  }
});

describe.each(NAMES)('a parameter called %j', (...pair) => {
  const [name] = pair;
  const spelled = spell(pair);

  test('has a series', async () => {
    expect(await ask(`objects/any/series?params=${spelled}&fn=max&points=1`)).toEqual({
      time: [TIME_MS],
      [name]: { max: [numberOf(name)] },
    });
  });

  test('is selected, filtered and sorted by', async () => {
    const shown = { _id: expect.any(String), [name]: numberOf(name) };
    const where = `where.${encodeURIComponent(name)}=${numberOf(name)}`;
    for (const path of ['objects', 'objects/any/packets']) {
      expect(await ask(`${path}?only=${spelled}&${where}&sortBy=-${spelled}`)).toEqual([shown]);
      expect(await ask(`${path}?where.${encodeURIComponent(name)}=-7`)).toEqual([]);
    }
  });

  test('has a latest value', async () => {
    const [, spelling = name] = pair;
    const only = spelling.startsWith('"') ? `"state.${spelling.slice(1)}` : `state.${spelling}`;
    const [found] = await ask(`objects?state=latest-of-each&where.id=any&only=${encodeURIComponent(only)}`);
    expect(found.latest).toEqual({ [name]: { value: numberOf(name), time: TIME_MS } });
  });
});

test('charts all of them in one list, also with white space between them', async () => {
  const some = NAMES.slice(0, 20);
  const series = await ask(`objects/any/series?params=${some.map(spell).join(',%20')}&points=1`);
  expect(Object.keys(series).toSorted()).toEqual(['time', ...some.map(([name]) => name)].toSorted());
});

test('charts a nested parameter, and one with two names of the greatest length', async () => {
  const long = `${'m'.repeat(128)}.${'n'.repeat(128)}`;
  const params = `"${DEEP}",${long}`;
  expect(await ask(`objects/any/series?params=${encodeURIComponent(params)}&fn=last&points=1`)).toEqual({
    time: [TIME_MS],
    [DEEP]: { last: [90] },
    [long]: { last: [1] },
  });
});

test('exports the parameters with such names alone', async () => {
  const only = encodeURIComponent('"a,b",Öldruck,"""a"",""b"""');
  const { text } = await service.admin('GET', `objects/any/packets?format=csv&only=${only}`);
  expect(text.split('\r\n')[0]).toBe('_id,"a,b",Öldruck,"""a"",""b"""');
});

test('keeps such names in the address of the next page', async () => {
  const { headers } = await service.admin('GET', `objects?limit=1&only=${encodeURIComponent('Öldruck,"a,b"')}`);
  const [, next] = /^<\/api\/v1\/([^>]+)>/.exec(headers.link as string) ?? [];
  expect(await ask(next as string)).toHaveLength(1);
});

describe('objects whose own id has a comma or quotes', () => {
  const named = encodeURIComponent('any,"any, too","""any"""');

  test('have series with others', async () => {
    const { objects } = await ask(`series?objects=${named}&params=7&fn=max&points=1`);
    expect(objects).toEqual(Object.fromEntries(['any', 'any, too', '"any"'].map((id) => [id, { 7: { max: [8] } }])));
  });

  test('have past events with others', async () => {
    const events = await ask(`events?objects=${named}&events=object-packet&from=${TIME_MS}&to=${TIME_MS}`);
    expect(events.map(({ data }: { data: { id: string } }) => data.id).toSorted()).toEqual([
      '"any"',
      'any',
      'any, too',
    ]);
  });
});

describe('a filter in the spelling of the client', () => {
  const values = ['5" pipe', '7" pipe', '5', '"5"', 'a', 'b"', 'a,b"', '"', '""', ' "x" ', ',', 'null', '"a","b"'];

  beforeAll(async () => {
    for (const name of values) await service.admin('POST', 'labels', { name });
  });

  test.each(values)('finds the text %j alone', async (name) => {
    expect(await ask(`labels${toQueryString({ where: { name } })}`)).toMatchObject([{ name }]);
  });

  test('finds each text of a list', async () => {
    const found = await ask(`labels${toQueryString({ where: { name: values } })}`);
    expect(found.map(({ name }: { name: string }) => name)).toEqual(values);
  });
});

test.each(['$where', 'a.$gt', 'a..b', '.', 'a.', '%00', 'a%00b', '_bsontype', 'a._bsontype', 'n'.repeat(129)])(
  'refuses the name %s in every query',
  async (name) => {
    for (const query of [`only=${name}`, `where.${name}=1`, `sortBy=${name}`, `sortBy=-${name}`]) {
      for (const path of ['objects', 'objects/any/packets']) {
        const answer = await service.admin('GET', `${path}?${query}`);
        expect([path, query, answer.status]).toEqual([path, query, 400]);
      }
    }
    expectRefusal(await service.admin('GET', `objects/any/series?params=${name}`), 400, 'params');
  },
);
