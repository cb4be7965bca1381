/** Stored documents as oracles read them. */
import type { Document } from 'mongodb';
import { PRESENCE_FIELDS } from '../../../src/core/packet-fields.js';
import { isNumber, toNumber } from './compare.js';

/** With numbers of JavaScript, also for dates, at all depths but in arrays. */
export function toPlain(value: unknown): Document {
  if (isNumber(value)) return toNumber(value) as unknown as Document;
  if (value instanceof Date) return value.getTime() as unknown as Document;
  if (typeof value !== 'object' || value === null || '_bsontype' in value || Array.isArray(value))
    return value as Document;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, toPlain(one)]));
}

/** Whether a packet says nothing but whether its device is there. */
export const isReport = (packet: Document): boolean =>
  Object.keys(packet).every((name) => (PRESENCE_FIELDS as readonly string[]).includes(name));
