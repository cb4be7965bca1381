/** The files of this repository, and what the parser sees in them. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Module, parseSync } from '@swc/core';

export interface File {
  /** From the root of the repository, with slashes. */
  readonly path: string;
  readonly text: string;
}

/** A node of the syntax tree: all that the checks need to know of it. */
export interface Node {
  readonly type: string;
  readonly span?: { readonly start: number; readonly end: number };
  readonly [field: string]: unknown;
}

// What .gitignore names, and what is not ours.
const IGNORED = new Set(['node_modules', 'dist', 'data', 'coverage', 'generated', '.git', '.env']);
const LARGEST_BYTES = 2_000_000;

/** Every file below a folder that belongs to the repository. */
export function filesUnder(folder: string): File[] {
  const names = readdirSync(folder, { withFileTypes: true }).filter(({ name }) => !IGNORED.has(name));
  return names.flatMap((entry) => {
    const path = join(folder, entry.name).replaceAll('\\', '/');
    if (entry.isDirectory()) return filesUnder(path);
    if (!entry.isFile() || statSync(path).size > LARGEST_BYTES) return [];
    return [{ path, text: readFileSync(path, 'utf8') }];
  });
}

/** Every TypeScript file below `src/`. */
export function sourceFiles(folder = 'src'): File[] {
  return filesUnder(folder).filter(({ path }) => /\.tsx?$/.test(path));
}

const parsed = new WeakMap<File, Module>();

/** The syntax tree of a file. */
export function parse(file: File): Module {
  const module =
    parsed.get(file) ??
    parseSync(file.text, { syntax: 'typescript', tsx: file.path.endsWith('.tsx'), target: 'es2022' });
  parsed.set(file, module);
  return module;
}

/** Every node of a tree, each with the nodes it stands in, the outermost first. */
export function nodesOf(tree: unknown): [Node, readonly Node[]][] {
  const found: [Node, readonly Node[]][] = [];
  const visit = (value: unknown, parents: readonly Node[]): void => {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      for (const item of value) visit(item, parents);
      return;
    }
    const node = value as Node;
    const isNode = typeof node.type === 'string';
    if (isNode) found.push([node, parents]);
    const inside = isNode ? [...parents, node] : parents;
    for (const child of Object.values(node)) visit(child, inside);
  };
  visit(tree, []);
  return found;
}

/** The text of a node; the parser counts bytes, from 1. */
export const textOf = ({ text }: File, { span }: Node): string =>
  Buffer.from(text)
    .subarray((span?.start ?? 1) - 1, (span?.end ?? 1) - 1)
    .toString('utf8');

/** The first and the last line of a node. */
export function linesOf({ text }: File, { span }: Node): [number, number] {
  // The parser counts bytes, from 1.
  const bytes = Buffer.from(text);
  const lineAt = (position: number) =>
    bytes
      .subarray(0, position - 1)
      .toString('utf8')
      .split('\n').length;
  return [lineAt(span?.start ?? 1), lineAt(span?.end ?? 1)];
}
