/** Content that is refused at any depth of any body, and content that only looks dangerous. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { ADMIN, type Listener, useService } from '../support/fixture.js';

const service = useService();
let listener: Listener;
const ids: Record<string, string> = {};

const BODIES: Record<string, Record<string, unknown>> = {
  objects: { id: 'car', name: 'Car' },
  models: { name: 'Van' },
  users: { login: 'somebody', password: 'long enough' },
  groups: { name: 'Depot' },
  roles: { name: 'guard', credentials: ['GET /*'] },
  tokens: { name: 'edge' },
  geofences: { name: 'Zone' },
  labels: { name: 'Red' },
  handlers: { name: 'CRM' },
  stores: { name: 'trucks' },
  trucks: { name: 'T1' },
};
const STORES = Object.keys(BODIES);

beforeAll(async () => {
  listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  for (const store of STORES) ids[store] = entityOf(await service.admin('POST', store, BODIES[store]))._id;
});

/** How many there are of everything, and how many were ever changed. */
const counts = () =>
  Promise.all(
    [...STORES, `custom.trucks.${ids.stores}`, 'packets', 'commands'].map(async (store) => {
      const collection = service.client.db().collection(store);
      return [await collection.countDocuments(), await collection.countDocuments({ _at: { $exists: true } })];
    }),
  );

/** A JSON text with the hostile part put where the hole is, beside what the store requires. */
const WRAPPINGS: [where: string, wrap: (hostile: string) => string][] = [
  ['at the top', (hostile) => hostile],
  ['in an object', (hostile) => `{"config":${hostile}}`],
  ['in a list, deep', (hostile) => `{"config":{"a":[0,[{"b":${hostile}}]]}}`],
];

const PATH = '{"config.auth":1}';
const HOSTILE: [what: string, json: string][] = [
  ['an operator', '{"$set":{"owner":"x"}}'],
  ['an expression', '{"$where":"sleep(1000)"}'],
  ['a $ alone', '{"$":1}'],
  // In packets, dotted names are members.
  ['a path', PATH],
  ['a path without an end', '{"config.":1}'],
  ['a dot alone', '{".":1}'],
  ['a NUL', '{"a\\u0000":1}'],
  ['__proto__', '{"__proto__":{"polluted":true}}'],
  ['constructor', '{"constructor":{"prototype":{"polluted":true}}}'],
  ['prototype', '{"prototype":1}'],
  ['a number beyond all', '{"n":1e400}'],
  ['a negative one', '{"n":-1e400}'],
  ['a lone high surrogate', '{"s":"\\ud83d"}'],
  ['a lone low surrogate', '{"s":"a\\ude97b"}'],
  ['a lone surrogate in a name', '{"\\ud83d":1}'],
  ['nesting without end', `${'{"a":'.repeat(30)}1${'}'.repeat(30)}`],
  ['lists without end', `{"a":${'['.repeat(2_000)}${']'.repeat(2_000)}}`],
];

const joined = (store: string, json: string): string => {
  const required = JSON.stringify({
    ...BODIES[store],
    id: 'other',
    login: 'other',
    ...(store === 'stores' && { name: 'other' }),
  });
  return `${required.slice(0, -1)},${json.slice(1)}`;
};

describe.each(HOSTILE)('%s', (_, json) => {
  test.each(WRAPPINGS)(
    'refuses %s of any body without storing, changing or publishing anything',
    async (_where, wrap) => {
      const before = await counts();
      const text = wrap(json);
      for (const store of STORES) {
        expectRefusal(await service.admin('POST', store, joined(store, text)), 400, '"');
        expectRefusal(await service.admin('PATCH', `${store}/${ids[store]}`, text), 400, '"');
      }
      if (json !== PATH) {
        expectRefusal(await service.admin('POST', 'objects/car/packets', text), 400, '"');
        const { status, body } = await service.admin('POST', 'objects/car/packets?atomic=true', `[{},${text}]`);
        expect([status, body.refused]).toEqual([400, [{ index: 1, reason: expect.stringContaining('"') }]]);
      }
      expectRefusal(await service.admin('POST', 'objects/car/commands/go', text), 400, '"');
      expect(await counts()).toEqual(before);
      await service.settled();
      expect(listener.take()).toEqual([]);
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    },
  );
});

