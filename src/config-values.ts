/** The forms of values in the environment. */
import { z } from 'zod';
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

/** RFC 6454, 6.2: a scheme and, but for `file://`, a host. URLs of such schemes have the origin `null`, so it is compared as text. */
function isAppOrigin(text: string): boolean {
  return /^(?!https?:|wss?:|ftp:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9.-]*(:\d{1,5})?$/.test(text);
}

/** A file of map tiles. */
export const tilesFile = z.string().regex(/\.pmtiles$/, 'expected a file that ends with .pmtiles');
