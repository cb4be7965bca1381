/** The forms of values in the environment. */
import { z } from 'zod';
import { parseDuration } from './core/time.js';

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

export const origins = list.check((context) => {
  for (const origin of context.value) {
    if (URL.canParse(origin) && new URL(origin).origin === origin && origin !== 'null') continue;
    context.issues.push({ code: 'custom', input: '', message: 'expected origins, such as https://crm.example' });
  }
});

/** A file of map tiles. */
export const tilesFile = z.string().regex(/\.pmtiles$/, 'expected a file that ends with .pmtiles');