describe('stores unchanged', () => {
  const TEXTS = [
    '$set',
    '$$ROOT',
    'a.b',
    '__proto__',
    'tab\tand\nline',
    'NUL \0 inside',
    '\u2028\u2029',
    '"\\</script>',
    '🚗 車',
    '\ufeffBOM',
    '%s %j',
    'x'.repeat(65_536),
  ];
  test.each(TEXTS)('is stored and returned unchanged: %j', async (text) => {
    const shorter = `${Array.from(text).slice(1).join('')}!`;
    const fields = { config: { text, list: [text], a$b: { 0: text } } };
    const { _id } = entityOf(await service.admin('POST', 'labels', fields));
    expect(entityOf(await service.admin('GET', `labels/${_id}`))).toMatchObject(fields);
    const patch = { config: { text: shorter, more: { 0: text, a$b: text } } };
    expect(entityOf(await service.admin('PATCH', `labels/${_id}`, patch)).config).toEqual({
      text: shorter,
      list: [text],
      a$b: { 0: text },
      more: { 0: text, a$b: text },
    });
    const { body } = await service.admin('GET', `labels?where._id=${_id}`);
    expect(body[0].config.more).toEqual({ 0: text, a$b: text });
  });

  test.each([0, -0.5, 1e-7, 0.1, 2 ** 31, -(2 ** 31), 2 ** 53 - 1, 1e21, 1.7976931348623157e308, 5e-324])(
    'returns the number %p unchanged',
    async (n) => {
      const { _id } = entityOf(await service.admin('POST', 'labels', { n }));
      expect(entityOf(await service.admin('GET', `labels/${_id}`)).n).toBe(n);
      expect((await service.admin('GET', `labels?where._id=${_id}`)).body[0].n).toBe(n);
      expect(
        (await service.admin('GET', `labels?where.n=${encodeURIComponent(n)}&where._id=${_id}`)).body,
      ).toHaveLength(1);
    },
  );
});

describe('a change of many nested objects', () => {
  const objects = (count: number): object =>
    Object.fromEntries(Array.from({ length: count }, (_, nth) => [nth.toString(36), {}]));
  const within = (inner: object, depth: number): object =>
    depth === 0 ? inner : { ['n'.repeat(LIMITS.keyCharacters)]: within(inner, depth - 1) };
  const spread = (outer: number, inner: number): object =>
    Object.fromEntries(Object.keys(objects(outer)).map((name) => [name, objects(inner)]));

  test('is accepted at any depth and with names of any length', async () => {
    const { _id } = entityOf(await service.admin('POST', 'labels', { kept: 1 }));
    const config = within(spread(19, 499), 16);
    expect(entityOf(await service.admin('PATCH', `labels/${_id}`, { config }))).toMatchObject({ kept: 1, config });
    expect(entityOf(await service.admin('GET', `labels/${_id}`)).config).toEqual(config);
  });

  test('is refused above the limit, without changing anything', async () => {
    const { _id } = entityOf(await service.admin('POST', 'labels', { kept: 1 }));
    const answer = await service.admin('PATCH', `labels/${_id}`, { config: spread(25, 400) });
    expectRefusal(answer, 400, `more than ${LIMITS.jsonObjects} nested objects`);
    expectRefusal(await service.admin('POST', 'labels', { config: spread(25, 400) }), 400, 'nested objects');
    expect(entityOf(await service.admin('GET', `labels/${_id}`))).not.toHaveProperty('config');
  });

  test('is accepted at the limit, and such an entity can be sent back unchanged', async () => {
    const config = spread(33, 302);
    // The object they are in, the outer ones, and theirs.
    expect(1 + 33 + 33 * 302).toBe(LIMITS.jsonObjects);
    const created = entityOf(await service.admin('POST', 'labels', { config }));
    expect(entityOf(await service.admin('PATCH', `labels/${created._id}`, created)).config).toEqual(config);
    const more = { config: { ...config, '!': {} } };
    expectRefusal(await service.admin('PATCH', `labels/${created._id}`, more), 400, 'nested objects');
  });
});
