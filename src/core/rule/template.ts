/** The text of a notification: `{{object.name}} is at {{values.temperature}} °C`. What it names is text, never markup. Pure. */
import { badRequest } from '../errors.js';
import type { Json, JsonObject } from '../json.js';
import { isObject } from '../json.js';
import { LIMITS } from '../limits.js';

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;
/** What a text may name: `config` of an object may be secret. */
const NAMES =
  /^(?:object\.(?:name|id|description|status)|alarm\.(?:name|severity|status|raised|cleared)|position\.(?:lat|lon)|values(?:\.[^\s.{}]{1,128}){1,10})$/u;

/** Throws a 400 that names the place. */
export function parseTemplate(value: Json, place: string): string | null {
  if (value === null) return null;
  if (typeof value !== 'string' || value.trim() === '' || value.length > LIMITS.notificationTemplateCharacters) {
    throw badRequest(`${place}: expected text of at most ${LIMITS.notificationTemplateCharacters} characters`);
  }
  for (const [whole, name = ''] of value.matchAll(PLACEHOLDER)) {
    if (!NAMES.test(name.trim())) {
      throw badRequest(
        `${place}: ${whole} is not known; expected object.name, values.<parameter>, position.lat, alarm.name or others of the list`,
      );
    }
  }
  if (/\{\{|\}\}/.test(value.replace(PLACEHOLDER, ''))) throw badRequest(`${place}: {{ and }} do not match`);
  return value;
}

/** What is missing becomes `–`. A value is on one line: no name and no device writes lines of its own. */
export function renderTemplate(template: string, facts: JsonObject): string {
  return template.replace(PLACEHOLDER, (_whole, written: string) => {
    const name = written.trim();
    return toShown(name, readAt(facts, name.split('.')));
  });
}

function readAt(value: Json | undefined, path: readonly string[]): Json {
  let found = value ?? null;
  for (const name of path) {
    if (!isObject(found) || !Object.hasOwn(found, name)) return null;
    found = found[name] ?? null;
  }
  return found;
}

function toShown(name: string, value: Json): string {
  if (value === null) return '–';
  if (typeof value === 'number' && /^alarm\.(raised|cleared)$/.test(name)) return toTimeText(value);
  const text = typeof value === 'string' ? toOneLine(value) : JSON.stringify(value);
  return text.length > LIMITS.notificationValueCharacters
    ? `${text.slice(0, LIMITS.notificationValueCharacters)}…`
    : text;
}

export const toOneLine = (text: string): string => text.replace(/\s+/gu, ' ');

/** `2026-11-27 08:15:00 UTC`. */
export const toTimeText = (timeMs: number): string =>
  `${new Date(timeMs).toISOString().replace('T', ' ').slice(0, 19)} UTC`;
