/** What happens when a read meets a damaged bucket: it is reported, and the read fails with an error that names the interval. */
import type { Binary } from 'mongodb';
import { ApiError } from '../../core/errors.js';
import { DamagedBucketError } from '../../packed/unpack.js';
import { PACKET_KEY } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';

/** Reads something of a bucket for a client. Throws a 500 if it is damaged. */
export function readForClient<T>(database: Database, id: Binary, read: () => T): T {
  try {
    return readReporting(database, id, read);
  } catch (error) {
    throw error instanceof DamagedBucketError ? toReadError(error) : error;
  }
}

/** Reads something of a bucket, and reports it if it is damaged. Throws the DamagedBucketError. */
export function readReporting<T>(database: Database, id: Binary, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof DamagedBucketError) reportDamage(database, id, error);
    throw error;
  }
}

function reportDamage({ onDamaged }: Database, id: Binary, { message }: DamagedBucketError): void {
  const documentId = id.toString('hex');
  // It begins with the key of a packet (buckets.ts), which ends with the object.
  const objectId = documentId.slice(2 * PACKET_KEY.OWN_BYTES, 2 * PACKET_KEY.BYTES);
  onDamaged?.({ documentId, objectId, reason: message });
}

/** A client may know which interval it is; everything else works. */
export function toReadError(error: DamagedBucketError): ApiError {
  const { message } = error;
  return new ApiError(500, message, { cause: error, details: { helper: { message } } });
}
