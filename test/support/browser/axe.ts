/** The script that checks pages for barriers, fetched once and pinned by its hash. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { defaultCacheFolder } from '../../../src/config.js';
import { readNpmSettings } from '../../../src/platform/mongo/embedded/npm-settings.js';

const AXE = {
  spec: 'axe-core@4.14.1',
  integrity: 'sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==',
};

export async function findAxe(): Promise<string> {
  const folder = join(defaultCacheFolder(process.env, homedir(), process.platform), 'axe-core-4.14.1');
  const file = join(folder, 'axe.min.js');
  if (!existsSync(file)) {
    const { default: pacote } = await import('pacote');
    await pacote.extract(AXE.spec, folder, { ...(await readNpmSettings()), integrity: AXE.integrity });
  }
  return readFile(file, 'utf8');
}

/** Resolves when nothing fades in any more, which has less contrast for an instant. Skeletons fade for as long as they are there. */
export const animationsEnd = (page: Page): Promise<void> =>
  page.evaluate(`Promise.allSettled(
    document.getAnimations()
      .filter(({ effect }) => effect.getComputedTiming().endTime !== Infinity)
      .map(({ finished }) => finished)
  ).then(() => undefined)`);
