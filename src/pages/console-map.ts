/** The map of the console: how the page names it, and a file of tiles that is sent in pieces. */
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { RequestHandler } from 'express';
import { badRequest } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { MapInUse } from '../settings/map.js';

export const TILES_PATH = '/console/map.pmtiles';
const ESCAPED: Readonly<Record<string, string>> = { '&': '&amp;', '"': '&quot;', '<': '&lt;', '>': '&gt;' };

/** How the page names the map, as JSON; nothing as long as nobody has decided. */
export function describeMap({ kind, url, attribution, from }: MapInUse, basePath: string): string {
  if (from === 'default') return '';
  const named = JSON.stringify({ kind, url: kind === 'file' ? basePath + TILES_PATH : url, attribution });
  return named.replace(/[&"<>]/g, (character) => ESCAPED[character] ?? '');
}

/**
 * Sends ranges of the file. The file may contain a whole country, so nobody receives all of it at once: without one bounded range,
 * and with a condition that would replace the range by the file (RFC 9110, 13.1.5), the answer is a 400.
 */
export function createMapTiles(tilesFile: string | null): RequestHandler | null {
  if (tilesFile === null) return null;
  const file = resolve(tilesFile);
  if (!existsSync(file)) throw new Error(`MAP_TILES: ${file} does not exist`);
  return async (req, res, next) => {
    const [, first, last] = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(req.headers.range ?? '') ?? [];
    const bytes = Number(last) - Number(first) + 1;
    if (!(bytes > 0 && bytes <= LIMITS.mapRangeBytes)) {
      throw badRequest(`Range: expected one range of at most ${LIMITS.mapRangeBytes} bytes, such as bytes=0-16383`);
    }
    const { size, mtime } = await stat(file);
    const etag = `"${size.toString(36)}-${mtime.getTime().toString(36)}"`;
    const condition = req.headers['if-range'];
    if (condition !== undefined && condition !== etag && condition !== mtime.toUTCString()) {
      throw badRequest('If-Range: the file has changed; ask for the range without this header');
    }
    // It is met, and the sender would compare it in another way.
    delete req.headers['if-range'];
    res.setHeader('ETag', etag);
    res.sendFile(file, { dotfiles: 'allow', maxAge: '1h' }, (error) => {
      if (error && !res.headersSent) next(error);
    });
  };
}
