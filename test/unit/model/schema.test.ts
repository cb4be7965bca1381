/** JSON Schemas of added stores: they mean what they mean elsewhere, and no check is endless. */
import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import type { ApiError } from '../../../src/core/errors.js';
import type { JsonObject } from '../../../src/core/json.js';
import { LIMITS } from '../../../src/core/limits.js';
import { compileSchema } from '../../../src/core/schema/schema.js';
import { fc, isSoak, runsOf } from '../../support/runs.js';

/** A clock that moves on whenever it is looked at. */
function ticking(): { nowMs: () => number; looks: () => number } {
  let looks = 0;
  return { nowMs: () => looks++, looks: () => looks };
}

function faultOf(schema: object, entity: object): string | null {
  try {
    compileSchema(schema as JsonObject, () => 0).check(entity as JsonObject);
    return null;
  } catch (error) {
    expect((error as ApiError).status).toBe(400);
    return (error as ApiError).message;
  }
}

const ofValue = (schema: unknown, value: unknown): string | null =>
  faultOf({ properties: { a: schema } }, { a: value });

const CONDITION = { if: { type: 'number' }, then: { minimum: 1 }, else: { minLength: 1 } };

describe('a keyword', () => {
  test.each<[schema: unknown, value: unknown, fault: string | null]>([
    [{ type: 'string' }, 1, 'a: must be string'],
    [{ type: ['string', 'null'] }, 1, 'a: must be string,null'],
    [{ type: 'string', nullable: true }, null, null],
    [{ type: 'integer' }, 2.0, null],
    [{ type: 'array' }, {}, 'a: must be array'],
    [{ type: 'object' }, [], 'a: must be object'],
    [{ const: { b: [1, { c: null }] } }, { b: [1, { c: null }] }, null],
    [{ const: { b: 1, c: 2 } }, { c: 2, b: 1 }, null],
    [{ const: [1, 2] }, [2, 1], 'a: must be equal to constant'],
    [{ enum: [1, 'x', { b: 1 }] }, { b: 1 }, null],
    [{ enum: [1, 'x', { b: 1 }] }, { b: 2 }, 'a: must be equal to one of the allowed values'],
    [{ enum: ['1', false] }, 1, 'a: must be equal to one of the allowed values'],
    [{ maximum: 2 }, 3, 'a: must be <= 2'],
    [{ exclusiveMinimum: 2 }, 2, 'a: must be > 2'],
    [{ multipleOf: 0.5 }, 1.25, 'a: must be multiple of 0.5'],
    [{ maxLength: 2 }, '😀😀', null],
    [{ maxLength: 2 }, '😀😀a', 'a: must NOT have more than 2 characters'],
    [{ minLength: 3 }, '😀😀', 'a: must NOT have fewer than 3 characters'],
    [{ pattern: '^b' }, 'ab', 'a: must match pattern "^b"'],
    [{ format: 'email' }, 'nobody', 'a: must match format "email"'],
    [{ format: 'of-my-own' }, 'x', null],
    [{ items: { type: 'number' } }, [1, 'x'], 'a.1: must be number'],
    [{ items: [{ type: 'number' }], additionalItems: false }, [1, 2], 'a.1: must not be given'],
    [{ maxItems: 1 }, [1, 2], 'a: must NOT have more than 1 items'],
    [{ contains: { const: 1 } }, [2, 3], 'a: must contain at least 1 valid item(s)'],
    [{ contains: {} }, [], 'a: must contain at least 1 valid item(s)'],
    [
      { uniqueItems: true },
      [
        { b: 1, c: 2 },
        { c: 2, b: 1 },
      ],
      'a: must not have two equal items',
    ],
    [{ required: ['b'] }, {}, 'a.b: required'],
    [{ properties: { b: false } }, { b: 1 }, 'a.b: must not be given'],
    [{ patternProperties: { '^n_': { type: 'number' } } }, { n_1: 'x' }, 'a.n_1: must be number'],
    [{ properties: { b: {} }, patternProperties: { '^n': {} }, additionalProperties: false }, { b: 1, n1: 1 }, null],
    [{ additionalProperties: false }, { b: 1 }, 'a: must NOT have additional properties'],
    [{ additionalProperties: { type: 'number' } }, { b: 'x' }, 'a.b: must be number'],
    [{ propertyNames: { maxLength: 2 } }, { abc: 1 }, 'a.abc: is not an allowed name'],
    [{ minProperties: 1 }, {}, 'a: must NOT have fewer than 1 properties'],
    [{ dependencies: { b: ['c'] } }, { b: 1 }, 'a: must have property c when property b is present'],
    [{ dependencies: { b: { required: ['c'] } } }, { b: 1 }, 'a.c: required'],
    [{ allOf: [{ type: 'number' }, { minimum: 1 }] }, 0, 'a: must be >= 1'],
    [{ anyOf: [{ type: 'number' }, { type: 'null' }] }, 'x', 'a: must match a schema in anyOf'],
    [{ oneOf: [{ type: 'number' }, { minimum: 1 }] }, 1, 'a: must match exactly one schema in oneOf'],
    [{ not: { type: 'number' } }, 1, 'a: must NOT be valid'],
    [CONDITION, 0, 'a: must be >= 1'],
    [CONDITION, '', 'a: must NOT have fewer than 1 characters'],
    [{ title: 'x', description: 'x', default: 1, examples: [1], unknown: {} }, 'x', null],
  ])('is checked: %j, with %j: %s', (schema, value, fault) => {
    expect(ofValue(schema, value)).toBe(fault);
  });
});

