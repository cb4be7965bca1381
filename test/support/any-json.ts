/** JSON texts that a client may send: names and values that mean something to somebody on their way, and any others. */
import fc from 'fast-check';

const quoted = (...names: string[]): string[] => names.map((name) => `"${name}"`);
/** Names that are taken, though they mean something elsewhere; and some that may not be. */
const NAMES = quoted(
  'toBSON',
  'toJSON',
  'toString',
  'valueOf',
  'then',
  'inspect',
  'length',
  'hasOwnProperty',
  'id',
  '_id',
  '_oid',
  'low',
  'high',
  'buffer',
  'sub_type',
  'code',
  'scope',
  'name',
  'type',
  'data',
  '0',
  'имя',
  '🚗',
  'a$b',
  '\\u2028',
);
const REFUSED = quoted('__proto__', 'constructor', 'prototype', '$set', '$ref', 'a.b', '', '\\u0000', '\\ud800');

/** As they stand in the text: some of them no program would write. */
const VALUES = [
  'null',
  'true',
  'false',
  '0',
  '-0',
  '-0.0',
  '1e308',
  '5e-324',
  '2147483648',
  '-2147483649',
  '0.1',
  '{}',
  '[]',
  '9007199254740993',
  '123456789012345678901234567890',
  '""',
  '"\\u0000"',
  '"$set"',
  '"\\ufffd"',
  '"__proto__"',
  ...quoted('ObjectId', 'Binary', 'Long', 'Code', 'DBRef', 'Decimal128', 'MinKey', '507f1f77bcf86cd799439011'),
];
const REFUSED_VALUES = ['1e400', '-1e400', '"\\ud800"', '"\\udc00x"'];

const jsonName = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...NAMES) },
  { weight: 3, arbitrary: fc.constant('"_bsontype"') },
  { weight: 1, arbitrary: fc.constantFrom(...REFUSED) },
  { weight: 1, arbitrary: fc.string({ maxLength: 12 }).map((name) => JSON.stringify(name)) },
);

const { value, object } = fc.letrec<{ value: string; object: string; list: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    { weight: 8, arbitrary: fc.constantFrom(...VALUES) },
    { weight: 1, arbitrary: fc.constantFrom(...REFUSED_VALUES) },
    { weight: 1, arbitrary: fc.json({ maxDepth: 2 }) },
    { weight: 5, arbitrary: tie('object') },
    { weight: 3, arbitrary: tie('list') },
  ),
  object: fc
    .array(fc.tuple(jsonName, tie('value')), { maxLength: 4 })
    .map((members) => `{${members.map((member) => member.join(':')).join(',')}}`),
  list: fc.array(tie('value'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
}));

/** Any JSON text, or one of an object. */
export const jsonText = value;
export const jsonObjectText = object;
