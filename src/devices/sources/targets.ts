/** Finds the objects of devices by what senders call them, within the group of the source, and creates missing ones. */
import type { MongoClient } from 'mongodb';
import { RateLimiterMongo, RateLimiterRes } from 'rate-limiter-flexible';
import { parseNewEntity } from '../../core/entity.js';
import { ApiError, tooManyRequests, unavailable } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import { isValidOwnId, toOwnId } from '../../core/own-id.js';
import { builtInStore } from '../../core/stores.js';
import { createEntity, newId } from '../../entities/write.js';
import { type Source, toSource } from '../../packets/source.js';
import { holdsObjectId } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { findStored } from '../../platform/mongo/schema/lookup.js';
import type { SourceRecord } from './source-store.js';

export interface Targets {
  /** The object of the first of these identifiers that has one which the source may write; null if none has. */
  find(source: SourceRecord, devices: readonly string[]): Promise<Source | null>;
  /** Creates the object of a device; null for an identifier that cannot be one, or that belongs to another group. Throws 429. */
  register(source: SourceRecord, device: string): Promise<Source | null>;
}

export interface TargetDeps {
  readonly database: Database;
  readonly now: () => number;
}

const OBJECTS = builtInStore('objects');

export function createTargets({ database, now }: TargetDeps): Targets {
  const count = createRegistrationLimit(database.client);
  const findOne = async (source: SourceRecord, device: string): Promise<Source | null> => {
    const ownId = toOwnId(device);
    if (!isValidOwnId(ownId) || ownId.length > LIMITS.idCharacters) return null;
    const document =
      (await findStored(database, OBJECTS, 'id', ownId)) ??
      (ownId === device ? null : await findStored(database, OBJECTS, 'id', device));
    return document !== null && holdsObjectId(document, 'branch', source.groupId) ? toSource(document) : null;
  };
  return {
    async find(source, devices) {
      const found = await Promise.all(devices.map((device) => findOne(source, device)));
      return found.find((one) => one !== null) ?? null;
    },
    async register(source, device) {
      const fields = toNewObject(source, device);
      if (fields === null) return null;
      // Only new objects count: another group may have it, or another request has created it.
      if ((await findStored(database, OBJECTS, 'id', toOwnId(device))) !== null) return findOne(source, device);
      await count(source._id);
      const { groupId, branch, ownerId } = source;
      const place = { owner: ownerId, group: groupId, branch: [...branch], access: [], time: now() };
      try {
        await createEntity(database, OBJECTS, { _id: newId(), ...fields, ...place });
      } catch (error) {
        // Another request has created it, or another group has it.
        if (!(error instanceof ApiError) || error.status !== 409) throw error;
      }
      return findOne(source, device);
    },
  };
}

/** Null for an identifier that no object can have. */
function toNewObject({ modelId }: SourceRecord, device: string) {
  try {
    const name = device.slice(0, LIMITS.nameCharacters);
    const { fields } = parseNewEntity(OBJECTS, { id: device, name, model: modelId });
    return { ...fields, models: { id: modelId } };
  } catch {
    return null;
  }
}

/** Counted in the database, so that all instances share the count. */
function createRegistrationLimit(client: MongoClient): (sourceId: string) => Promise<void> {
  const limiter = new RateLimiterMongo({
    storeClient: client,
    dbName: client.db().databaseName,
    tableName: 'attempts',
    disableIndexesCreation: true,
    keyPrefix: 'registered',
    points: LIMITS.sourceRegistrations,
    duration: LIMITS.sourceRegistrationsMs / 1_000,
  });
  return async (sourceId) => {
    try {
      await limiter.consume(sourceId);
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw unavailable('the counter of new objects is unavailable', error);
      const why = `the source has created ${LIMITS.sourceRegistrations} objects within an hour`;
      throw tooManyRequests(error.msBeforeNext / 1_000, why);
    }
  };
}
