/** The rules of the code: permitted imports, sizes, names and clocks. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { type File, linesOf, type Node, nodesOf, parse, sourceFiles } from '../support/docs/files.js';
import {
  findCycle,
  folderOf,
  type Import,
  importsOf,
  readImportRules,
  readProgramRules,
} from '../support/docs/imports.js';

const LONG_FILE_LINES = 400;
const FUNCTION_LINES = 60;
const PARAMETERS = 5;

const sources = sourceFiles();
const tests = sourceFiles('test');
const linesIn = ({ text }: File): number => text.split('\n').length - 1;

/** The frame of all programs at a terminal. */
const PROGRAM = 'src/program.ts';

describe('imports', () => {
  const rules = readImportRules();
  const order = rules.map(({ folder }) => folder);
  const programs = readProgramRules();
  const imports = sources.flatMap(importsOf);
  const show = ({ from, to }: Import): string => `${from} imports ${to}`;

  test('names every folder of src in a table of src/README.md, and no other', () => {
    const folders = new Set(sources.map(({ path }) => folderOf(path)));
    expect([...order, ...programs.keys()].sort()).toEqual([...folders].sort());
  });

  test('permits a folder to import only folders above it in the table', () => {
    const broken = imports.filter(({ from, to, isOurs }) => {
      const place = order.indexOf(folderOf(from));
      const placeOfImported = order.indexOf(folderOf(to));
      return isOurs && place !== -1 && (placeOfImported === -1 || placeOfImported > place);
    });
    expect(broken.map(show)).toEqual([]);
  });

  test('permits programs beside the service to import only what their table names', () => {
    const broken = imports.filter(({ from, to, isOurs }) => {
      const permitted = programs.get(folderOf(from));
      return (
        isOurs && permitted !== undefined && ![folderOf(from), ...permitted].includes(folderOf(to)) && to !== PROGRAM
      );
    });
    expect(broken.map(show)).toEqual([]);
  });

  test('names the packages of every folder in the table, and no other', () => {
    const used = order.map((folder) => {
      const packages = imports
        .filter(({ from, isOurs }) => !isOurs && folderOf(from) === folder)
        .map(({ to }) => (to.startsWith('node:') ? 'node:*' : to));
      return { folder, packages: [...new Set(packages)].sort() };
    });
    expect(rules).toEqual(used);
  });

  test('has no cycle between files', () => expect(findCycle(imports)).toBeNull());
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

  test('finds no clock in src/core', () => {
    const core = sources.filter(({ path }) => path.startsWith('src/core/'));
    const isClock = (node: Node): boolean =>
      isMember(node, 'Date', 'now') ||
      isMember(node, 'performance', 'now') ||
      (node.type === 'NewExpression' &&
        (node.callee as { value?: string }).value === 'Date' &&
        ((node.arguments as unknown[] | null)?.length ?? 0) === 0);
    expect(placesOf(core, isClock)).toEqual([]);
  });
});

describe('package-lock.json', () => {
  test('names packages and their hashes, but no place to fetch them from', () => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
    const placed = Object.entries<{ resolved?: string }>(packages).filter(([, { resolved }]) => resolved !== undefined);
    expect(placed.map(([name]) => name)).toEqual([]);
  });
});
