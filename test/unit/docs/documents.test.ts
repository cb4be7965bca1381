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

test('every relative link names a file of the repository', () => {
  const broken = relativeLinks.filter(({ path, target }) => !existsSync(fileOf(path, target)));
  expect(broken).toEqual([]);
});

test('every anchor names a heading of its document', () => {
  const anchored = relativeLinks.filter(({ target }) => target.includes('#'));
  const broken = anchored.filter(({ path, target }) => {
    const file = fileOf(path, target);
    return existsSync(file) && !readAnchors(readFileSync(file, 'utf8')).includes(target.split('#')[1] as string);
  });
  expect(anchored.length).toBeGreaterThan(0);
  expect(broken).toEqual([]);
});

test('every path of the repository in backquotes names a file or a folder', () => {
  const broken = documents.flatMap(({ path, text }) =>
    readPaths(text)
      .filter((one) => !existsSync(one))
      .map((one) => `${path}: ${one}`),
  );
  expect(broken).toEqual([]);
});

test('every table has a head, and as many cells in each row', () => {
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

test('every npm script that a document names is in package.json', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
  const named = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\bnpm run (?:--silent )?([a-z:]+)/g)].map(([, name]) => ({ path, name: name as string })),
  );
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter(({ name }) => !(name in scripts))).toEqual([]);
});

test('every block of commands is one that a test runs, or starts Vigil or its tests', () => {
  const run = [
    ['README.md', 'Tour'],
    ['docs/tutorial.md', 'Tour'],
    ['examples/README.md', 'Prepare'],
  ].flatMap(([file, title]) => readBlocks(readSection(file as string, title as string)));
  const known = new Set([...run.map(({ body }) => body), 'npm start\n', 'npm test\n']);
  const others = documents.flatMap(({ path, text }) =>
    readBlocks(text)
      .filter(({ kind, body }) => kind === 'sh' && !known.has(body))
      .map(({ body }) => `${path}: ${body}`),
  );
  expect(others).toEqual([]);
});

test('every document under docs/ can be reached from README.md', () => {
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
