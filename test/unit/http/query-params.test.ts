/** Parsing of query strings to list queries, or to an error that names the parameter. */
import { parse } from 'node:querystring';
import { describe, expect, test } from '@jest/globals';
import { distinctPaths, isPath } from '../../../src/core/list.js';
import { parseListQuery } from '../../../src/platform/http/list-params.js';
import { parseFields } from '../../../src/platform/http/query-params.js';

const read = (text: string) => parseListQuery(parse(text) as Parameters<typeof parseListQuery>[0]);
const SELECTION = { fromMs: null, toMs: null, filters: [], search: null, only: null };
const PAGE = { ...SELECTION, kind: 'page', offset: 0, limit: 10_000, after: null, sort: null };
const ID = '65a000000000000000000001';
const filter = (path: string, ...values: [value: unknown, text: string][]) => ({
  filters: [{ path, values: values.map(([value, text]) => ({ value, text })) }],
});

describe('a valid query', () => {
  test.each<[query: string, asked: object]>([
    ['', PAGE],
    ['offset=5&limit=7', { ...PAGE, offset: 5, limit: 7 }],
    ['limit=0', { ...PAGE, limit: 0 }],
    ['limit=10000', PAGE],
    ['limit=10001', PAGE],
    ['limit=999999999', PAGE],
    ['offset=10000000', { ...PAGE, offset: 10_000_000 }],
    ['limit=007', { ...PAGE, limit: 7 }],
    ['meta=true', { ...SELECTION, kind: 'summary' }],
    ['meta=1', { ...SELECTION, kind: 'summary' }],
    ['meta=', { ...SELECTION, kind: 'summary' }],
    ['meta', { ...SELECTION, kind: 'summary' }],
    ['meta=TRUE', { ...SELECTION, kind: 'summary' }],
    ['meta=false&limit=1', { ...PAGE, limit: 1 }],
    ['meta=0&offset=1', { ...PAGE, offset: 1 }],
    ['meta=true&from=1&where.a=x', { ...SELECTION, kind: 'summary', fromMs: 1, ...filter('a', ['x', 'x']) }],
    ['from=100&to=200', { ...PAGE, fromMs: 100, toMs: 200 }],
    ['begin=1795500000000&end=1795500000999', { ...PAGE, fromMs: 1_795_500_000_000, toMs: 1_795_500_000_999 }],
    ['from=100&end=200', { ...PAGE, fromMs: 100, toMs: 200 }],
    ['from=1970-01-01&to=1970-01-01', { ...PAGE, fromMs: 0, toMs: 86_399_999 }],
    ['begin=1970-01-02&end=1970-01-02', { ...PAGE, fromMs: 86_400_000, toMs: 172_799_999 }],
    ['to=1970-01-01&end=1970-01-01T23:59:59.999', { ...PAGE, toMs: 86_399_999 }],
    ['from=100&begin=1970-01-01T00:00:00.1', { ...PAGE, fromMs: 100 }],
    ['to=1970-01-01T03:00+03:00', { ...PAGE, toMs: 0 }],
    ['to=1970-01-01T03:00%2B03:00', { ...PAGE, toMs: 0 }],
    ['from=200&to=100', { ...PAGE, fromMs: 200, toMs: 100 }],
    ['from=&to=&begin=&end=', PAGE],
    ['from=&begin=100&to=200&end=', { ...PAGE, fromMs: 100, toMs: 200 }],
    ['only=name,id', { ...PAGE, only: ['name', 'id'] }],
    ['only=name%2Cid', { ...PAGE, only: ['name', 'id'] }],
    ['only=name,+id', { ...PAGE, only: ['name', 'id'] }],
    ['only=config.auth,name,name', { ...PAGE, only: ['config.auth', 'name'] }],
    ['only=3303_0_5601,in1.voltage,_ts,!lock', { ...PAGE, only: ['3303_0_5601', 'in1.voltage', '_ts', '!lock'] }],
    ['only=a.b,a', { ...PAGE, only: ['a'] }],
    ['only=1,a b,%D0%B8%D0%BC%D1%8F,3303/0/5601', { ...PAGE, only: ['1', 'a b', 'имя', '3303/0/5601'] }],
    ['only="a,b", """"," c "', { ...PAGE, only: ['a,b', '"', ' c '] }],
    ['only=5" pipe,"a"b', { ...PAGE, only: ['5" pipe', '"a"b'] }],
    ['only=', PAGE],
    ['search=Car+1', { ...PAGE, search: 'Car 1' }],
    ['search=', PAGE],
    ['sortBy=name', { ...PAGE, sort: { path: 'name', descending: false } }],
    ['sortBy=-config.a', { ...PAGE, sort: { path: 'config.a', descending: true } }],
    ['sortBy=--a', { ...PAGE, sort: { path: '-a', descending: true } }],
    ['sortBy="-a,b"', { ...PAGE, sort: { path: '-a,b', descending: false } }],
    ['sortBy=', PAGE],
    [`after=${ID}`, { ...PAGE, after: ID }],
    [`after=${ID}&limit=2`, { ...PAGE, after: ID, limit: 2 }],
    ['colour=red&colour=blue&$where=1&__proto__=1&_=17&limit[]=1&where=x', PAGE],
  ])('is parsed: %j', (query, asked) => expect(read(query)).toEqual(asked));
});

