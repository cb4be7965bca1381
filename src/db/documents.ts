/** The border to MongoDB: entity to document and back, a list query as a filter, a driver's error as an ApiError. */
import {
  BSONType,
  type Document,
  type Filter,
  MongoBulkWriteError,
  MongoError,
  MongoInvalidArgumentError,
  MongoServerError,
  MongoWriteConcernError,
  ObjectId,
} from 'mongodb';
import { ApiError, badRequest, conflict, tooLarge, unavailable } from '../errors.js';
import type { Scope } from '../model/access.js';
import { type Entity, isId } from '../model/entity.js';
import type { Json, JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { distinctPaths, type Selection } from '../model/list.js';
import type { Store } from '../model/stores.js';
import { findField, holdsObjectId, readObjectId } from './bson.js';
import { isPacketKey, packetIdIn } from './packet-key.js';

/** What the border has to know of a store (packets are no store, but are read the same way). */
export type Layout = Pick<Store, 'references' | 'texts' | 'hidden' | 'derived' | 'builtIn' | 'followsObject'>;

/** An entity's fields with its references as ObjectIds. */
export function toDocument(layout: Layout, fields: JsonObject): Document {
  const document: Document = { ...fields };
  if (isId(document._id)) document._id = new ObjectId(document._id);
  for (const path of layout.references) convert(document, path.split('.'));
  return document;
}

function convert(document: Document, [name, ...rest]: string[]): void {
  if (name === undefined || !Object.hasOwn(document, name)) return;
  const value = document[name];
  if (rest.length > 0) {
    if (typeof value !== 'object' || value === null) return;
    document[name] = { ...value };
    convert(document[name], rest);
  } else {
    document[name] = Array.isArray(value) ? value.map(toReference) : toReference(value);
  }
}

const toReference = (value: unknown): unknown => (isId(value) ? new ObjectId(value) : value);

/** A document as its owner may see it: ObjectIds as text, hidden fields gone. */
export function toEntity(layout: Pick<Layout, 'hidden'>, document: Document): Entity {
  const entity = toPlain(document) as Entity;
  for (const name of layout.hidden) delete entity[name];
  return entity;
}

/** Any BSON value as JSON. */
export function toPlain(value: unknown): Json {
  if (value instanceof ObjectId) return value.toHexString();
  if (isPacketKey(value)) return packetIdIn(value);
  if (value instanceof Date) return value.getTime();
  if (Array.isArray(value)) return value.map(toPlain);
  if (typeof value !== 'object' || value === null) return value as Json;
  const plain: JsonObject = {};
  for (const name of Object.keys(value)) plain[name] = toPlain((value as Document)[name]);
  return plain;
}

/** docs/reference/permissions.md: the entity's branch holds the caller's group, or the caller owns it or it is shared. */
export function scopeFilter(layout: Layout, scope: Scope): Filter<Document> {
  const user = new ObjectId(scope.userId);
  const owned = layout.followsObject ? { owner: user, _withoutOwner: { $ne: true } } : { owner: user };
  const rules: Filter<Document>[] = [{ branch: new ObjectId(scope.groupId) }, owned, { access: user }];
  if (layout.builtIn) rules.push({ _builtin: true });
  return { $or: rules };
}

/** The same rule for a stored entity that is there; whether who made it sees what follows an object, `isOwners` says. */
export function isVisible(layout: Layout, scope: Scope, document: Uint8Array): boolean {
  return (
    holdsObjectId(document, 'branch', scope.groupId) ||
    (!layout.followsObject && readObjectId(document, 'owner') === scope.userId) ||
    holdsObjectId(document, 'access', scope.userId) ||
    (layout.builtIn && findField(document, '_builtin', BSONType.bool)?.[0] === 1)
  );
}

/** The same rule as an expression over a stored entity. */
export function visibleExpression(layout: Layout, scope: Scope): Document {
  const user = new ObjectId(scope.userId);
  const holds = (name: string, id: ObjectId): Document => ({ $in: [id, { $ifNull: [`$${name}`, []] }] });
  const rules = [holds('branch', new ObjectId(scope.groupId)), { $eq: ['$owner', user] }, holds('access', user)];
  if (layout.builtIn) rules.push({ $eq: ['$_builtin', true] });
  return { $or: rules };
}

/** The conditions of a list query, each one to be met. `search` names the fields that a text is looked for in. */
export function selectionFilter(layout: Layout, selection: Selection, search: readonly string[]): Filter<Document>[] {
  const conditions: Filter<Document>[] = [];
  const { fromMs, toMs } = selection;
  if (fromMs !== null || toMs !== null) {
    conditions.push({ time: { ...(fromMs !== null && { $gte: fromMs }), ...(toMs !== null && { $lte: toMs }) } });
  }
  for (const filter of selection.filters) {
    checkReadable(layout, filter.path);
    conditions.push({ [filter.path]: { $in: filter.values.map((given) => toOperand(layout, filter.path, given)) } });
  }
  if (selection.search !== null) {
    const pattern = literalPattern(selection.search);
    conditions.push({ $or: search.map((field) => ({ [field]: { $regex: pattern, $options: 'i' } })) });
  }
  return conditions;
}

/** What only the service knows is no more filtered or sorted by than shown: the answer would tell it. */
export function checkReadable(layout: Layout, path: string): void {
  const first = path.split('.')[0] ?? '';
  if (layout.hidden.includes(first)) throw badRequest(`${path}: no such field`);
  if (layout.derived.includes(first)) throw badRequest(`${path}: is shown with the entity, but cannot be searched by`);
}

function toOperand(layout: Layout, path: string, given: Selection['filters'][number]['values'][number]): unknown {
  if (given.value === null) return null;
  if ((path === '_id' || layout.references.includes(path)) && isId(given.text)) return new ObjectId(given.text);
  return layout.texts.includes(path) ? given.text : given.value;
}

// Every character by its code point: no character of a client's text can mean anything to the matcher.
function literalPattern(text: string): string {
  return Array.from(text, (character) => `\\x{${(character.codePointAt(0) ?? 0).toString(16)}}`).join('');
}

/** Which fields the database sends: those asked for and `_id`, or all, but never hidden ones. */
export function projectionOf(layout: Layout, only: readonly string[] | null): Document | undefined {
  if (only !== null) {
    const shown = only.filter((path) => !layout.hidden.includes(path.split('.')[0] ?? ''));
    return Object.fromEntries(distinctPaths(['_id', ...shown]).map((path) => [path, 1]));
  }
  if (layout.hidden.length === 0) return undefined;
  return Object.fromEntries(layout.hidden.map((name) => [name, 0]));
}

const DUPLICATE = 11_000;
const TOO_LARGE: ReadonlySet<unknown> = new Set([10_334, 17_419, 17_420]);
/** Time-outs, elections, shutdowns, overload: the database could not say what it did. */
const AWAY: ReadonlySet<unknown> = new Set([
  6, 7, 24, 50, 64, 89, 91, 112, 133, 175, 189, 202, 262, 317, 9_001, 10_058, 10_107, 11_600, 11_601, 11_602, 13_435,
  13_436, 18, 462,
  // Cursors end with the server that has them: not found, killed, to be opened anew.
  43, 134, 234, 237,
]);
const AWAY_LABELS = [
  'RetryableWriteError',
  'SystemOverloadedError',
  'ResumableChangeStreamError',
  'TransientTransactionError',
  'UnknownTransactionCommitResult',
];

/** What the driver lets through as it is when the other side of a connection is gone. */
const CUT: ReadonlySet<unknown> = new Set([
  'EPIPE',
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  // Of the name that mongodb+srv:// begins with.
  'ENOTFOUND',
  'ESERVFAIL',
  'ETIMEOUT',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

/** Any error of the driver as what a client may know of it; errors of other origin come back as they are. */
export function toDatabaseError(error: unknown): unknown {
  if (error instanceof MongoError && error.code === DUPLICATE) return toConflict(error);
  if (error instanceof MongoError && TOO_LARGE.has(error.code)) {
    return tooLarge('the entity would become larger than the service stores');
  }
  return !(error instanceof ApiError) && isAway(error) ? away(error) : error;
}

function toConflict(error: MongoError): ApiError {
  const field = Object.keys((error as MongoServerError).keyPattern ?? {})[0] ?? '_id';
  return conflict(`${field}: already taken`);
}

/** Whether the database could not do it now but may in a moment. What was asked of it may have been done. */
export function isAway(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 503;
  if (CUT.has((error as { code?: unknown } | null)?.code)) return true;
  // What the driver does not take as it was given it will not take in a moment either.
  if (!(error instanceof MongoError) || error instanceof MongoInvalidArgumentError) return false;
  // A group of writes that never reached the database comes without an error of any one of them.
  if (error instanceof MongoBulkWriteError && [error.writeErrors].flat().length === 0) return true;
  // It is not known whether what was written is durable.
  if (error instanceof MongoWriteConcernError) return true;
  if (!(error instanceof MongoServerError) || AWAY.has(error.code)) return true;
  return AWAY_LABELS.some((label) => error.hasErrorLabel(label));
}

const away = (error: unknown): ApiError =>
  unavailable('the database did not answer in time; a write may or may not have been applied', error);

/** Runs one operation and translates what the driver throws; 503 when it takes longer, unless it may (`null`). */
export async function translated<T>(
  operation: () => Promise<T>,
  withinMs: number | null = LIMITS.databaseAnswerMs,
): Promise<T> {
  try {
    return await (withinMs === null ? operation() : withinTime(operation, withinMs));
  } catch (error) {
    throw toDatabaseError(error);
  }
}

/** The operation's result, or 503 when there is none in time: then it goes on, and nobody hears what becomes of it. */
export async function withinTime<T>(operation: () => Promise<T>, withinMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(away(new Error(`no answer within ${withinMs} ms`))), withinMs);
  });
  try {
    return await Promise.race([operation(), late]);
  } finally {
    clearTimeout(timer);
  }
}
