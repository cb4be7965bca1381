/** The bugs that the simulation is tried on are patches of the code as it is now. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const FOLDER = 'test/simulation/mutations';

/** Each place that a patch changes: the file, and its lines before the change. */
function placesIn(patch: string): { readonly path: string; readonly before: string }[] {
  const path = /^\+\+\+ b\/(\S+)/m.exec(patch)?.[1] ?? '';
  const hunks = patch.split(/^@@ .*\n/m).slice(1);
  return hunks.map((hunk) => {
    const lines = hunk.split('\n').filter((line) => /^[- ]/.test(line));
    return { path, before: lines.map((line) => `${line.slice(1)}\n`).join('') };
  });
}

test.each(readdirSync(FOLDER))('finds in the code what %s changes', (name) => {
  const places = placesIn(readFileSync(`${FOLDER}/${name}`, 'utf8'));
  expect(places).not.toEqual([]);
  for (const { path, before } of places) expect(readFileSync(path, 'utf8')).toContain(before);
});
