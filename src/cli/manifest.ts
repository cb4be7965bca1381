/** Reads the files of `vigil apply`: entities as YAML or JSON, each with its store. */
import { readdir, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { type Document, isPair, isScalar, LineCounter, parseAllDocuments, visit } from 'yaml';
import { isExactNumber, isRounded } from '../core/exact-json.js';
import { toOwnId } from '../core/own-id.js';
import { PlainError } from '../program.js';
import { checkNames } from './field-names.js';
import { readText } from './text-file.js';

/** One entity as a file describes it. */
export interface Wanted {
  readonly store: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** The field that names it, and its value there. */
  readonly key: string;
  readonly name: string;
  /** The file, for messages. */
  readonly source: string;
}

const EXTENSIONS = new Set(['.yaml', '.yml', '.json']);
/** Stores whose entities are identified by a field other than `name`. */
const KEYS: ReadonlyMap<string, string> = new Map([
  ['objects', 'id'],
  ['sources', 'id'],
  ['users', 'login'],
]);
/** The order of creation: referenced entities first. */
const ORDER = ['stores', 'roles', 'groups', 'models', 'users', 'labels', 'geofences', 'objects', 'handlers', 'sources'];

export const keyOf = (store: string): string => KEYS.get(store) ?? 'name';

/** Reads the entities of a file, or of all files below a folder, in the order of their creation. */
export async function readManifests(path: string): Promise<Wanted[]> {
  const files = await listFiles(path);
  if (files.length === 0) throw new PlainError(`${path} contains no .yaml, .yml or .json file`);
  const found: Wanted[] = [];
  for (const file of files) found.push(...parseManifest(await readText(file), file));
  const byName = new Map<string, Wanted>();
  for (const wanted of found) {
    const name = `${wanted.store}/${wanted.name}`;
    const other = byName.get(name);
    if (other !== undefined) throw new PlainError(`${wanted.source}: ${name} is also in ${other.source}`);
    byName.set(name, wanted);
  }
  return found.toSorted((a, b) => rankOf(a) - rankOf(b));
}

const rankOf = ({ store }: Wanted): number => {
  const rank = ORDER.indexOf(store);
  return rank === -1 ? ORDER.length : rank;
};

async function listFiles(path: string): Promise<string[]> {
  const found = await stat(path).catch(() => null);
  if (found === null) throw new PlainError(`There is no file or folder ${path}`);
  if (!found.isDirectory()) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && EXTENSIONS.has(extname(entry.name)))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** Parses a file: an entity, a list of entities, or several YAML documents of either. */
export function parseManifest(text: string, file: string): Wanted[] {
  // Anchors of YAML 1.1 are merged as well (`<<: *base`), since many files do so.
  const documents = parseAllDocuments(text, { lineCounter: new LineCounter(), merge: true });
  if (!Array.isArray(documents)) return [];
  return documents.flatMap((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw new PlainError(`${file}: ${error.message}`);
    const value = toValue(document, file);
    if (value === null) return [];
    return (Array.isArray(value) ? value : [value]).map((one) => toWanted(one, file));
  });
}

function toValue(document: Document.Parsed, file: string): unknown {
  const isJson = extname(file) === '.json';
  keepDigits(document, isJson ? isJsonNumber : isExactNumber);
  try {
    return document.toJS();
  } catch (error) {
    // Aliases that expand without end.
    throw new PlainError(`${file}: ${(error as Error).message}`);
  }
}

/** JSON marks text with quotes: all others are numbers, but those that a double cannot hold. */
const isJsonNumber = (value: number, source: string): boolean => Number.isFinite(value) && !isRounded(source);

/** Digits that a number would change are text: `pin: 0012`, `tag: 12E45678` and an ICCID of 19 digits. */
function keepDigits(document: Document.Parsed, isNumber: (value: number, source: string) => boolean): void {
  visit(document, {
    Scalar(key, node, path) {
      const { value, source } = node;
      const isName = key === 'key' || isNameOf(path.at(-1));
      const isKept = isNumber(value as number, source ?? '') && !(isName && String(value) !== source);
      if (typeof value === 'number' && source !== undefined && !isKept) node.value = source;
      // JSON has no bytes.
      if (value instanceof Uint8Array && source !== undefined) node.value = source;
    },
  });
}

/** Whether a pair is that of a text: `id: 1.10` names another object than 1.1, and a key of a map is text anyway. */
const isNameOf = (parent: unknown): boolean =>
  isPair(parent) && isScalar(parent.key) && ['id', 'name', 'login'].includes(String(parent.key.value));

function toWanted(value: unknown, file: string): Wanted {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new PlainError(`${file}: expected entities, each with "store"`);
  }
  const { store, ...fields } = value as Record<string, unknown>;
  if (typeof store !== 'string' || !/^[a-z][a-z0-9-]*$/.test(store)) {
    throw new PlainError(`${file}: an entity has no "store", such as store: models`);
  }
  const key = keyOf(store);
  // YAML takes `id: 4711` for a number.
  if (typeof fields[key] === 'number') fields[key] = String(fields[key]);
  if (KEYS.get(store) === 'id' && typeof fields.id === 'string') fields.id = toOwnId(fields.id);
  const name = fields[key];
  if (typeof name !== 'string' || name === '') throw new PlainError(`${file}: an entity of ${store} has no "${key}"`);
  checkNames(fields, `${file}: ${store}/${name}`);
  return { store, fields, key, name, source: file };
}
