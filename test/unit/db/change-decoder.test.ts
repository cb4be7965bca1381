/** What a change stream says, read where it is asked for. */
import { describe, expect, test } from '@jest/globals';
import { BSON, BSONRegExp, type Document, ObjectId } from 'mongodb';
import { type StreamChange, toChange, toPosition, toToken } from '../../../src/platform/mongo/changes/decoder.js';

const _id = new ObjectId();
const owner = new ObjectId();
const group = new ObjectId();
const shared = new ObjectId();
const GUARD = { owner, branch: [group], access: [shared] };
const TOKEN = '8267AB00';

/** The change of an event among others in a reply. */
function changeOf(coll: string, event: Document): StreamChange {
  const bytes = Buffer.from(
    BSON.serialize({ _id: { _data: TOKEN }, ns: { db: 'vigil', coll }, documentKey: { _id }, ...event }),
  );
  return toChange(Buffer.concat([Buffer.alloc(9, 1), bytes, Buffer.alloc(5, 1)]), 9);
}

const update = (before: Document, after: Document): StreamChange =>
  changeOf('objects', {
    operationType: 'update',
    fullDocument: { _id, ...GUARD, ...after },
    fullDocumentBeforeChange: { _id, ...GUARD, ...before },
  });

test('decodes a changed object: both versions, the changed fields, and the audience', () => {
  const change = update({ status: 'a', _at: 1 }, { status: 'b', _at: 2, note: 'new' });
  const id = _id.toHexString();
  expect([change.store, change.kind, change.id, change.objectId]).toEqual(['objects', 'changed', id, id]);
  expect(change.before).toMatchObject({ _id: id, status: 'a' });
  expect(change.after).toMatchObject({ _id: id, status: 'b', note: 'new', branch: [group.toHexString()] });
  expect([...(change.changed ?? [])].sort()).toEqual(['_at', 'note', 'status']);
  expect(change.accessFields).toEqual({
    owner: owner.toHexString(),
    branch: [group.toHexString()],
    access: [shared.toHexString()],
  });
  expect([change.token, change.position]).toEqual([{ _data: TOKEN }, toPosition({ _data: TOKEN })]);
  expect(toToken(change.position)).toEqual({ _data: TOKEN });
});

test('ignores unknown fields without missing a difference', () => {
  const pattern = new BSONRegExp('x', 'i');
  expect(update({ pattern, status: 'a' }, { pattern, status: 'b' }).changed).toEqual(['status']);
  expect(update({ pattern, status: 'a' }, { pattern, status: 'a' }).changed).toEqual([]);
});

describe('a change without both images', () => {
  test.each([
    ['created', { operationType: 'insert', fullDocument: { _id, ...GUARD } }, [null, expect.anything()]],
    ['changed', { operationType: 'replace', fullDocument: { _id, ...GUARD } }, [null, expect.anything()]],
    ['removed', { operationType: 'delete', fullDocumentBeforeChange: { _id, ...GUARD } }, [expect.anything(), null]],
    ['removed', { operationType: 'delete' }, [null, null]],
  ])('has unknown differences: %s', (kind, event, images) => {
    const change = changeOf('objects', event);
    expect([change.kind, change.changed]).toEqual([kind, null]);
    expect([change.before, change.after]).toEqual(images);
    expect(change.accessFields === null).toBe(change.after === null);
  });
});

test('reports only the end of a session', () => {
  const change = changeOf('sessions', {
    operationType: 'delete',
    documentKey: { _id: 'a-session' },
    fullDocumentBeforeChange: { _id: 'a-session', session: '{}' },
  });
  expect([change.id, change.kind, change.before, change.after, change.objectId]).toEqual([
    'a-session',
    'removed',
    null,
    null,
    null,
  ]);
});

test('assigns commands and packets to their objects, whatever their `_id` is', () => {
  const object = new ObjectId();
  const created = (coll: string, fullDocument: Document) => changeOf(coll, { operationType: 'insert', fullDocument });
  expect(created('commands', { _id, object }).objectId).toBe(object.toHexString());
  expect(created('packets', { _id, _oid: object }).objectId).toBe(object.toHexString());
  const foreign = changeOf('packets', {
    operationType: 'insert',
    documentKey: { _id: 7 },
    fullDocument: { _id: 7, _oid: object, speed: 3 },
  });
  expect([foreign.id, foreign.objectId, foreign.after?.speed]).toEqual(['7', object.toHexString(), 3]);
});
