/** What is read out of BSON without building anything of it. */
import { expect, test } from '@jest/globals';
import { BSON, ObjectId } from 'mongodb';
import type { JsonObject } from '../../../src/core/json.js';
import {
  differingMembers,
  hasOthers,
  holdsObjectId,
  readObjectId,
  readObjectIds,
  readText,
} from '../../../src/platform/mongo/bson/reader.js';
import { fc, runsOf } from '../../support/runs.js';

const bytes = (document: object): Buffer => Buffer.from(BSON.serialize(document));

test('finds the members whose JSON differs, in any order', () => {
  const anyValue = fc.jsonValue().filter((one) => !JSON.stringify(one).includes('\\u0000'));
  const value = fc.oneof(anyValue, fc.constantFrom('a', 'b', 1, 2, null, true));
  const name = fc.oneof(
    fc.constantFrom('a', 'b', 'c', 'name', 'ünï'),
    fc.string().filter((one) => !one.includes('\0')),
  );
  const fields = fc.array(fc.tuple(name, value), { maxLength: 8 });
  const property = fc.property(fields, fields, fc.integer(), (first, second, seed) => {
    // Some of both, in another order.
    const shared = first.filter((_, at) => (seed >> at) & 1);
    const toFields = (all: typeof first) => JSON.parse(JSON.stringify(Object.fromEntries(all))) as JsonObject;
    const before = toFields(first);
    const after = toFields([...second, ...shared]);
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    // Not `all[one]`: an object that has no member `__proto__` has a prototype.
    const jsonOf = (all: JsonObject, one: string) => (Object.hasOwn(all, one) ? JSON.stringify(all[one]) : undefined);
    const expected = names.filter((one) => jsonOf(before, one) !== jsonOf(after, one));
    expect(differingMembers(bytes(before), bytes(after)).sort()).toEqual(expected.sort());
  });
  fc.assert(property, { numRuns: runsOf(500) });
});

test('reads ids and texts of a nested document', () => {
  const id = new ObjectId();
  const document = bytes({ text: 'outer', inner: { _id: id, text: 'grüße', number: 5 } });
  const inner = document.indexOf(bytes({ _id: id, text: 'grüße', number: 5 }));
  expect(readObjectId(document, '_id', inner)).toBe(id.toHexString());
  expect(readText(document, 'text', inner)).toBe('grüße');
  expect(readText(document, 'text')).toBe('outer');
  expect([readObjectId(document, 'text', inner), readText(document, 'number', inner)]).toEqual([null, '']);
});

test('finds an id in a list exactly if it is a member', () => {
  const ids = Array.from({ length: 4 }, () => new ObjectId());
  const members = fc.array(fc.oneof(fc.constantFrom(...ids), fc.constantFrom('text', 7, null, { id: ids[0] })));
  const property = fc.property(members, fc.constantFrom(...ids), (list, id) => {
    const document = bytes({ before: [id], list, after: id });
    expect(holdsObjectId(document, 'list', id.toHexString())).toBe(list.includes(id));
    expect(readObjectIds(document, 'list')).toEqual(list.filter((one) => one instanceof ObjectId).map(String));
    expect(holdsObjectId(document, 'none', id.toHexString())).toBe(false);
    expect(holdsObjectId(document, 'after', id.toHexString())).toBe(false);
  });
  fc.assert(property);
});

test.each<[document: object, names: string[], has: boolean]>([
  [{}, [], false],
  [{ a: 1 }, [], true],
  [{ a: 1 }, ['a'], false],
  [{ b: { c: 1 }, a: [1] }, ['a', 'b'], false],
  [{ a: 1 }, ['a', 'b'], false],
  [{ a: 1, c: 'x' }, ['a', 'b'], true],
  [{ a: 1, b: 2, c: 3 }, ['a', 'b'], true],
  [{ ab: 1 }, ['a', 'b'], true],
])('compares the members of %j and %j: %p', (document, names, has) =>
  expect(hasOthers(bytes(document), names)).toBe(has),
);
