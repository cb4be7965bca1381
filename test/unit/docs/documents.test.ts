/** What every document is held to: its links, paths, commands and tables. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { filesUnder } from '../../support/docs/files.js';
import {
  readAnchors,
  readBlocks,
  readLinks,
  readPaths,
  readRawTables,
  readSection,
} from '../../support/docs/markdown.js';

const documents = filesUnder('.').filter(({ path }) => path.endsWith('.md'));
const relativeLinks = documents.flatMap(({ path, text }) =>
  readLinks(text)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => ({ path, target })),
);

test('finds the file of every relative link', () => {
  const broken = relativeLinks.filter(({ path, target }) => !existsSync(fileOf(path, target)));
  expect(broken).toEqual([]);
});

test('finds the heading of every anchor', () => {
  const anchored = relativeLinks.filter(({ target }) => target.includes('#'));
  const broken = anchored.filter(({ path, target }) => {
    const file = fileOf(path, target);
    return existsSync(file) && !readAnchors(readFileSync(file, 'utf8')).includes(target.split('#')[1] as string);
  });
  expect(anchored.length).toBeGreaterThan(0);
  expect(broken).toEqual([]);
});

test('finds every path in backquotes', () => {
  const broken = documents.flatMap(({ path, text }) =>
    readPaths(text)
      .filter((one) => !existsSync(one))
      .map((one) => `${path}: ${one}`),
  );
  expect(broken).toEqual([]);
});

test('finds a head in every table, and the same number of cells in each row', () => {
  const broken = documents.flatMap(({ path, text }) =>
    readRawTables(text)
      .filter(([head, line, ...rows]) => !isRuler(line) || rows.some(({ length }) => length !== head?.length))
      .map(([head]) => `${path}: ${head?.join(' | ')}`),
  );
  expect(broken).toEqual([]);

  function isRuler(cells: readonly string[] | undefined): boolean {
    return cells?.every((cell) => /^:?-+:?$/.test(cell)) ?? false;
  }
});

test('finds every named npm script in package.json', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
  const named = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\bnpm run (?:--silent )?([a-z:]+)/g)].map(([, name]) => ({ path, name: name as string })),
  );
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter(({ name }) => !(name in scripts))).toEqual([]);
});

test('knows every block of commands: a test runs it, or it starts Vigil or its tests', () => {
  const run = [
    ['README.md', 'Tour'],
    ['docs/tutorial.md', 'Tour'],
    ['examples/README.md', 'Prepare'],
    ['docs/reference/command-line.md', 'Examples'],
  ].flatMap(([file, title]) => readBlocks(readSection(file as string, title as string)));
  const known = new Set([...run.map(({ body }) => body), 'npm start\n', 'npm test\n']);
  const others = documents.flatMap(({ path, text }) =>
    readBlocks(text)
      .filter(({ kind, body }) => kind === 'sh' && !known.has(body))
      .map(({ body }) => `${path}: ${body}`),
  );
  expect(others).toEqual([]);
});

test('reaches every document under docs/ from README.md', () => {
  const reached = new Set<string>();
  const visit = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const link of relativeLinks.filter((one) => one.path === path)) visit(fileOf(path, link.target));
  };
  visit('README.md');
  const pages = documents.map(({ path }) => path).filter((path) => path.startsWith('docs/'));
  expect(pages.filter((path) => !reached.has(path))).toEqual([]);
});

function fileOf(path: string, target: string): string {
  const [file = ''] = target.split('#');
  return file === '' ? path : join(dirname(path), file);
}

test('finds every file that the code map names', () => {
  const text = readFileSync('src/README.md', 'utf8');
  const named = [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)+)`/g)].map(([, path]) => path as string);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((path) => !existsSync(join('src', path)) && !existsSync(path))).toEqual([]);
});
