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

/** What a module may import. */
export interface ImportRule {
  readonly modules: readonly string[];
  /** Packages; `node:*` stands for all of Node's modules. */
  readonly packages: readonly string[];
  /** Packages of which only types may be imported. */
  readonly types: readonly string[];
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

/** The module of a file: its folder below src/ (`db/driver/`), or the file itself (`main.ts`). */
export function moduleOf(path: string): string {
  const folder = posix.dirname(path.replace(/^src\//, ''));
  return folder === '.' ? posix.basename(path) : `${folder}/`;
}

/** The table "Import rules". */
export function readImportRules(): ReadonlyMap<string, ImportRule> {
  const rows = readTable(readSection('src/README.md', 'Import rules'));
  return new Map(
    rows.map(([module, ours, outside]) => {
      const [values, types] = (outside as string).split('types of');
      return [
        readCode(module)[0] as string,
        { modules: readCode(ours), packages: readCode(values), types: readCode(types) },
      ];
    }),
  );
}

/** Whether the rule of a module permits the import. */
export function isPermitted(rule: ImportRule | undefined, module: string, { to, isOurs, isTypeOnly }: Import): boolean {
  if (rule === undefined) return false;
  if (isOurs) return moduleOf(to) === module || rule.modules.includes(moduleOf(to));
  if (to.startsWith('node:') && rule.packages.includes('node:*')) return true;
  return rule.packages.includes(to) || (isTypeOnly && rule.types.includes(to));
}

/** The imports among the folders below a folder of src/, as edges between them. */
export const folderEdges = (imports: readonly Import[], below: string): Import[] =>
  imports
    .map((one) => ({ ...one, from: moduleOf(one.from), to: moduleOf(one.to) }))
    .filter(({ from, to, isOurs }) => isOurs && from !== to && [from, to].every((name) => name.startsWith(below)));

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
