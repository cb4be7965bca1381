/** The forms of values in the environment. */
import { z } from 'zod';
import { isAppOrigin } from './core/app-origin.js';
import { parseDuration } from './core/duration.js';

const SECRET_CHARACTERS = 32;
const SECRET_VARIETY = 10;

export const duration = (max: number, min = 1_000) =>
  z.string().transform((text, context) => {
    const durationMs = parseDuration(text);
    if (durationMs !== null && durationMs >= min && durationMs <= max) return durationMs;
    context.addIssue(`expected a duration of at least ${min / 1_000}s, such as 30m, 12h, "90 days" or milliseconds`);
    return z.NEVER;
  });

/** Null for `never`. */
export const durationOrNever = (max: number, min: number) =>
  z.union([z.literal('never').transform(() => null), duration(max, min)], {
    error: `expected never, or a duration of at least ${min / 1_000}s, such as "7 days"`,
  });

export const port = z.coerce.number('expected a port').int().min(0).max(65_535);

export const count = z.coerce.number('expected a whole number').int('expected a whole number').min(1).max(1_000_000);

export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

export const secrets = list.check((context) => {
  for (const secret of context.value) {
    if (secret.length >= SECRET_CHARACTERS && new Set(secret).size >= SECRET_VARIETY) continue;
    const message = `each secret needs at least ${SECRET_CHARACTERS} characters, not a few repeated ones`;
    context.issues.push({ code: 'custom', input: '', message });
  }
});

/** Origins of web servers: `https://tiles.example`. */
export const webOrigins = toOrigins(isWebOrigin, 'expected origins, such as https://crm.example');

/** Origins of pages, also of those inside apps, which no web server sends: `capacitor://localhost`, `ionic://localhost`, `file://`. */
export const pageOrigins = toOrigins(
  (origin) => isWebOrigin(origin) || isAppOrigin(origin),
  'expected origins, such as https://crm.example or capacitor://localhost',
);

function toOrigins(isOrigin: (text: string) => boolean, message: string) {
  return list.check((context) => {
    for (const origin of context.value) {
      if (!isOrigin(origin)) context.issues.push({ code: 'custom', input: '', message });
    }
  });
}

function isWebOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text && text !== 'null';
}

/** A path of another site, as it is written before the paths of Vigil: `/vigil`, or nothing at the root. */
export const basePath = z.string().transform((text, context) => {
  const path = text.replace(/\/+$/, '');
  if (path === '' || (BASE_PATH.test(path) && !OWN_PATHS.has(path.split('/', 2)[1] ?? ''))) return path;
  context.addIssue('expected a path that no address of Vigil begins with, such as /vigil/');
  return z.NEVER;
});
// Unreserved characters of RFC 3986, without the segments `.` and `..`.
const BASE_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]{1,64}){1,8}$/;
const OWN_PATHS: ReadonlySet<string> = new Set(
  'access account alarms api compare console data docs geofences log models nearest objects reports rules s socket.io welcome'.split(
    ' ',
  ),
);

/** A file of map tiles. */
export const tilesFile = z.string().regex(/\.pmtiles$/, 'expected a file that ends with .pmtiles');

/** The address of a service below which others are, without a slash at its end. */
export const webAddress = z
  .url({ protocol: /^https?$/, error: 'expected http:// or https://' })
  .refine((text) => !/[?#]/.test(text), 'expected an address without ? and #')
  .transform((text) => text.replace(/\/+$/, ''));

/** `Vigil <alarms@example.com>`, or the address alone. */
export const mailFrom = z
  .string()
  .regex(
    /^(?:[^\s@<>]+@[^\s@<>]+|[^<>\r\n]*<[^\s@<>]+@[^\s@<>]+>)$/,
    'expected a mail address, such as "Vigil <alarms@example.com>"',
  );
