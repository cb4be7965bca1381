/** Compresses JSON for clients that ask for it (RFC 9110, 12.5.3). */

import { promisify } from 'node:util';
import { gzip as gzipWithCallback } from 'node:zlib';
import type { Response } from 'express';
import { LIMITS } from '../../../core/limits.js';

const gzip = promisify(gzipWithCallback);

// Higher levels cost several times the processor time and save few bytes more.
const OPTIONS = { level: 1 };

// `gzip`, unless its weight is zero.
const GZIP = /(?:^|,)\s*(?:x-)?gzip\s*(?:;\s*q=(?!0(?:\.0{0,3})?\s*(?:,|$))[\d.]+\s*)?(?:,|$)/i;

/** Whether the client of a request accepts gzip. */
const acceptsGzip = (header: string | undefined): boolean => header !== undefined && GZIP.test(header);

let running = 0;

/**
 * The compressed body, or null where it is sent as it is: it is small, the client does not ask for it, or as many are being compressed
 * already as may be. Only answers to reads are compressed: an answer that contains a new secret is not (BREACH).
 */
export function compress(res: Response, body: Buffer | string, bytes: number): Promise<Buffer | null> | null {
  if (bytes < LIMITS.compressedBytesMin || res.req.method !== 'GET' || res.statusCode !== 200) return null;
  res.vary('Accept-Encoding');
  if (running >= LIMITS.compressionsAtOnce || !acceptsGzip(res.req.headers['accept-encoding'])) return null;
  running++;
  // An answer that cannot be compressed is sent as it is.
  return gzip(body, OPTIONS)
    .catch(() => null)
    .finally(() => running--);
}
