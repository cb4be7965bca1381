/** Who imports whom in src/, and who may: the table of src/README.md. */
import { existsSync } from 'node:fs';
import { posix } from 'node:path';
import { type File, nodesOf, parse } from './files.js';
import { readCode, readSection, readTable } from './markdown.js';

export interface Import {
  /** The importing file. */
  readonly from: string;
  /** Another file of ours, or the name of a package (or `node:…`). */
  readonly to: string;
  readonly isOurs: boolean;
  readonly isTypeOnly: boolean;
}

/** A row of the table: a folder may import the folders above it, and these packages. */
export interface ImportRule {
  /** `core/`, or `src/` for the files that are in no folder. */
  readonly folder: string;
  /** `node:*` stands for all of Node's modules. */
  readonly packages: readonly string[];
}

/** Every import and re-export of a file. */
export function importsOf(file: File): Import[] {
  const found: Import[] = [];
  const add = (source: unknown, isTypeOnly: boolean) => {
    const spelled = String((source as { value?: unknown }).value);
    const isOurs = spelled.startsWith('.');
    const to = isOurs ? resolveOurs(file.path, spelled) : toPackage(spelled);
    found.push({ from: file.path, to, isOurs, isTypeOnly });
  };
  for (const [node] of nodesOf(parse(file).body)) {
    if (node.type === 'ImportDeclaration') add(node.source, isTypeOnly(node));
    else if (/^Export(Named|All)Declaration$/.test(node.type) && node.source) add(node.source, node.typeOnly === true);
    else if (node.type === 'CallExpression' && (node.callee as { type: string }).type === 'Import') {
      add((node.arguments as { expression: unknown }[])[0]?.expression, false);
    }
  }
  return found;
}

function isTypeOnly({ typeOnly, specifiers }: { readonly [field: string]: unknown }): boolean {
  const named = specifiers as { isTypeOnly?: boolean }[];
  return typeOnly === true || (named.length > 0 && named.every((specifier) => specifier.isTypeOnly === true));
}

function resolveOurs(path: string, spelled: string): string {
  const file = posix.join(posix.dirname(path), spelled.replace(/\.js$/, '.ts'));
  return existsSync(`${file}x`) ? `${file}x` : file;
}

function toPackage(spelled: string): string {
  if (spelled.startsWith('node:')) return spelled;
  return spelled
    .split('/')
    .slice(0, spelled.startsWith('@') ? 2 : 1)
    .join('/');
}

/** The folder of a file in the table: the first below src/, or `src/` itself. */
export function folderOf(path: string): string {
  const [, folder = '', ...rest] = path.split('/');
  return rest.length === 0 ? 'src/' : `${folder}/`;
}

/** The table "Import rules", from the lowest folder to the composition. */
export function readImportRules(): ImportRule[] {
  return readTable(readSection('src/README.md', 'Import rules')).map(([folder, , packages]) => ({
    folder: readCode(folder)[0] as string,
    packages: readCode(packages),
  }));
}

/** The table "Programs beside the service": the folders that each may import. */
export function readProgramRules(): ReadonlyMap<string, readonly string[]> {
  const rows = readTable(readSection('src/README.md', 'Programs beside the service'));
  return new Map(rows.map(([folder, , imports]) => [readCode(folder)[0] as string, readCode(imports)]));
}

/** A ring of files that import each other, the first one found; null when there is none. */
export function findCycle(imports: readonly Import[]): string[] | null {
  const edges = new Map<string, string[]>();
  for (const { from, to, isOurs } of imports) if (isOurs) edges.set(from, [...(edges.get(from) ?? []), to]);
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): string[] | null => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (done.has(file)) return null;
    for (const next of edges.get(file) ?? []) {
      const cycle = visit(next, [...way, file]);
      if (cycle !== null) return cycle;
    }
    done.add(file);
    return null;
  };
  for (const file of edges.keys()) {
    const cycle = visit(file, []);
    if (cycle !== null) return cycle;
  }
  return null;
}
