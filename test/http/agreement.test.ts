/** The check of answers against the OpenAPI document detects differences. */
import { expect, test } from '@jest/globals';
import { checkAgreement, type Seen } from '../support/agreement.js';

const ID = 'a'.repeat(24);
const COMMON = { _id: ID, owner: ID, group: ID, branch: [ID], access: [], time: 1 };
const LABEL = { ...COMMON, name: 'x', success: true };
const PACKET = { _id: ID, _ts: 1, time: 1, online: true, _oid: ID, id: 'truck', _gid: ID };
const NOT_FOUND = { success: false, code: '404', message: 'Not Found', tags: ['error_not_found'] };

const seen = (method: string, path: string, body: unknown, more: Partial<Seen> = {}): Seen => ({
  method,
  path,
  status: 200,
  type: 'application/json; charset=utf-8',
  body,
  ...more,
});

test.each<[string, Seen]>([
  ['an entity', seen('POST', 'labels', LABEL)],
  ['an entity under another spelling of its path', seen('PATCH', '/API/v1/Labels/x/', LABEL)],
  ['what only asked for', seen('GET', `labels/${ID}?only=name`, { _id: ID, success: true })],
  ['a list', seen('GET', 'objects/truck/packets', [PACKET])],
  ['a summary', seen('GET', 'labels?meta=1', { count: 0, first: null, last: null })],
  ['an error', seen('GET', `labels/${ID}`, NOT_FOUND, { status: 404 })],
  ['a method that is not there', seen('PUT', 'labels', {}, { status: 405 })],
  ['an entity of a store that was added', seen('POST', 'drivers', { ...LABEL, name: 7 })],
])('accepts %s', (_, one) => expect(() => checkAgreement(one)).not.toThrow());

test.each<[string, Seen, string]>([
  ['a field of another type', seen('POST', 'labels', { ...LABEL, name: 7 }), '/name must be string'],
  ['a field that is missing', seen('POST', 'labels', { ...LABEL, owner: undefined }), "required property 'owner'"],
  ['no success', seen('GET', `labels/${ID}`, { _id: ID }), "required property 'success'"],
  ['a list of something else', seen('GET', 'objects/truck/packets', [{ ...PACKET, _ts: '1' }]), '/0/_ts must be'],
  ['a summary with more in it', seen('GET', 'labels?meta=1', { count: 0, first: null, last: null, x: 1 }), 'x'],
  ['a status that is not there', seen('GET', 'labels', {}, { status: 418 }), 'no such status'],
  ['another error’s body', seen('GET', 'labels', NOT_FOUND, { status: 403 }), '/code must be equal to constant'],
  ['another type', seen('GET', 'labels', [], { type: 'text/html' }), 'no text/html there'],
  ['a method that is answered and not there', seen('PUT', 'labels', LABEL), 'no such operation'],
  ['a path that is answered and not there', seen('GET', '/metrics', {}), 'no such operation'],
])('rejects %s', (_, one, why) => expect(() => checkAgreement(one)).toThrow(why));