const EXCEEDS_LIMITS =
  /^schema: (larger than|nested more than|more than \d+ (parts|patterns)|its patterns are too large)/;

test('accepts and refuses random entities like Ajv', () => {
  const small = fc.integer({ min: 0, max: 3 });
  const name = fc.constantFrom('a', 'b', 'ab');
  const plain = fc.oneof(fc.constantFrom(null, true, false, '', 'a', 'ab', 'ba', 1.5), fc.integer({ min: -2, max: 4 }));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      plain,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(name, tie('value'), { maxKeys: 3 }),
    ),
  }));
  const type = fc.constantFrom('string', 'number', 'integer', 'boolean', 'array', 'object', 'null');
  const { schema } = fc.letrec((tie) => {
    const sub = tie('schema');
    const some = fc.array(sub, { minLength: 1, maxLength: 3 });
    const members = fc.dictionary(name, sub, { maxKeys: 2 });
    return {
      schema: fc.oneof(
        { maxDepth: 3, depthSize: 'small' },
        fc.constantFrom(true, false, {}),
        fc.record(
          {
            type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })),
            enum: fc.uniqueArray(value, { minLength: 1, maxLength: 3, comparator: 'SameValueZero' }),
            const: value,
            minimum: small,
            exclusiveMaximum: small,
            multipleOf: fc.constantFrom(1, 2, 0.5),
            minLength: small,
            maxLength: small,
            pattern: fc.constantFrom('a', '^b', 'a$', '^$'),
            minItems: small,
            maxItems: small,
            uniqueItems: fc.boolean(),
            contains: sub,
            minProperties: small,
            maxProperties: small,
            required: fc.uniqueArray(name),
            propertyNames: sub,
            items: fc.oneof(sub, some),
            additionalItems: sub,
            properties: members,
            patternProperties: members,
            additionalProperties: sub,
            dependencies: fc.dictionary(name, fc.oneof(sub, fc.uniqueArray(name)), { maxKeys: 2 }),
            allOf: some,
            anyOf: some,
            oneOf: some,
            not: sub,
            if: sub,
            then: sub,
            else: sub,
          },
          { requiredKeys: [] },
        ),
      ),
    };
  });
  const ajv = new Ajv({ strict: false, validateSchema: false, logger: false, addUsedSchema: false });
  let fitting = 0;
  let others = 0;
  fc.assert(
    fc.property(schema, value, (wanted, given) => {
      const copy = JSON.parse(JSON.stringify({ wanted, given }));
      const fault = ofValue(copy.wanted, copy.given);
      // Ajv has no limits; random schemas exceed ours once in thousands.
      fc.pre(!EXCEEDS_LIMITS.test(fault ?? ''));
      const isFit = ajv.compile({ properties: { a: copy.wanted } })({ a: copy.given });
      if (isFit) fitting++;
      else others++;
      expect(fault === null).toBe(isFit);
    }),
    { numRuns: runsOf(300) },
  );
  // It did compare both.
  expect(Math.min(fitting, others)).toBeGreaterThan(isSoak ? 50 : 0);
});

describe('a format', () => {
  const TEXTS = [
    '2026-02-28',
    '2026-13-01',
    '12:30:00Z',
    '12:30:00',
    '2026-02-28T12:30:00.5+01:00',
    '2026-02-28 12:30:00',
    'P1D',
    'P',
    'PT',
    'P1DT',
    'P2W',
    'P1Y2M3DT4H5M6S',
    'P1W1D',
    'https://a.bc/c?d#e',
    'mailto:x',
    'a b',
    '/x',
    '#',
    '{x}',
    'http://example.com/x',
    'ftp://example.com',
    'http://',
    'x@y.z',
    'x@',
    'x@-y',
    'example.com',
    '-a.b',
    'a..b',
    '1.2.3.4',
    '256.1.1.1',
    '::1',
    '1::2::3',
    'fe80::1',
    '::ffff:1.2.3.4',
    '1:2',
    '[',
    '^a$',
    'AAAA',
    'AAA',
    'AA==',
    '',
    '0a1b2c3d-1111-2222-3333-444455556666',
    '/a~0b',
    '/a~2',
    '#/a',
    '0#',
    '1/a',
    'x'.repeat(254),
    'https://',
  ];
  const ajv = new Ajv({ strict: false });
  (addFormats as unknown as (ajv: Ajv, options: object) => void)(ajv, { mode: 'fast' });
  const names = Object.keys(ajv.formats);

  test.each(names)('accepts the same values as in Ajv: %s', (format) => {
    const theirs = ajv.compile({ format });
    for (const text of [...TEXTS, 1, 1.5, 2 ** 40])
      expect([text, ofValue({ format }, text) === null]).toEqual([text, theirs(text)]);
  });
});

