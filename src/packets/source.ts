/** The object that packets are read from or stored for. */
import { BSONType } from 'mongodb';
import type { Scope } from '../core/access.js';
import { notFound } from '../core/errors.js';
import { builtInStore } from '../core/stores.js';
import { findField, readObjectId, readText } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findByKey } from '../platform/mongo/schema/lookup.js';
import type { PacketSource } from './packet.js';

/** A source of packets with its model. */
export type Source = PacketSource & { readonly modelId: string };

/** Throws 404. */
export async function getSource(database: Database, scope: Scope, key: string): Promise<Source> {
  const document = await findByKey(database, builtInStore('objects'), scope, key, { isCommitted: true });
  if (document === null) throw notFound();
  return toSource(document);
}

/** Decodes only the fields of an object that reading and writing packets need. */
export function toSource(document: Uint8Array): Source {
  const reference = (name: string): string => findField(document, name, BSONType.objectId)?.toString('hex') ?? '';
  return {
    objectId: readObjectId(document) ?? '',
    ownId: readText(document, 'id'),
    groupId: reference('group'),
    modelId: reference('model'),
  };
}
