/** The formats of exports: packets as one file, without the limit of a list. */
import { badRequest } from '../core/errors.js';

export const EXPORT_TYPES = {
  csv: 'text/csv',
  ndjson: 'application/x-ndjson',
  geojson: 'application/geo+json',
  gpx: 'application/gpx+xml',
  parquet: 'application/vnd.apache.parquet',
} as const;

export type ExportFormat = keyof typeof EXPORT_TYPES;

/** Other media types of the same formats. */
const ALIASES: Readonly<Record<string, ExportFormat>> = {
  'application/csv': 'csv',
  'application/ndjson': 'ndjson',
  'application/jsonl': 'ndjson',
  'application/x-jsonlines': 'ndjson',
};

/** Media types that an `Accept` header may name, beside JSON. */
export const ACCEPTED_TYPES: readonly string[] = [...Object.values(EXPORT_TYPES), ...Object.keys(ALIASES)];

/** Returns the format of a media type; null for JSON. */
export function formatOfType(type: string): ExportFormat | null {
  const known = (Object.keys(EXPORT_TYPES) as ExportFormat[]).find((format) => EXPORT_TYPES[format] === type);
  return known ?? ALIASES[type] ?? null;
}

/** Parses `?format=`; null for JSON. Throws a 400. */
export function parseFormat(text: string): ExportFormat | null {
  if (text === 'json') return null;
  if (text === 'jsonl') return 'ndjson';
  if (Object.hasOwn(EXPORT_TYPES, text)) return text as ExportFormat;
  throw badRequest(`format: expected json, ${Object.keys(EXPORT_TYPES).join(', ')}`);
}
