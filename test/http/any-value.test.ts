/** Values of every kind in every place that a client can fill: the service stores or refuses them, and never answers 500. */
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { STORES } from '../../src/core/stores.js';
import { ADMIN, type Answer, useService } from '../support/fixture.js';
import { random, runsOf } from '../support/runs.js';

const service = useService();

/** As JSON: values that are neither text nor number, or that become something unexpected when they are converted. */
const VALUES = [
  '{"toString":1}',
  '{"valueOf":1,"toString":{}}',
  '[{"toString":1}]',
  '[[{"toString":null}]]',
  '{"length":-1}',
  '{"toJSON":1}',
  '{"then":1}',
  '{"hasOwnProperty":1}',
  '{"split":1,"trim":1}',
  '{}',
  '[]',
  'null',
  'true',
  '-0',
  '1e308',
  '0.5',
  '""',
  '"\\u0000"',
  '"__proto__"',
  '"[object Object]"',
  '{"_bsontype":"ObjectId"}',
];

/** The required fields of each store. */
const NEEDED: Readonly<Record<string, Record<string, unknown>>> = {
  objects: { id: 'x', name: 'x' },
  users: { login: 'x', password: 'long enough' },
  groups: { name: 'x' },
  roles: { name: 'x', credentials: ['GET /objects'] },
  tokens: { name: 'x' },
  stores: { name: 'xs' },
};
/** Places deeper than a field, by store: `?` stands for the value. */
const DEEPER: Readonly<Record<string, readonly string[]>> = {
  objects: ['{"config":{"auth":?}}', '{"config":{"auth":{"username":?}}}', '{"config":{"auth":{"password":?}}}'].concat(
    ['{"config":{"offlineAfter":?}}', '{"models":?}', '{"state":?}'],
  ),
  models: ['id', 'name', 'type', 'dataType', 'reference', 'params', 'children']
    .flatMap((name) => [`{"data":{"${name}":?}}`, `{"data":{"children":[{"type":"argument","id":"a","${name}":?}]}}`])
    .concat(['{"data":{"children":[{"id":?,"children":[{"id":"a","type":"argument"}]}]}}']),
  roles: ['{"credentials":[?]}'],
  tokens: ['{"scopes":[?]}'],
  stores: ['type', 'properties', 'required', 'enum', 'pattern', 'minimum', 'items', 'format', 'uniqueItems', 'not']
    .map((name) => `{"schema":{"${name}":?}}`)
    .concat(['{"schema":{"properties":{"a":?}}}', '{"schema":{"patternProperties":?}}', '{"schema":{"anyOf":[?]}}']),
};
const COMMON = ['_id', 'owner', 'group', 'branch', 'access', 'time', '_at', 'success', 'other'];

const WRITABLE = [...STORES.values()].filter(({ readOnly }) => !readOnly);
const placesOf = (name: string): string[] => {
  const fields = Object.keys(STORES.get(name)?.schema.shape ?? {});
  return [...fields, ...COMMON].map((field) => `{"${field}":?}`).concat(DEEPER[name] ?? []);
};

/** Some of the values, others for each place; all of them in a soak. */
function someOf<Value>(values: readonly Value[]): Value[] {
  const rest = [...values];
  return Array.from(
    { length: runsOf(values.length) },
    () => rest.splice(Math.floor(random() * rest.length), 1)[0] as Value,
  );
}

const ids: Record<string, string> = {};
let count = 0;
/** A valid entity of the store as JSON, with the value in the place. */
function filled(store: string, place: string, value: string): string {
  const unique = { id: `x${++count}`, login: `x${count}`, ...(store === 'stores' && { name: `xs${count}` }) };
  const needed = { ...NEEDED[store], ...unique };
  return `${JSON.stringify(needed).slice(0, -1)},${place.replace('?', () => value).slice(1)}`;
}

beforeAll(async () => {
  for (const { name } of WRITABLE) {
    const { body } = await service.admin('POST', name, filled(name, '{"other":?}', '1'));
    ids[name] = body._id;
  }
});

afterEach(() => {
  expect(service.logLines.filter((line) => line.includes('internal error'))).toEqual([]);
});

function expectNoFault(answer: Answer, what: string): void {
  expect({ what, isFault: answer.status >= 500 }).toEqual({ what, isFault: false });
  if (answer.status === 400) expect(answer.body.helper.message).toEqual(expect.any(String));
}

const BODIES: [path: string, places: string[]][] = [
  ['auth', ['{"login":?,"password":"x"}', '{"login":"unknown","password":?}', '{"username":?,"password":"x"}', '?']],
  [
    'auth/token',
    ['expiresIn', 'scopes', 'login', 'password'].map(
      (name) => `{"login":"${ADMIN.login}","password":"${ADMIN.password}","${name}":?}`,
    ),
  ],
  ['labels/:id/access', ['{"user":?}', '?']],
  ['objects/:id/packets', ['{"_id":?}', '{"time":?}', '{"online":?}', '{"a":?}', '[?]', '?', '[{},{"time":?}]']],
  ['objects/:id/commands/go', ['{"a":?}', '?']],
  ['objects/:id/commands/none/result', ['{"status":?}', '{"status":"done","result":?}', '?']],
];

