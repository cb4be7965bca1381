/** The code map, src/README.md: a section for every folder, with a row for every file in it. */
import { basename, dirname } from 'node:path';
import { expect, test } from '@jest/globals';
import { sourceFiles } from '../support/docs/files.js';
import { readCode, readSection, readTable } from '../support/docs/markdown.js';

const paths = sourceFiles().map(({ path }) => path);
const folders = [...new Set(paths.map((path) => dirname(path)))];

const listedIn = (title: string): string[] =>
  readTable(readSection('src/README.md', `\`${title}\``)).map(([file]) => readCode(file)[0] as string);

test.each(folders)('lists every file of %s, and no other', (folder) => {
  const title = folder === 'src' ? 'src/' : `${folder.slice('src/'.length)}/`;
  const names = paths.filter((path) => dirname(path) === folder).map((path) => basename(path));
  expect(listedIn(title).sort()).toEqual(names.sort());
});
