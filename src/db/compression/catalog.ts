/**
 * The collection of packets and its compressed copies, as collections. Every change of one names its UUID: a command that arrives
 * late, of an owner that was overtaken, changes no other collection than the one it meant.
 */
import { randomBytes } from 'node:crypto';
import type { CollectionInfo, Document, IndexDescription, UUID } from 'mongodb';
import { LIMITS } from '../../model/limits.js';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
import { PACKETS } from '../packets/packets.js';
import { COMPRESSED, PACKETS_COPY } from '../schema/collections.js';
import { CannotCompressError } from './state.js';

/** A collection. */
export interface Stored {
  readonly name: string;
  readonly uuid: UUID;
  readonly options: Document;
  readonly refusesInserts: boolean;
}

/** The collections of packets. */
export interface Catalog {
  readonly packets: Stored | null;
  readonly copies: readonly Stored[];
}

/** Nothing can be stored without `_id`, so this refuses every insert. */
const NO_INSERTS = { _id: { $exists: false } };

export async function readCatalog({ db }: Database): Promise<Catalog> {
  const names = { name: { $regex: `^${PACKETS}$|^${PACKETS_COPY}` }, type: 'collection' };
  const found = await mapDriverErrors(() => db.listCollections<CollectionInfo>(names).toArray());
  const all = found.map(({ name, options = {}, info }): Stored => {
    const refusesInserts = JSON.stringify(options.validator) === JSON.stringify(NO_INSERTS);
    return { name, uuid: (info as { uuid: UUID }).uuid, options, refusesInserts };
  });
  return {
    packets: all.find(({ name }) => name === PACKETS) ?? null,
    copies: all.filter(({ name }) => name !== PACKETS),
  };
}

/** What the collections take on disk, and how. */
export async function readStorage({
  db,
}: Database): Promise<{ bytes: number; packets: number; isCompressed: boolean }> {
  const stages = [{ $collStats: { storageStats: {} } }];
  const [found] = await mapDriverErrors(() => db.collection(PACKETS).aggregate(stages).toArray(), null);
  const { totalSize = 0, count = 0, wiredTiger } = found?.storageStats ?? {};
  return {
    ...{ bytes: totalSize, packets: count },
    isCompressed: /\bblock_compressor=zstd\b/.test(wiredTiger?.creationString ?? ''),
  };
}

/** The free space of the disk of the primary; null where MongoDB does not say. */
export async function readFreeBytes({ db }: Database): Promise<number | null> {
  const { fsTotalSize, fsUsedSize } = await mapDriverErrors(() => db.command({ dbStats: 1 }), null);
  return typeof fsTotalSize === 'number' && typeof fsUsedSize === 'number' ? fsTotalSize - fsUsedSize : null;
}

/** Creates an empty copy, which refuses the inserts of everybody who does not ask to bypass that. */
export async function createCopy(database: Database): Promise<Stored> {
  const { db } = database;
  const name = newName();
  await mapDriverErrors(() => db.createCollection(name, { ...COMPRESSED, validator: NO_INSERTS }));
  const created = (await readCatalog(database)).copies.find((one) => one.name === name);
  if (created === undefined) throw new Error(`the collection ${name} is gone`);
  await copyIndexes(database, created);
  // Changes nothing: shows that this user may do later what it has to.
  await changeCollection(database, created, {});
  return created;
}

/**
 * Creates the indexes of the packets, including those of the operator, that the copy does not have. Throws where one is unique: a
 * packet that has taken the value of another may come before the removal of that.
 */
export async function copyIndexes({ db }: Database, { name }: Stored): Promise<void> {
  const indexes = await mapDriverErrors(() => db.collection(PACKETS).listIndexes().toArray(), null);
  const unique = indexes.find((index) => index.unique || index.prepareUnique);
  if (unique !== undefined) throw new CannotCompressError(`the collection packets has the unique index ${unique.name}`);
  const wanted = indexes.flatMap(({ v: _, storageEngine: __, ...index }) =>
    index.name === '_id_' ? [] : [index as IndexDescription],
  );
  if (wanted.length > 0) await mapDriverErrors(() => db.collection(name).createIndexes(wanted), null);
}

/** From the answer on, nobody can insert, on any instance. */
export const refuseInserts = (database: Database, stored: Stored): Promise<void> =>
  changeCollection(database, stored, { validator: NO_INSERTS, validationLevel: 'strict', validationAction: 'error' });

export const acceptInserts = (database: Database, stored: Stored): Promise<void> =>
  changeCollection(database, stored, { validator: {} });

/** Others wait while this waits for a lock, so it does so for a short time only. */
async function changeCollection({ db }: Database, { name, uuid }: Stored, options: Document): Promise<void> {
  const command = { collMod: name, collectionUUID: uuid, ...options, maxTimeMS: LIMITS.compressionLockMs };
  await mapDriverErrors(() => db.command({ ...command, writeConcern: { w: 'majority' } }));
}

/** Gives the copy a name that no command under way knows; returns it with its name. */
export async function renameCopy(database: Database, copy: Stored): Promise<Stored> {
  const name = newName();
  await rename(database, copy, { to: name });
  return { ...copy, name };
}

/** Puts the copy in the place of the packets. */
export const exchange = (database: Database, copy: Stored, packets: Stored): Promise<void> =>
  rename(database, copy, { to: PACKETS, dropTarget: packets.uuid });

async function rename(
  { admin, db }: Database,
  { name, uuid }: Stored,
  { to, ...options }: { to: string; dropTarget?: UUID },
): Promise<void> {
  const names = { renameCollection: `${db.databaseName}.${name}`, to: `${db.databaseName}.${to}` };
  const command = { ...names, collectionUUID: uuid, ...options, maxTimeMS: LIMITS.compressionLockMs };
  await mapDriverErrors(() => admin.command({ ...command, writeConcern: { w: 'majority' } }));
}

export async function drop({ db }: Database, { name, uuid }: Stored): Promise<void> {
  const command = { drop: name, collectionUUID: uuid, writeConcern: { w: 'majority' } };
  await mapDriverErrors(() => db.command(command));
}

const newName = (): string => `${PACKETS_COPY}_${randomBytes(4).toString('hex')}`;
