/** README.md as the front page: its size, and its claims held to the pages that prove them. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { readSection, readTables } from '../../support/docs/markdown.js';

const LINES = 150;
const text = readFileSync('README.md', 'utf8');
const manifest = JSON.parse(readFileSync('package.json', 'utf8'));

test(`has at most ${LINES} lines`, () => {
  expect(text.split('\n').length - 1).toBeLessThanOrEqual(LINES);
});

test('names the Node.js version of package.json', () => {
  expect(manifest.engines.node).toBe(`>=${/Node\.js (\d+\.\d+) or newer/.exec(text)?.[1]}`);
});

test('says that there is no license, as package.json does', () => {
  expect(manifest.license).toBe('UNLICENSED');
  expect(readSection('README.md', 'License')).toContain('not chosen a license yet');
});

test('counts as many faults as docs/operations/scaling.md lists', () => {
  const [rows] = readTables(readSection('docs/operations/scaling.md', 'Database failover'));
  const faults = (rows as string[][]).reduce((sum, [, rounds]) => sum + Number(rounds), 0);
  expect(text).toContain(`${faults} times`);
});