describe('an invalid schema', () => {
  test.each<[schema: object, mention: string]>([
    [{ type: 'truck' }, 'schema.type: expected string, number'],
    [{ properties: 5 }, 'schema.properties: expected an object'],
    [{ properties: { a: 'x' } }, 'schema.properties.a: expected a schema'],
    [{ items: [1] }, 'schema.items.0: expected a schema'],
    [{ pattern: '[' }, 'schema.pattern: error parsing regexp'],
    [{ patternProperties: { '(a)\\1': {} } }, 'schema.patternProperties: error parsing regexp'],
    [{ pattern: 5 }, 'schema.pattern: expected a string'],
    [{ minLength: -1 }, 'schema.minLength'],
    [{ maxItems: 1.5 }, 'schema.maxItems'],
    [{ multipleOf: 0 }, 'schema.multipleOf'],
    [{ required: 'a' }, 'schema.required: expected a list of strings'],
    [{ enum: [] }, 'schema.enum: expected a list of values'],
    [{ anyOf: [] }, 'schema.anyOf: expected a list of schemas'],
    [{ uniqueItems: 1 }, 'schema.uniqueItems: expected true or false'],
    [{ dependencies: { a: [1] } }, 'schema.dependencies: expected a list of strings'],
    [{ properties: { a: { $ref: '#' } } }, 'schema.properties.a: $ref is not supported'],
    [{ $async: true }, 'schema: $async is not supported'],
    [{ allOf: [{ pattern: '(?:a{30}){30}' }] }, 'is too large, or repeats too much'],
    [{ allOf: Array.from({ length: 20 }, (_, at) => ({ pattern: `${'a'.repeat(200)}${at}` })) }, 'too large in total'],
    [Array.from({ length: 30 }).reduce<object>((not) => ({ not }), {}), 'nested more than 20 deep'],
  ])('is refused: %j', (schema, mention) => {
    expect(faultOf(schema, {})).toContain(mention);
  });
});

describe('a check', () => {
  const numbers = Array.from({ length: LIMITS.jsonArrayItems }, (_, at) => at);
  const large = Object.fromEntries(Array.from({ length: 400 }, (_, at) => [`m${at}`, at]));
  const many = (schema: object, count = 900) => Array.from({ length: count }, () => schema);
  test.each<[what: string, schema: object, value: unknown]>([
    ['a thousand parts for each item', { items: { allOf: many({ type: 'number' }) } }, numbers],
    ['anyOf that fits last', { items: { anyOf: [...many({ type: 'string' }), {}] } }, numbers],
    ['oneOf within oneOf', { contains: { oneOf: many({ oneOf: [{ const: 1 }, { const: 2 }] }, 200) } }, numbers],
    [
      'constants of many members',
      { contains: { anyOf: many({ const: { ...large, z: 1 } }, 10) } },
      many({ ...large, z: 2 }, 200),
    ],
    ['an enum of lists', { contains: { enum: many([1, 2, 3], 900) } }, many([1, 2, 4], 9_000)],
    ['many names that are required', { items: { required: Object.keys(large) } }, many(large, 10_000)],
    [
      'many properties',
      { items: { properties: large && Object.fromEntries(Object.keys(large).map((k) => [k, {}])) } },
      many({}, 10_000),
    ],
    [
      'lists of which all items are unique',
      { items: { allOf: many({ uniqueItems: true }, 500) } },
      many(numbers.slice(0, 100), 100),
    ],
    ['patterns of names', { items: { patternProperties: { 'm.*m.*m.*x$': {} } } }, many(large, 1_000)],
    ['a pattern', { contains: { pattern: '(?:m.*){20}x$' } }, many('m'.repeat(1_000) as never, 50)],
    ['a format', { items: { allOf: many({ format: 'email' }) } }, many('x@example.com' as never, 10_000)],
    ['lengths that have to be counted', { items: { allOf: many({ maxLength: 40_000 }) } }, ['😀'.repeat(30_000)]],
  ])('ends after the time limit: %s', (_, schema, value) => {
    const { nowMs, looks } = ticking();
    const { check } = compileSchema({ properties: { a: schema } } as JsonObject, nowMs);
    expect(() => check({ a: value } as JsonObject)).toThrow(/^a.*: the check takes too long$/);
    expect(looks()).toBeLessThan(LIMITS.schemaCheckMs + 5);
  });

  test('never reads the clock for a large entity with an ordinary schema', () => {
    const { nowMs, looks } = ticking();
    const reading = {
      type: 'object',
      required: ['at', 'value'],
      properties: { at: { type: 'integer', minimum: 0 }, value: { type: 'number' }, unit: { enum: ['C', 'F'] } },
      additionalProperties: false,
    };
    const { check } = compileSchema({ properties: { a: { items: reading } } }, nowMs);
    check({ a: Array.from({ length: 1_000 }, (_, at) => ({ at, value: at / 2, unit: 'C' })) });
    expect(looks()).toBe(0);
  });
});
