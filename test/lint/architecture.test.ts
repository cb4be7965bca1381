/** The rules of the code: permitted imports, sizes, names and clocks. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { type File, linesOf, type Node, nodesOf, parse, sourceFiles } from '../support/docs/files.js';
import { findCycle, folderEdges, importsOf, isPermitted, moduleOf, readImportRules } from '../support/docs/imports.js';

const LONG_FILE_LINES = 400;
const FUNCTION_LINES = 50;
const PARAMETERS = 5;

const sources = sourceFiles();
const tests = sourceFiles('test');
const linesIn = ({ text }: File): number => text.split('\n').length - 1;

describe('imports', () => {
  const rules = readImportRules();
  const imports = sources.flatMap(importsOf);

  test('names every module in the table of src/README.md, and no other', () => {
    expect([...rules.keys()].sort()).toEqual([...new Set(sources.map(({ path }) => moduleOf(path)))].sort());
  });

  test('permits every import by that table', () => {
    const broken = imports.filter((one) => !isPermitted(rules.get(moduleOf(one.from)), moduleOf(one.from), one));
    expect(broken.map(({ from, to, isTypeOnly }) => `${from} imports ${to}${isTypeOnly ? ' (types)' : ''}`)).toEqual(
      [],
    );
  });

  test('permits no unused import', () => {
    const idle = [...rules].flatMap(([module, { modules, packages, types }]) => {
      const made = imports.filter(({ from }) => moduleOf(from) === module);
      const isUsed = (name: string) =>
        made.some(({ to, isOurs }) =>
          isOurs ? moduleOf(to) === name : to === name || (name === 'node:*' && /^node:/.test(to)),
        );
      return [...modules, ...packages, ...types].filter((name) => !isUsed(name)).map((name) => `${module}: ${name}`);
    });
    expect(idle).toEqual([]);
  });

  test('has no cycle between files', () => expect(findCycle(imports)).toBeNull());

  test('has no cycle between the folders of db/', () => expect(findCycle(folderEdges(imports, 'db/'))).toBeNull());
});

describe('sizes', () => {
  test(`finds a reason in the first comment of every file of more than ${LONG_FILE_LINES} lines`, () => {
    const long = [...sources, ...tests].filter((file) => linesIn(file) > LONG_FILE_LINES);
    const unexplained = long.filter(({ text }) => !/Long because/.test(text.slice(0, text.indexOf('*/'))));
    expect(unexplained.map((file) => `${file.path}: ${linesIn(file)} lines`)).toEqual([]);
  });

  test(`limits functions of src to ${FUNCTION_LINES} lines and ${PARAMETERS} parameters`, () => {
    const found = sources.flatMap((file) =>
      nodesOf(parse(file).body).flatMap(([node]) => (isFunction(node) ? excess(file, node) : [])),
    );
    expect(found).toEqual([]);
  });

  function isFunction({ type, params }: Node): boolean {
    return Array.isArray(params) && /Function|Method|Constructor/.test(type) && !/^Ts/.test(type);
  }

  function excess(file: File, node: Node): string[] {
    const [first, last] = linesOf(file, node);
    const place = `${file.path}:${first}`;
    const lines = last - first + 1;
    const parameters = (node.params as unknown[]).length;
    return [
      ...(lines > FUNCTION_LINES ? [`${place}: a function of ${lines} lines`] : []),
      ...(parameters > PARAMETERS ? [`${place}: a function of ${parameters} parameters`] : []),
    ];
  }
});

describe('names and habits', () => {
  const placesOf = (files: readonly File[], isMeant: (node: Node, parents: readonly Node[]) => boolean): string[] =>
    files.flatMap((file) =>
      nodesOf(parse(file).body)
        .filter(([node, parents]) => isMeant(node, parents))
        .map(([node]) => `${file.path}:${linesOf(file, node)[0]}`),
    );

  const isMember = ({ type, object, property }: Node, owner: string, name: string): boolean =>
    type === 'MemberExpression' &&
    (object as { value?: string }).value === owner &&
    (property as { value?: string }).value === name;

  test('finds no default exports', () => {
    expect(placesOf(sources, ({ type }) => /^ExportDefault/.test(type))).toEqual([]);
  });

  test('finds no barrels and no vague file names', () => {
    const names = [...sources, ...sourceFiles('scripts'), ...tests].map(({ path }) => path);
    const bad = /(^|[-.])(index|utils?|helpers?|common|misc|manager)([-.]|$)/;
    expect(names.filter((path) => bad.test(basename(path).replace(/\.tsx?$/, '')))).toEqual([]);
  });

  test('files are lower-case words joined by hyphens', () => {
    const names = [...sources, ...sourceFiles('scripts'), ...tests].map(({ path }) => path);
    expect(names.filter((path) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.d)?\.tsx?$/.test(basename(path)))).toEqual([]);
  });

  test('finds the purpose of every file of src in its first line', () => {
    expect(sources.filter(({ text }) => !text.startsWith('/**')).map(({ path }) => path)).toEqual([]);
  });

  test('finds `process.env` only in main.ts and cli/main.ts', () => {
    const others = sources.filter(({ path }) => path !== 'src/main.ts' && path !== 'src/cli/main.ts');
    expect(placesOf(others, (node) => isMember(node, 'process', 'env'))).toEqual([]);
  });

  test('finds no clock in src/model', () => {
    const model = sources.filter(({ path }) => path.startsWith('src/model/'));
    const isClock = (node: Node): boolean =>
      isMember(node, 'Date', 'now') ||
      isMember(node, 'performance', 'now') ||
      (node.type === 'NewExpression' &&
        (node.callee as { value?: string }).value === 'Date' &&
        ((node.arguments as unknown[] | null)?.length ?? 0) === 0);
    expect(placesOf(model, isClock)).toEqual([]);
  });
});

describe('package-lock.json', () => {
  test('names packages and their hashes, but no place to fetch them from', () => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
    const placed = Object.entries<{ resolved?: string }>(packages).filter(([, { resolved }]) => resolved !== undefined);
    expect(placed.map(([name]) => name)).toEqual([]);
  });
});
