/** Series of the parameters whose names match a pattern: the same as by their names, bounded, and of each object its own. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';

const service = useService();
const START = Date.UTC(2026, 5, 1);
const PACKETS = Array.from({ length: 600 }, (_, nth) => ({
  time: START + nth * 1_000,
  temp1: nth,
  Temp3: 1,
  ...(nth < 3 && { temp2: -nth, tem: 1 }),
  ...(nth > 590 && { 'temp rear': nth, 'a*b': 1, 'a,b': 2, axb: 3 }),
  ...(nth % 2 === 0 && { engine: { rpm: nth, oil: { temp: 80 }, temp: 90 }, engine2: { rpm: 1 } }),
  text: 'x',
  none: null,
}));

const ask = async (params: string, more = '') =>
  service.admin('GET', `objects/pattern-1/series?points=3&params=${encodeURIComponent(params)}${more}`);
const namesIn = ({ time: _, ...columns }: object & { time: number[] }): string[] => Object.keys(columns);

beforeAll(async () => {
  for (const id of ['pattern-1', 'pattern-2', 'many']) await service.admin('POST', 'objects', { id, name: id });
  expect((await service.admin('POST', 'objects/pattern-1/packets', PACKETS)).status).toBe(200);
  await service.admin('POST', 'objects/pattern-2/packets', { time: START, temp9: 9 });
  const names = Array.from({ length: 101 }, (_, nth) => [`mac_${nth}`, nth]);
  await service.admin('POST', 'objects/many/packets', {
    time: START,
    ...Object.fromEntries(names),
    few_1: 1,
    few_2: 2,
  });
});

describe('a pattern', () => {
  test.each<[string, string[]]>([
    ['temp*', ['temp rear', 'temp1', 'temp2']],
    ['*1', ['temp1']],
    ['t*m*1', ['temp1']],
    ['temp*1', ['temp1']],
    ['*emp*', ['Temp3', 'temp rear', 'temp1', 'temp2']],
    ['engine.*', ['engine.rpm', 'engine.temp']],
    ['engine*.rpm', ['engine.rpm', 'engine2.rpm']],
    ['*.*', ['engine.rpm', 'engine.temp', 'engine2.rpm']],
    ['*.*.temp', ['engine.oil.temp']],
    ['engine.oil.*', ['engine.oil.temp']],
    ['a*b', ['a*b', 'a,b', 'axb']],
    ['"a*b"', ['a*b']],
    ['"a,b",a*x*b', ['a,b', 'axb']],
    ['text,temp2,temp*', ['text', 'temp2', 'temp rear', 'temp1']],
    ['temp*,temp*,*1', ['temp rear', 'temp1', 'temp2']],
    ['missing*', []],
    ['non*', []],
    ['_*', []],
    ['time*', []],
    ['missing,missing*', ['missing']],
  ])('returns for %s the columns %j, as by their names', async (params, expected) => {
    const { status, body } = await ask(params);
    expect([status, namesIn(body)]).toEqual([200, expected]);
    expect(body.time.length).toBeGreaterThan(0);
    for (const name of expected.filter((one) => one !== 'missing')) {
      const byName = (await ask(`"${name}"`)).body;
      expect(body[name]).toEqual(byName[name]);
      expect(body[name]).not.toBeNull();
    }
  });

  test('returns what an interval has, and what holds at its beginning', async () => {
    const from = START + 10_000;
    expect(namesIn((await ask('temp*', `&from=${from}&to=${from + 5_000}`)).body)).toEqual(['temp1']);
    const held = (await ask('temp*', `&from=${from}&to=${from + 5_000}&gap=1 min`)).body;
    expect(namesIn(held)).toEqual(['temp1', 'temp2']);
    expect(held.temp2.last[0]).toBe(-2);
  });

  test('returns of each object its own, and of an object without packets none', async () => {
    const { body } = await service.admin(
      'GET',
      'series?objects=pattern-1,pattern-2,unknown&params=temp*&points=1&fn=last',
    );
    expect(body.objects).toEqual({
      'pattern-1': { 'temp rear': { last: [599] }, temp1: { last: [599] }, temp2: { last: [-2] } },
      'pattern-2': { temp9: { last: [9] } },
      unknown: null,
    });
    await service.admin('POST', 'objects', { id: 'empty', name: 'x' });
    expect((await service.admin('GET', 'objects/empty/series?params=t*')).body).toEqual({ time: [] });
  });

  test('is refused where too many parameters match, or the numbers are too many, and says what to do', async () => {
    const many = await service.admin('GET', 'objects/many/series?params=mac_*');
    expect([many.status, many.body.helper.message]).toEqual([
      413,
      'params: more than 100 parameters match: ask for a narrower pattern',
    ]);
    const cells = await service.admin(
      'GET',
      'objects/many/series?params=mac_1*,mac_2*&points=10000&fn=minmax,avg,sum,count&from=1700000000000',
    );
    expect([cells.status, cells.body.helper.message]).toEqual([413, expect.stringContaining('fewer points')]);
    expect(namesIn((await service.admin('GET', 'objects/many/series?params=few*')).body)).toEqual(['few_1', 'few_2']);
  });

  test.each([
    [Array.from({ length: 21 }, (_, nth) => `a${nth}*`).join(','), /^params: more than 20/],
    ['$*', /^params: "\$\*" is not a field name/],
    ['a..*', /^params: "a\.\.\*" is not a field name/],
  ])('is refused that is not well formed: %s', async (params, message) => {
    const { status, body } = await ask(params);
    expect([status, body.helper.message]).toEqual([400, expect.stringMatching(message)]);
  });
});
