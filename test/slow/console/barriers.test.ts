/** Every page of the console, in both themes, without barriers (WCAG 2.2 AA), as far as axe sees them. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { openPage, pagesWithMap, pagesWithoutMap } from '../../../scripts/bench/console-pages.js';
import { findAxe } from '../../support/browser/axe.js';
import { useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service);
const STANDARDS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
let axe: string;
let id: string;

beforeAll(async () => {
  axe = await findAxe();
  id = (await service.admin('POST', 'objects', { id: 'truck', name: 'Truck' })).body._id;
  const packets = Array.from({ length: 30 }, (_, index) => ({
    ...{ time: Date.now() - (30 - index) * 60_000, lat: 48 + index / 500, lon: 11 + index / 700 },
    ...{ speed: 40 + index, angle: 45, locked: true },
  }));
  await service.admin('POST', `objects/${id}/packets`, packets);
  await service.admin('POST', `objects/${id}/commands/lock`, { doors: 'all' });
  await service.admin('POST', 'tokens', { name: 'Pump', scopes: ['GET /*'] });
}, 120_000);

/** What axe finds, each as its rule and the first place. */
async function findBarriers(page: Page): Promise<string[]> {
  // The policy of the page permits no script from elsewhere; the browser's own protocol may.
  await page.evaluate(axe);
  // What is still fading in has less contrast for an instant.
  await page.evaluate('Promise.allSettled(document.getAnimations().map(({ finished }) => finished)).then(() => null)');
  const found = await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(STANDARDS)} }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes[0].html + ' ' + nodes[0].failureSummary))`,
  );
  return found as string[];
}

describe.each(['light', 'dark'] as const)('in the %s theme', (colorScheme) => {
  test('the login has no barriers', async () => {
    const page = await browser.open('/', { colorScheme });
    await page.getByLabel('Login').waitFor();
    expect(await findBarriers(page)).toEqual([]);
  });

  test('no page has barriers', async () => {
    const page = await browser.openAs('/', ADMIN, { colorScheme });
    const found: [string, string[]][] = [];
    for (const row of [...pagesWithMap(id), ...pagesWithoutMap(id)]) {
      await openPage(page, service.url, row);
      const barriers = await findBarriers(page);
      if (barriers.length > 0) found.push([row[0], barriers]);
    }
    expect(found).toEqual([]);
  }, 240_000);

  test('a dialog has no barriers', async () => {
    const page = await browser.openAs('/account/tokens', ADMIN, { colorScheme });
    await page.getByRole('button', { name: 'New token' }).click();
    await page.getByRole('dialog').waitFor();
    expect(await findBarriers(page)).toEqual([]);
  });
});
