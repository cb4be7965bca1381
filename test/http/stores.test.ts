/** Stores that an administrator adds at run time, held to their JSON Schema. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { entityOf, expectRefusal } from '../answers.js';
import { type Call, useService } from '../fixture.js';

const service = useService();
let storeId: string;
let member: Call;

const SCHEMA = {
  type: 'object',
  required: ['plate', 'axles'],
  properties: {
    plate: { type: 'string', pattern: '^[A-Z]{2}[0-9]{1,4}$' },
    axles: { type: 'integer', minimum: 2, maximum: 9 },
    mail: { type: 'string', format: 'email' },
    tank: {
      type: 'object',
      properties: { litres: { type: 'number' } },
      required: ['litres'],
      additionalProperties: false,
    },
    kind: { enum: ['van', 'lorry', null] },
  },
};
const TRUCK = { plate: 'AB12', axles: 3 };

beforeAll(async () => {
  const group = entityOf(await service.admin('POST', 'groups', { name: 'team' }))._id;
  await service.admin('POST', 'users', {
    login: 'member',
    password: 'long enough',
    group,
    role: '000000000000000000000021',
  });
  member = service.as(await service.tokenOf('member', 'long enough'));
  expectRefusal(await service.admin('GET', 'trucks'), 404);
  storeId = entityOf(await service.admin('POST', 'stores', { name: 'trucks', schema: SCHEMA }))._id;
});

describe('a store that was added', () => {
  test('has the whole generic interface at once', async () => {
    expect(await service.admin('GET', 'trucks')).toMatchObject({ status: 200, body: [] });
    const created = entityOf(await service.admin('POST', 'trucks', { ...TRUCK, tank: { litres: 80 }, free: ['x'] }));
    expect(created).toMatchObject({ ...TRUCK, tank: { litres: 80 }, free: ['x'], access: [] });
    expect((await service.admin('GET', `trucks?where.axles=3&search=&sortBy=-plate&only=plate`)).body).toEqual([
      { _id: created._id, plate: 'AB12' },
    ]);
    expect((await service.admin('GET', 'trucks?meta=true')).body).toEqual({ count: 1, first: created, last: created });
    const changed = entityOf(await service.admin('PATCH', `trucks/${created._id}`, { tank: { litres: 90 } }));
    expect(changed).toEqual({ ...created, tank: { litres: 90 }, _at: expect.any(Number) });
    expect(entityOf(await service.admin('GET', `Trucks/${created._id}`))).toEqual(changed);
    expect(entityOf(await service.admin('DELETE', `trucks/${created._id}`))).toEqual(changed);
    expectRefusal(await service.admin('PATCH', `trucks/${created._id}`, { axles: 2 }), 404);
  });

  test.each<[wrong: object, mention: string]>([
    [{ plate: undefined }, 'plate: required'],
    [{ axles: undefined }, 'axles: required'],
    [{ plate: 'ab12' }, 'plate: must match pattern'],
    [{ axles: 2.5 }, 'axles: must be integer'],
    [{ axles: '3' }, 'axles: must be integer'],
    [{ axles: 1 }, 'axles: must be >= 2'],
    [{ mail: 'nobody' }, 'mail: must match format'],
    [{ tank: {} }, 'tank.litres: required'],
    [{ tank: { litres: 1, more: 1 } }, 'tank: must NOT have additional properties'],
    [{ kind: 'bus' }, 'kind: must be equal to one of the allowed values'],
    [{ tank: null }, 'tank: must be object'],
  ])('refuses %j on creation, and in a change by the whole it would make', async (wrong, mention) => {
    expectRefusal(await service.admin('POST', 'trucks', { ...TRUCK, ...wrong }), 400, mention);
    const truck = entityOf(await service.admin('POST', 'trucks', { ...TRUCK, tank: { litres: 1 } }));
    const given = JSON.parse(JSON.stringify(wrong));
    // Nothing, and a tank that stays as it is, change nothing.
    const harmless = Object.keys(given).length === 0 || mention.startsWith('tank.litres');
    const answer = await service.admin('PATCH', `trucks/${truck._id}`, given);
    if (harmless) entityOf(answer);
    else expectRefusal(answer, 400, mention);
    const { _at, ...present } = entityOf(await service.admin('GET', `trucks/${truck._id}`));
    expect(present).toEqual(truck);
  });

  test('judges a change by what is there at that time, also when many come at once', async () => {
    const schema = { type: 'object', properties: { a: {}, b: {} }, not: { required: ['a', 'b'] } };
    entityOf(await service.admin('POST', 'stores', { name: 'either', schema }));
    const { _id } = entityOf(await service.admin('POST', 'either', {}));
    const answers = await Promise.all(
      ['a', 'b', 'a', 'b'].map((name) => service.admin('PATCH', `either/${_id}`, { [name]: 1 })),
    );
    const kept = Object.keys(entityOf(await service.admin('GET', `either/${_id}`))).filter(
      (name) => name === 'a' || name === 'b',
    );
    expect(kept).toHaveLength(1);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 400, 400]);
  });

  test('follows a change of its schema from then on', async () => {
    const { _id } = entityOf(await service.admin('POST', 'stores', { name: 'drafts' }));
    entityOf(await service.admin('POST', 'drafts', { anything: 'goes' }));
    entityOf(await service.admin('PATCH', `stores/${_id}`, { schema: { required: ['title'] } }));
    expectRefusal(await service.admin('POST', 'drafts', { anything: 'goes' }), 400, 'title: required');
    entityOf(await service.admin('POST', 'drafts', { title: 't' }));
  });

  test('keeps its name, and is removed only when it is empty', async () => {
    expect(entityOf(await service.admin('PATCH', `stores/${storeId}`, { name: 'objects' })).name).toBe('trucks');
    const { _id, name } = entityOf(await service.admin('POST', 'stores', { name: 'short-lived' }));
    const inside = entityOf(await service.admin('POST', name, {}));
    expectRefusal(await service.admin('DELETE', `stores/${_id}`), 409, 'not empty');
    entityOf(await service.admin('DELETE', `${name}/${inside._id}`));
    entityOf(await service.admin('DELETE', `stores/${_id}`));
    expectRefusal(await service.admin('GET', name), 404);
    expectRefusal(await service.admin('POST', name, {}), 404);
  });

  test('shows a caller what the caller may see, and asks for the right', async () => {
    const [mine] = (await member('GET', 'users')).body;
    const shared = entityOf(await service.admin('POST', 'trucks', { ...TRUCK, group: mine.group }));
    const hidden = entityOf(await service.admin('POST', 'trucks', TRUCK));
    expect((await member('GET', 'trucks')).body).toEqual([shared]);
    expectRefusal(await member('GET', `trucks/${hidden._id}`), 404);
    expectRefusal(await member('POST', 'trucks', TRUCK), 403);
    expectRefusal(await member('POST', 'stores', { name: 'mine' }), 403);
  });
});

describe('a store cannot be added', () => {
  test.each<[name: unknown, status: number]>([
    ...['objects', 'users', 'commands', 'stores', 'trucks', 'auth', 'packets', 'sessions'].map(
      (name): [string, number] => [name, 409],
    ),
    ...[
      '',
      'Objects',
      'a b',
      'a.b',
      'a/b',
      '$cmd',
      '__proto__',
      'système',
      '1st',
      '-a',
      'a_b',
      'a\n',
      'x'.repeat(65),
    ].map((name): [string, number] => [name, 400]),
    ...[5, null, ['x'], { $ne: '' }].map((name): [unknown, number] => [name, 400]),
  ])('under the name %j', async (name, status) => {
    const before = (await service.client.db().listCollections().toArray()).length;
    expectRefusal(await service.admin('POST', 'stores', { name }), status, 'name');
    expect(await service.client.db().listCollections().toArray()).toHaveLength(before);
  });

  test.each<[what: string, schema: unknown]>([
    ['text', 'object'],
    ['a list', []],
    ['of an unknown type', { type: 'truck' }],
    ['with a number as properties', { properties: 5 }],
    ['with a pattern that is none', { properties: { a: { pattern: '[' } } }],
    ['with a pattern that looks back', { properties: { a: { pattern: '(a)\\1' } } }],
    ['that points nowhere', { $ref: '#/definitions/none' }],
    ['that points elsewhere', { $ref: 'http://127.0.0.1/schema.json' }],
    ['that is too large', { description: 'x'.repeat(65_000), title: 'x'.repeat(1_000) }],
  ])('with a schema %s', async (_, schema) => {
    expectRefusal(await service.admin('POST', 'stores', { name: 'wrong', schema }), 400);
    expectRefusal(await service.admin('PATCH', `stores/${storeId}`, { schema }), 400);
    expectRefusal(await service.admin('GET', 'wrong'), 404);
    expectRefusal(await service.admin('POST', 'trucks', { plate: 'AB12' }), 400, 'axles');
  });

  test('so that its pattern stalls the service', async () => {
    const schema = { properties: { text: { pattern: '^(a+)+$' } } };
    entityOf(await service.admin('POST', 'stores', { name: 'evil', schema }));
    const startMs = performance.now();
    expectRefusal(await service.admin('POST', 'evil', { text: `${'a'.repeat(50_000)}b` }), 400, 'text');
    expect(performance.now() - startMs).toBeLessThan(5_000);
  });
});
