/** Finds sources by their own ids, with their keys, and gives them new keys. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { type Document, ObjectId } from 'mongodb';
import { DEFAULT_MODEL_ID } from '../../core/builtin.js';
import type { Change } from '../../core/change.js';
import type { JsonObject } from '../../core/json.js';
import { LIMITS } from '../../core/limits.js';
import { isValidOwnId, toOwnId } from '../../core/own-id.js';
import { parseSourceMap, type SourceMap } from '../../core/source.js';
import type { SourceKindName } from '../../core/source-kinds.js';
import { findZone, type Zone } from '../../core/zone.js';
import { createReadThroughCache } from '../../platform/cache.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../../platform/mongo/driver/errors.js';

/** A source as requests to it need it. */
export interface SourceRecord {
  readonly _id: string;
  readonly id: string;
  readonly kind: SourceKindName;
  readonly ownerId: string;
  readonly groupId: string;
  readonly branch: readonly string[];
  readonly modelId: string;
  readonly registers: boolean;
  readonly map: SourceMap;
  readonly zone: Zone | null;
  readonly keyHash: string;
  /** Where its system takes commands; null if it takes none. */
  readonly commandUrl: string | null;
  /** Null without a key for this address. */
  readonly commandKey: string | null;
}

export interface SourceFinder {
  /** The source with this own id and this key; null if there is none. Takes as long for a wrong key as for a wrong id. */
  authenticate(id: string, key: string): Promise<SourceRecord | null>;
  /** The source with this own id, for the audit. */
  find(id: string): Promise<SourceRecord | null>;
  invalidate(change: Pick<Change, 'store' | 'id'>): void;
  invalidateAll(): void;
}

/** 192 random bits: a plain hash of them cannot be searched. */
export const createKey = (): string => randomBytes(24).toString('base64url');

export const hashKey = (key: string): string => createHash('sha256').update(key).digest('base64url');

const NO_HASH = hashKey('');

export function createSourceFinder(database: Database, isLive: () => boolean): SourceFinder {
  const known = createReadThroughCache<SourceRecord>(LIMITS.cachedSources, isLive, async (id) => {
    const found = await mapDriverErrors(() => database.db.collection('sources').findOne({ id }));
    return found === null ? null : toRecord(found);
  });
  const find = async (given: string): Promise<SourceRecord | null> => {
    const id = toOwnId(given);
    return isValidOwnId(id) && id.length <= LIMITS.idCharacters ? known.find(id) : null;
  };
  return {
    find,
    async authenticate(id, key) {
      const source = await find(id);
      const isRight = timingSafeEqual(Buffer.from(hashKey(key)), Buffer.from(source?.keyHash ?? NO_HASH));
      return isRight && key !== '' ? source : null;
    },
    invalidate({ store, id }) {
      if (store === 'sources') known.invalidateWhere(({ _id }) => _id === id);
    },
    invalidateAll: known.invalidateAll,
  };
}

function toRecord(document: Document): SourceRecord {
  const kind = document.kind as SourceKindName;
  return {
    _id: String(document._id),
    id: document.id,
    kind,
    ownerId: String(document.owner),
    groupId: String(document.group),
    branch: (document.branch as ObjectId[]).map(String),
    modelId: document.model === undefined ? DEFAULT_MODEL_ID : String(document.model),
    registers: document.register === true,
    map: parseSourceMap(kind, document.map as JsonObject | undefined),
    zone: typeof document.timezone === 'string' ? findZone(document.timezone) : null,
    keyHash: String(document._key),
    ...toCommandAddress(document),
  };
}

function toCommandAddress({ commandUrl, _commandKey }: Document): Pick<SourceRecord, 'commandUrl' | 'commandKey'> {
  if (typeof commandUrl !== 'string') return { commandUrl: null, commandKey: null };
  const isOfAddress = _commandKey?.origin === new URL(commandUrl).origin;
  return { commandUrl, commandKey: isOfAddress ? String(_commandKey.key) : null };
}

/** A source by its `_id`; null if it was removed. */
export async function findSource(database: Database, sourceId: string): Promise<SourceRecord | null> {
  const filter = { _id: new ObjectId(sourceId) };
  const found = await mapDriverErrors(() => database.db.collection('sources').findOne(filter));
  return found === null ? null : toRecord(found);
}

/** Replaces the key of a source; the former one is no longer valid. */
export async function replaceKey(database: Database, sourceId: string, key: string): Promise<void> {
  const filter = { _id: new ObjectId(sourceId) };
  await mapDriverErrors(() => database.db.collection('sources').updateOne(filter, { $set: { _key: hashKey(key) } }));
}
