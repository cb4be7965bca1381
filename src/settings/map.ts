/** Which map the console shows beneath the objects: what administrators choose, and what the environment decides instead. */
import { z } from 'zod';
import { badRequest } from '../core/errors.js';
import { explainIssue } from '../core/field-errors.js';
import { LIMITS } from '../core/limits.js';

/** What the environment variables `MAP_…` name. */
export interface ConfiguredMap {
  readonly styleUrl: string | null;
  /** Further origins from which that style loads tiles, fonts and images. */
  readonly origins: readonly string[];
  readonly tilesFile: string | null;
}

const STREETS_ORIGIN = 'https://tiles.openfreemap.org';

const KINDS = ['openfreemap', 'style', 'tiles', 'none'] as const;
export const KINDS_IN_USE = [...KINDS, 'file'] as const;
export const MAP_SOURCES = ['environment', 'settings', 'default'] as const;

// Blanks and quotes would end a value of the policy of the page, and `*` would permit every host.
const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])$/;
const PLACEHOLDERS = ['{z}', '{x}', '{y}'];

const url = z
  .string()
  .max(LIMITS.mapUrlCharacters)
  .refine(isWebUrl, 'expected an address that begins with https:// or http://, without a login');

const tilesUrl = url
  .refine((text) => PLACEHOLDERS.every((part) => text.split(part).length === 2), 'expected {z}, {x} and {y}, each once')
  .refine(
    (text) => !/[{}]/.test(PLACEHOLDERS.reduce((rest, part) => rest.replace(part, ''), text)),
    'expected no placeholders but {z}, {x} and {y}',
  );

const origins = z
  .array(
    z.string().max(LIMITS.mapUrlCharacters).refine(isMapOrigin, 'expected an origin such as https://tiles.example'),
  )
  .max(LIMITS.mapOrigins)
  .optional()
  .describe('Further origins from which the map loads tiles, fonts and images');

const attribution = z
  .string()
  .max(LIMITS.mapAttributionCharacters)
  .optional()
  .describe('Whose map it is, as text: most licences want it shown');

/** The choice of an administrator. */
export const MAP_CHOICE = z.discriminatedUnion(
  'kind',
  [
    z.strictObject({ kind: z.literal('openfreemap') }),
    z.strictObject({ kind: z.literal('style'), url, origins }),
    z.strictObject({ kind: z.literal('tiles'), url: tilesUrl, origins, attribution }),
    z.strictObject({ kind: z.literal('none') }),
  ],
  { error: `expected an object whose kind is one of ${KINDS.join(', ')}` },
);
export type MapChoice = z.infer<typeof MAP_CHOICE>;

/** The map that pages show, and who has decided it. */
export interface MapInUse {
  readonly kind: (typeof KINDS_IN_USE)[number];
  /** The address of the style, or of the tiles with `{z}`, `{x}` and `{y}`; null without one. */
  readonly url: string | null;
  readonly origins: readonly string[];
  readonly attribution: string | null;
  readonly from: (typeof MAP_SOURCES)[number];
  /** The environment variables that decide it. */
  readonly variables: readonly string[];
}

/** Throws a 400 that names the field. */
export function parseMapChoice(value: unknown): MapChoice {
  const { data, error } = MAP_CHOICE.safeParse(value, { error: explainMap, reportInput: true });
  if (data !== undefined) return data;
  const [issue] = error.issues;
  const field = ['map', ...(issue?.path ?? [])].join('.');
  throw badRequest(`${field}: ${issue?.input === undefined ? 'required' : issue.message}`);
}

const explainMap: typeof explainIssue = (issue) =>
  issue.code === 'unrecognized_keys' ? `has no field ${issue.keys.join(', ')} of this kind` : explainIssue(issue);

/** The environment decides before administrators do. */
export function toMapInUse(configured: ConfiguredMap, choice: MapChoice | null): MapInUse {
  const none = { url: null, origins: [], attribution: null };
  if (configured.styleUrl !== null) {
    const variables = configured.origins.length > 0 ? ['MAP_STYLE_URL', 'MAP_ORIGINS'] : ['MAP_STYLE_URL'];
    const named = { url: configured.styleUrl, origins: configured.origins };
    return { ...none, kind: 'style', ...named, from: 'environment', variables };
  }
  if (configured.tilesFile !== null) return { ...none, kind: 'file', from: 'environment', variables: ['MAP_TILES'] };
  if (choice === null) return { ...none, kind: 'none', from: 'default', variables: [] };
  return { ...none, ...choice, from: 'settings', variables: [] };
}

/** The origins that pages load the map from. */
export function originsOf({ kind, url: address, origins: further }: MapInUse): string[] {
  if (kind === 'openfreemap') return [STREETS_ORIGIN];
  return address === null ? [] : [...new Set([new URL(address).origin, ...further])];
}

function isWebUrl(text: string): boolean {
  if (/[\s\p{Cc}]/u.test(text) || !/^https?:\/\//i.test(text) || !URL.canParse(text)) return false;
  const { username, password, hostname } = new URL(text);
  return username === '' && password === '' && HOST.test(hostname);
}

/** With `*.` in front, every host below it. */
function isMapOrigin(text: string): boolean {
  return isWebUrl(text.replace('://*.', '://')) && URL.canParse(text) && new URL(text).origin === text;
}