describe('a filter', () => {
  test.each<[query: string, filters: object]>([
    ['where.a=x', filter('a', ['x', 'x'])],
    ['where.a=5', filter('a', [5, '5'])],
    ['where.a=-0.5', filter('a', [-0.5, '-0.5'])],
    ['where.a=1e3', filter('a', [1_000, '1e3'], ['1e3', '1e3'])],
    ['where.a=0012', filter('a', [12, '0012'], ['0012', '0012'])],
    ['where.a=1.10', filter('a', [1.1, '1.10'], ['1.10', '1.10'])],
    ['where.a=.5,7', filter('a', [0.5, '.5'], ['.5', '.5'], [7, '7'])],
    ['where.a="0012"', filter('a', ['0012', '0012'])],
    ['where.a=8944110068765432109', filter('a', ['8944110068765432109', '8944110068765432109'])],
    ['where.a=-8944110068765432109', filter('a', ['-8944110068765432109', '-8944110068765432109'])],
    ['where.a=9007199254740991', filter('a', [9_007_199_254_740_991, '9007199254740991'])],
    ['where.a=1e999', filter('a', ['1e999', '1e999'])],
    ['where.a=0x1', filter('a', ['0x1', '0x1'])],
    ['where.a=true', filter('a', [true, 'true'])],
    ['where.a=false', filter('a', [false, 'false'])],
    ['where.a=null', filter('a', [null, 'null'])],
    ['where.a="null"', filter('a', ['null', 'null'])],
    ['where.a="1234"', filter('a', ['1234', '1234'])],
    ['where.a="x,y"', filter('a', ['x,y', 'x,y'])],
    ['where.a=1,"2",x,null', filter('a', [1, '1'], ['2', '2'], ['x', 'x'], [null, 'null'])],
    ['where.a=', filter('a', ['', ''])],
    ['where.a=""', filter('a', ['', ''])],
    ['where.a=x,', filter('a', ['x', 'x'], ['', ''])],
    ['where.a=,', filter('a', ['', ''], ['', ''])],
    ['where.a=,x', filter('a', ['', ''], ['x', 'x'])],
    ['where.a=5" pipe', filter('a', ['5" pipe', '5" pipe'])],
    ['where.a="x"y', filter('a', ['"x"y', '"x"y'])],
    ['where.a=5" pipe,7" pipe', filter('a', ['5" pipe', '5" pipe'], ['7" pipe', '7" pipe'])],
    ['where.a="5"" pipe, new"', filter('a', ['5" pipe, new', '5" pipe, new'])],
    ['where.a="""5"""', filter('a', ['"5"', '"5"'])],
    ['where.a= x ,5', filter('a', [' x ', ' x '], [5, '5'])],
    ['where_a=5', filter('a', [5, '5'])],
    ['where_a.b_c=x,"1"', filter('a.b_c', ['x', 'x'], ['1', '1'])],
    ['where__id=1', filter('_id', [1, '1'])],
    ['where.a.b.c=1', filter('a.b.c', [1, '1'])],
    ['where._id=1', filter('_id', [1, '1'])],
  ])('is parsed: %j', (query, filters) => expect(read(query)).toEqual({ ...PAGE, ...filters }));
});

const many = (count: number, make: (at: number) => string, glue: string) =>
  Array.from({ length: count }, (_, at) => make(at)).join(glue);

