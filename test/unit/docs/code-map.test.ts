/** The code map, src/README.md: a row for every file of a module, and for every folder in it. */
import { readdirSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { readCode, readSection, readTable } from '../../support/docs/markdown.js';

const modules = readdirSync('src', { withFileTypes: true }).filter((entry) => entry.isDirectory());

const entriesOf = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return [`${entry.name}/`];
    return entry.name.endsWith('.ts') ? [entry.name] : [];
  });

const listedIn = (title: string): string[] =>
  readTable(readSection('src/README.md', `\`${title}\``)).map(([file]) => readCode(file)[0] as string);

test.each(modules.map(({ name }) => name))('lists every file of src/%s/, and no other', (name) => {
  expect(listedIn(`${name}/`).sort()).toEqual(entriesOf(`src/${name}`).sort());
});

test('lists every file of src/ itself, and no other', () => {
  expect(listedIn('src/').sort()).toEqual(
    entriesOf('src')
      .filter((name) => name.endsWith('.ts'))
      .sort(),
  );
});
