/** Maps errors of the driver to ApiError, and bounds the duration of operations. */

import {
  MongoBulkWriteError,
  MongoError,
  MongoInvalidArgumentError,
  MongoServerError,
  MongoWriteConcernError,
} from 'mongodb';
import { ApiError, conflict, tooLarge, unavailable } from '../../../core/errors.js';
import { LIMITS } from '../../../core/limits.js';
import { clock, type Timer } from '../../clock.js';

const DUPLICATE = 11_000;
const TOO_LARGE: ReadonlySet<unknown> = new Set([10_334, 17_419, 17_420]);
/** Time-outs, elections, shutdowns, overload: the result of the operation is unknown. */
const TRANSIENT_CODES: ReadonlySet<unknown> = new Set([
  6, 7, 24, 50, 64, 89, 91, 112, 133, 175, 189, 202, 262, 317, 9_001, 10_058, 10_107, 11_600, 11_601, 11_602, 13_435,
  13_436, 18, 462,
  // A cursor is lost with its server: not found, killed, to be opened again.
  43, 134, 234, 237,
  // A snapshot is too old, or of before a change of a collection: another one is read.
  239, 246,
]);
const SNAPSHOT_GONE: ReadonlySet<unknown> = new Set([239, 246]);
const TRANSIENT_LABELS = [
  'RetryableWriteError',
  'SystemOverloadedError',
  'ResumableChangeStreamError',
  'TransientTransactionError',
  'UnknownTransactionCommitResult',
];

/** Errors of the connection that the driver passes on unchanged. */
const CONNECTION_ERRORS: ReadonlySet<unknown> = new Set([
  'EPIPE',
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  // From the DNS look-up of mongodb+srv://.
  'ENOTFOUND',
  'ESERVFAIL',
  'ETIMEOUT',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

/** Whether a document with the same unique value exists. */
export const isDuplicate = (error: unknown): boolean => error instanceof MongoError && error.code === DUPLICATE;

/** Whether an unordered insert failed only for documents that are there already. */
export const areDuplicates = (error: unknown): boolean =>
  error instanceof MongoBulkWriteError && [error.writeErrors].flat().every(({ code }) => code === DUPLICATE);

/** Whether the database does not have a moment of the past, or no longer. */
export const isSnapshotGone = (error: unknown): boolean =>
  error instanceof ApiError && error.cause instanceof MongoServerError && SNAPSHOT_GONE.has(error.cause.code);

/** Converts an error of the driver to an ApiError; returns all other errors unchanged. */
export function toDatabaseError(error: unknown): unknown {
  if (error instanceof MongoError && error.code === DUPLICATE) return toConflict(error);
  if (error instanceof MongoError && TOO_LARGE.has(error.code)) {
    return tooLarge('the entity would become larger than the service stores');
  }
  return !(error instanceof ApiError) && isTransientError(error) ? transientError(error) : error;
}

function toConflict(error: MongoError): ApiError {
  const field = Object.keys((error as MongoServerError).keyPattern ?? {})[0] ?? '_id';
  return conflict(`${field}: already taken`);
}

/** Whether a retry may succeed. The failed operation may have been applied. */
export function isTransientError(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 503;
  if (CONNECTION_ERRORS.has((error as { code?: unknown } | null)?.code)) return true;
  // An argument that the driver refuses stays invalid.
  if (!(error instanceof MongoError) || error instanceof MongoInvalidArgumentError) return false;
  // A bulk write that never reached the database has no errors of single writes.
  if (error instanceof MongoBulkWriteError && [error.writeErrors].flat().length === 0) return true;
  // The write may not be durable.
  if (error instanceof MongoWriteConcernError) return true;
  if (!(error instanceof MongoServerError) || TRANSIENT_CODES.has(error.code)) return true;
  return TRANSIENT_LABELS.some((label) => error.hasErrorLabel(label));
}

const transientError = (error: unknown): ApiError =>
  unavailable('the database did not answer in time; a write may or may not have been applied', error);

/** Runs an operation and maps errors of the driver. Throws 503 after `withinMs`; null means no limit. */
export async function mapDriverErrors<T>(
  operation: () => Promise<T>,
  withinMs: number | null = LIMITS.databaseAnswerMs,
): Promise<T> {
  try {
    return await (withinMs === null ? operation() : withTimeout(operation, withinMs));
  } catch (error) {
    throw toDatabaseError(error);
  }
}

/** Throws 503 after `withinMs`. The operation then continues, but its result is dropped. */
export async function withTimeout<T>(operation: () => Promise<T>, withinMs: number): Promise<T> {
  let timer: Timer | undefined;
  const timedOut = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(() => reject(transientError(new Error(`no answer within ${withinMs} ms`))), withinMs);
  });
  try {
    return await Promise.race([operation(), timedOut]);
  } finally {
    clock.clearTimer(timer);
  }
}
