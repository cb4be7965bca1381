/** Stores that an administrator adds at run time, held to their JSON Schema. */
import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { type Call, useService } from '../support/fixture.js';

const service = useService();
const { schemaFreeSteps, schemaStepsBetween } = LIMITS;
const { compiled } = globalThis as unknown as { compiled: { require: NodeJS.Require } };
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
  storeId = entityOf(await service.admin('POST', 'stores', { name: 'trucks', schema: SCHEMA, shared: true }))._id;
});

describe('an added store', () => {
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
  ])('refuses %j on creation, and a change by its result', async (wrong, mention) => {
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

  test('checks concurrent changes against the current entity', async () => {
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

  test('applies a changed schema at once', async () => {
    const { _id } = entityOf(await service.admin('POST', 'stores', { name: 'drafts' }));
    entityOf(await service.admin('POST', 'drafts', { anything: 'goes' }));
    entityOf(await service.admin('PATCH', `stores/${_id}`, { schema: { required: ['title'] } }));
    expectRefusal(await service.admin('POST', 'drafts', { anything: 'goes' }), 400, 'title: required');
    entityOf(await service.admin('POST', 'drafts', { title: 't' }));
  });

  test('keeps its name, and is removed only if it is empty', async () => {
    expect(entityOf(await service.admin('PATCH', `stores/${storeId}`, { name: 'objects' })).name).toBe('trucks');
    const { _id, name } = entityOf(await service.admin('POST', 'stores', { name: 'short-lived' }));
    const inside = entityOf(await service.admin('POST', name, {}));
    expectRefusal(await service.admin('DELETE', `stores/${_id}`), 409, 'not empty');
    entityOf(await service.admin('DELETE', `${name}/${inside._id}`));
    entityOf(await service.admin('DELETE', `stores/${_id}`));
    expectRefusal(await service.admin('GET', name), 404);
    expectRefusal(await service.admin('POST', name, {}), 404);
  });

  test('shows only visible entities, and requires the permission', async () => {
    const [mine] = (await member('GET', 'users')).body;
    const shared = entityOf(await service.admin('POST', 'trucks', { ...TRUCK, group: mine.group }));
    const hidden = entityOf(await service.admin('POST', 'trucks', TRUCK));
    expect((await member('GET', 'trucks')).body).toEqual([shared]);
    expectRefusal(await member('GET', `trucks/${hidden._id}`), 404);
    expectRefusal(await member('POST', 'trucks', TRUCK), 403);
    expectRefusal(await member('POST', 'stores', { name: 'mine' }), 403);
  });
});

describe('an invalid store', () => {
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
  ])('is refused with the name %j', async (name, status) => {
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
  ])('is refused with a schema %s', async (_, schema) => {
    expectRefusal(await service.admin('POST', 'stores', { name: 'wrong', schema }), 400);
    expectRefusal(await service.admin('PATCH', `stores/${storeId}`, { schema }), 400);
    expectRefusal(await service.admin('GET', 'wrong'), 404);
    expectRefusal(await service.admin('POST', 'trucks', { plate: 'AB12' }), 400, 'axles');
  });

  test('never stalls the service with a pattern', async () => {
    const schema = { properties: { text: { pattern: '^(a+)+$' } } };
    entityOf(await service.admin('POST', 'stores', { name: 'evil', schema }));
    expectRefusal(await service.admin('POST', 'evil', { text: `${'a'.repeat(50_000)}b` }), 400, 'text');
  });

  test('is refused with too many parts or patterns', async () => {
    const patterns = (count: number, key: (at: number) => object) => ({
      allOf: Array.from({ length: count }, (_, at) => key(at)),
    });
    const named = (at: number) => ({ properties: { [`p${at}`]: { pattern: 'x' } } });
    const matched = (count: number) => ({
      patternProperties: Object.fromEntries(Array.from({ length: count }, (_, at) => [`^p${at}$`, true])),
    });
    const most = LIMITS.schemaPatterns;
    // A schema of n numbers in an enum has two parts: itself and the list; of n lists in it, n more.
    const parts = (count: number) => ({ enum: Array.from({ length: count - 2 }, (_, at) => [at]) });
    const cases: [string, object, string | null][] = [
      ['patterns-at', patterns(most, named), null],
      ['patterns-over', patterns(most + 1, named), 'patterns'],
      ['matched-at', matched(most), null],
      ['matched-over', matched(most + 1), 'patterns'],
      ['parts-at', parts(LIMITS.schemaParts), null],
      ['parts-over', parts(LIMITS.schemaParts + 1), 'parts'],
    ];
    for (const [name, schema, mention] of cases) {
      const answer = await service.admin('POST', 'stores', { name, schema });
      if (mention === null) entityOf(answer);
      else expectRefusal(answer, 400, mention);
      const changed = await service.admin('PATCH', `stores/${storeId}`, { schema });
      if (mention !== null) expectRefusal(changed, 400, mention);
    }
  });

  test('limits the time of a check, and names the field', async () => {
    const allOf = Array.from({ length: 900 }, () => ({ type: 'number', minimum: 0 }));
    entityOf(
      await service.admin('POST', 'stores', {
        name: 'costly',
        schema: { properties: { items: { items: { allOf } } } },
      }),
    );
    const items = Array.from({ length: LIMITS.jsonArrayItems }, (_, at) => at);
    expectRefusal(await service.admin('POST', 'costly', { items }), 400, 'the check takes too long');
    const { _id } = entityOf(await service.admin('POST', 'costly', { items: [1, 2] }));
    expectRefusal(await service.admin('PATCH', `costly/${_id}`, { items }), 400, 'the check takes too long');
    expectRefusal(await service.admin('POST', 'costly', { items: [1, -1] }), 400, 'items.1: must be >= 0');
  });

  test('accepts a valid entity also where the process stands still during its check', async () => {
    const real = performance.now.bind(performance);
    let stillMs = 0;
    let isStill = true;
    // What it lost stays lost: the clock never steps back.
    jest.spyOn(performance, 'now').mockImplementation(() => {
      if (isStill) stillMs += 20;
      return real() + stillMs;
    });
    // Not the real one: where a host takes the processor away, its guest counts that as work. Tests have a copy of `process`.
    const ofService: NodeJS.Process = compiled.require('node:process');
    const processorTime = jest.spyOn(ofService, 'cpuUsage').mockReturnValue({ user: 0, system: 0 });
    Object.assign(LIMITS, { schemaFreeSteps: 0, schemaStepsBetween: 1 });
    try {
      entityOf(await service.admin('POST', 'costly', { items: [1, 2] }));
      expect(processorTime.mock.calls.length).toBeGreaterThan(2);
      expect(stillMs).toBeGreaterThan(LIMITS.schemaCheckMs);
    } finally {
      isStill = false;
      processorTime.mockRestore();
      Object.assign(LIMITS, { schemaFreeSteps, schemaStepsBetween });
    }
  });

  test('checks unique items in linear time', async () => {
    const schema = { properties: { items: { type: 'array', uniqueItems: true } } };
    entityOf(await service.admin('POST', 'stores', { name: 'unique', schema }));
    const items = Array.from({ length: LIMITS.jsonArrayItems }, (_, at) => ({ at, same: 'x' }));
    entityOf(await service.admin('POST', 'unique', { items }));
    for (const [twice, fits] of [
      [[1, 1], false],
      [
        [
          { a: 1, b: [2] },
          { b: [2], a: 1 },
        ],
        false,
      ],
      [[null, null], false],
      [[1, '1', [1], { a: 1 }, { a: '1' }, true, null, 'null'], true],
      [
        [
          [1, 2],
          [2, 1],
        ],
        true,
      ],
      [[{ a: 1 }, { a: 1, b: null }], true],
    ] as const) {
      const answer = await service.admin('POST', 'unique', { items: twice });
      if (fits) entityOf(answer);
      else expectRefusal(answer, 400, 'items: must not have two equal items');
    }
    entityOf(
      await service.admin('POST', 'stores', {
        name: 'twice',
        schema: { properties: { items: { uniqueItems: false } } },
      }),
    );
    entityOf(await service.admin('POST', 'twice', { items: [1, 1] }));
  });
});