describe('an invalid query', () => {
  test.each<[query: string, why: string]>([
    ...['offset', 'limit'].flatMap((name): [string, string][] => [
      [`${name}=-1`, `${name}: expected a whole number`],
      [`${name}=1.5`, `${name}: expected a whole number`],
      [`${name}=x`, `${name}: expected a whole number`],
      [`${name}=`, `${name}: expected a whole number`],
      [`${name}=1e3`, `${name}: expected a whole number`],
      [`${name}=%2B1`, `${name}: expected a whole number`],
      [`${name}=Infinity`, `${name}: expected a whole number`],
      [`${name}=1&${name}=1`, `${name}: given more than once`],
      [`${name}=1&meta=true`, `${name}: cannot be combined with meta`],
      [`${name}=0&meta`, `${name}: cannot be combined with meta`],
      [`${name}=x&meta=1`, `${name}: cannot be combined with meta`],
    ]),
    ['offset=10000001', 'offset: at most 10000000'],
    ...['from', 'to', 'begin', 'end'].flatMap((name): [string, string][] => [
      [`${name}=yesterday`, `${name}: expected ms since the epoch`],
      [`${name}=20240229`, `${name}: these digits look like a date: write 2024-02-29`],
      [`${name}=1795500000`, `${name}: these look like seconds`],
      [`${name}=2024-02-30`, `${name}: expected ms since the epoch`],
      [`${name}=1&${name}=2`, `${name}: given more than once`],
      [`meta=true&${name}=x`, `${name}: expected ms since the epoch`],
    ]),
    ['from=1&begin=2', 'from and begin: two different times'],
    ['to=1&end=2', 'to and end: two different times'],
    ['meta=true&meta=true', 'meta: given more than once'],
    ['only=a&only=b', 'only: given more than once'],
    ['only=a,,b', 'only: "" is not a field name'],
    ['only=$where', 'only: "$where" is not a field name'],
    ['only=a..b', 'only: "a..b" is not a field name'],
    ['only=a.$', 'only: "a.$" is not a field name'],
    ['only=_bsontype', 'only: "_bsontype" is not a field name'],
    ['only=""', 'only: "" is not a field name'],
    ['only=a%00', 'is not a field name'],
    [`only=${many(51, (at) => `f${at}`, ',')}`, 'only: more than 50 names'],
    ['where.$where=1', '"where.$where": not a field name'],
    ['where.a.$gt=1', '"where.a.$gt": not a field name'],
    ['where_$where=1', '"where_$where": not a field name'],
    ['where.a._bsontype=1', '"where.a._bsontype": not a field name'],
    ['where_=1', '"where_": not a field name'],
    ['where.=1', '"where.": not a field name'],
    ['where.a=1&where.a=2', 'where.a: given more than once'],
    ['where.a=%ED%A0%80&where.a=1', 'where.a: given more than once'],
    [many(21, (at) => `where.f${at}=1`, '&'), 'where: more than 20 filters'],
    [`where.a=${many(101, String, ',')}`, 'where.a: more than 100 values'],
    ['sortBy=$x', 'sortBy: expected a field name'],
    ['sortBy=a,b', 'sortBy: expected a field name'],
    ['sortBy=a&sortBy=b', 'sortBy: given more than once'],
    ['search=a&search=b', 'search: given more than once'],
    [`search=${'x'.repeat(129)}`, 'search: expected at most 128 characters'],
    ['after=x', 'after: expected the _id'],
    ['after=', 'after: expected the _id'],
    [`after=${ID}&sortBy=name`, 'after: goes with the default order'],
    [`after=${ID}&after=${ID}`, 'after: given more than once'],
  ])('is refused: %j', (query, why) => {
    expect(() => read(query)).toThrow(expect.objectContaining({ status: 400, message: expect.stringContaining(why) }));
  });
});

describe('field names', () => {
  test.each<[text: string, is: boolean]>([
    ['name', true],
    ['_id', true],
    ['a.b.0.c', true],
    ['a-b', true],
    ['0', true],
    ['a b', true],
    ['имя', true],
    ['a$b', true],
    ['a\n', true],
    [`${'m'.repeat(128)}.${'n'.repeat(128)}`, true],
    [Array.from({ length: 20 }, () => 'a').join('.'), true],
    [Array.from({ length: 21 }, () => 'a').join('.'), false],
    ['a.', false],
    ['.a', false],
    ['', false],
    ['$a', false],
    ['a.$b', false],
    ['a\0', false],
    ['_bsontype', false],
    ['\ud800', false],
    ['x'.repeat(129), false],
  ])('reads %j as %p', (text, is) => expect(isPath(text)).toBe(is));

  test.each<[paths: string[], distinct: string[]]>([
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
    [['a', 'a'], ['a']],
    [
      ['a.b.c', 'a', 'ab', 'a.b'],
      ['a', 'ab'],
    ],
    [
      ['a.b', 'a.c'],
      ['a.b', 'a.c'],
    ],
  ])('removes paths below another one from %j: %j', (paths, distinct) =>
    expect(distinctPaths(paths)).toEqual(distinct),
  );

  test('parses only for single reads and ignores list parameters', () => {
    const only = (text: string) => parseFields(parse(text) as Parameters<typeof parseFields>[0]);
    expect([only(''), only('only=a,b&limit=x&meta=1'), only('only=')]).toEqual([null, ['a', 'b'], null]);
  });
});
