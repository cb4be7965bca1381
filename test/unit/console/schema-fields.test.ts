/** The fields of a form from a JSON Schema. */
import { expect, test } from '@jest/globals';
import type { EntityField } from '../../../src/console/entities/field.js';
import { fieldsOfSchema, REST, WHOLE } from '../../../src/console/entities/schema-fields.js';

const kindOf = (part: unknown): Partial<EntityField> => {
  const { label, isRequired, about, name, ...kind } = fieldsOfSchema({ properties: { a: part } })[0] as EntityField;
  return kind;
};

test.each<[unknown, object]>([
  [{ type: 'string' }, { kind: 'text', cleared: '' }],
  [{ type: ['string', 'null'] }, { kind: 'text', cleared: null }],
  [
    { type: 'string', maxLength: 2_000 },
    { kind: 'paragraph', cleared: '' },
  ],
  [{ type: 'string', format: 'date' }, { kind: 'date' }],
  [{ type: 'string', format: 'email' }, { kind: 'text' }],
  [{ type: 'string', minLength: 1 }, { kind: 'text' }],
  [
    { type: 'integer', default: 3 },
    { kind: 'number', initial: 3 },
  ],
  [{ type: ['integer', 'null'] }, { kind: 'number', cleared: null }],
  [{ type: 'boolean' }, { kind: 'choice', options: [true, false] }],
  [{ enum: ['a', 2, null] }, { kind: 'choice', options: ['a', 2], cleared: null }],
  [{ enum: ['a', 'a', 1, '1'] }, { kind: 'choice', options: ['a', 1, '1'] }],
  [{ enum: [{ b: 1 }] }, { kind: 'json' }],
  [
    { type: 'array', items: { type: 'string' } },
    { kind: 'lines', cleared: [] },
  ],
  [{ type: 'array', items: { type: 'string' }, minItems: 1 }, { kind: 'lines' }],
  [
    { type: 'array', items: { enum: ['a', 'b', 'a'] } },
    { kind: 'several', options: ['a', 'b'], cleared: [] },
  ],
  [{ type: 'array', items: { type: 'number' } }, { kind: 'json' }],
  [{ type: ['string', 'number'] }, { kind: 'json' }],
  [{ type: 'object' }, { kind: 'json' }],
  [{}, { kind: 'json', cleared: null }],
  [true, { kind: 'json', cleared: null }],
])('shows %j as %j', (part, kind) => expect(kindOf(part)).toEqual(kind));

test('names fields as the schema does, and knows which are required', () => {
  const properties = { due: { type: 'string', title: 'Due on', description: 'The day of the next service' }, km: {} };
  expect(fieldsOfSchema({ properties, required: ['km'] })).toMatchObject([
    { name: 'due', label: 'Due on', about: 'The day of the next service', isRequired: false },
    { name: 'km', label: 'km', isRequired: true },
    REST,
  ]);
});

test.each([
  [null, [WHOLE]],
  [{}, [WHOLE]],
  [{ properties: {} }, [WHOLE]],
  [{ properties: { _id: {}, 'a.b': {}, owner: {}, time: {} } }, [WHOLE]],
  [{ properties: { a: {} }, additionalProperties: false }, ['a']],
  [{ properties: { a: {} }, additionalProperties: false, patternProperties: { '^n': {} } }, ['a', '']],
])('has a field for everything else where %j permits it', (schema, expected) => {
  const fields = fieldsOfSchema(schema);
  expect(fields.map(({ name }) => name)).toEqual(expected.map((one) => (typeof one === 'string' ? one : one.name)));
  if (schema === null) expect(fields).toEqual([WHOLE]);
});

test('shows at most 50 fields, and the others as JSON', () => {
  const names = Array.from({ length: 60 }, (_, index) => `field${index}`);
  const schema = { properties: Object.fromEntries(names.map((name) => [name, {}])), additionalProperties: false };
  expect(fieldsOfSchema(schema).map(({ name }) => name)).toEqual([...names.slice(0, 50), '']);
});