test.each(BODIES)('accepts or refuses a value of any kind in POST %s', async (path, places) => {
  const full = path.replace(/(\w+)\/:id/, (_, store: string) => `${store}/${ids[store]}`);
  for (const place of places) {
    for (const value of someOf(VALUES)) {
      const body = place.replace('?', () => value);
      expectNoFault(await service.admin('POST', full, body), `${path} ${body}`);
    }
  }
});

const PARAMETERS = [
  'offset',
  'limit',
  'only',
  'meta',
  'from',
  'to',
  'begin',
  'end',
  'sortBy',
  'search',
  'after',
  'where.name',
  'where_name',
  'where.',
  'where.a.b',
  'status',
  'ttl',
  'wait',
  'since',
  'objects',
  'events',
  'toString',
  '__proto__',
];
const TEXTS = [
  '{"toString":1}',
  '[object Object]',
  '',
  '-1',
  '1e999',
  'NaN',
  '\0',
  'a,,b',
  'null',
  '__proto__',
  'constructor',
  '9'.repeat(30),
  '🚗',
  '..',
  '$where',
  'a.$b',
  '"',
  '"a',
  '(',
  '2020-13-45',
  '2020-02-30T25:61',
  "'",
  '\ufffd',
];
const LISTS = [
  'objects',
  'labels',
  'users',
  'audit',
  'commands',
  'objects/:id',
  'objects/:id/packets',
  'objects/:id/commands',
  'events',
];

test.each(LISTS)(
  'accepts or refuses any text for any parameter of GET %s, also repeated and as a list',
  async (path) => {
    const full = path.replace(':id', ids.objects as string);
    for (const name of PARAMETERS) {
      const queries = someOf(TEXTS).map((text) => `${name}=${encodeURIComponent(text)}`);
      const odd = [`${name}=1&${name}=2`, `${name}[]=1`, `${name}[a]=1`, name];
      const sent = [...queries, ...odd].map((query) => [query, service.admin('GET', `${full}?${query}`)] as const);
      for (const [query, answer] of sent) expectNoFault(await answer, `${path}?${query}`);
    }
  },
);

test('accepts or refuses any text as any part of a path', async () => {
  // Clients make another path of two dots.
  const texts = TEXTS.filter((text) => text !== '..');
  for (const text of someOf([...texts, 'toString', 'hasOwnProperty', 'a/b', '%', '*', ':object'])) {
    const part = encodeURIComponent(text);
    for (const [method, path] of [
      ['GET', part],
      ['POST', part],
      ['GET', `objects/${part}`],
      ['PATCH', `objects/${part}`],
      ['DELETE', `labels/${part}`],
      ['GET', `objects/${part}/packets`],
      ['POST', `objects/${part}/packets`],
      ['GET', `objects/${ids.objects}/packets/${part}`],
      ['POST', `objects/${ids.objects}/commands/${part}`],
      ['POST', `objects/${ids.objects}/commands/${part}/result`],
      ['DELETE', `labels/${ids.labels}/access/${part}`],
    ] as [string, string][]) {
      const body = method === 'GET' || method === 'DELETE' ? undefined : {};
      expectNoFault(await service.admin(method, path, body), `${method} ${path}`);
    }
  }
});

test('acknowledges or refuses a subscription to a value of any kind', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  for (const place of ['?', '{"objects":?}', '{"events":?}', '{"objects":[?]}', '{"events":["object-packet",?]}']) {
    // One each: the service ends a connection that sends too many messages in a second.
    const listener = await service.listen(token);
    for (const value of VALUES) {
      const given = JSON.parse(place.replace('?', () => value));
      const answer = await listener.socket.timeout(60_000).emitWithAck('subscribe', given);
      expect({ given, success: answer.success }).toEqual({ given, success: expect.any(Boolean) });
      if (answer.success === false) expect(answer.code).toBe('400');
      listener.socket.emit('subscribe', given, given);
    }
    expect(await listener.subscribe({})).toEqual({ success: true });
    listener.close();
  }
});

// Last: lists of many entities make the other tests slow.
describe.each(WRITABLE.map(({ name }) => name))('%s', (name) => {
  test('accepts or refuses a value of any kind in any field of a new entity and of a change', async () => {
    for (const place of placesOf(name)) {
      const values = someOf(VALUES);
      const made = values.map((value) => [value, service.admin('POST', name, filled(name, place, value))] as const);
      for (const [value, answer] of made) expectNoFault(await answer, `${place} ${value}`);
      // One after the other: the service answers 429 to too many changes of one store at once.
      for (const value of values) {
        const change = place.replace('?', () => value);
        expectNoFault(await service.admin('PATCH', `${name}/${ids[name]}`, change), `${place} ${value}`);
      }
    }
  });
});
