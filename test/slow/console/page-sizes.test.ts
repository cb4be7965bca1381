/** What browsers load, compressed with gzip, as they receive it over plain HTTP: within the budget of each page. */
import { readdirSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import {
  CONSOLE_FOLDER,
  gzipBytesOf,
  openPage,
  pagesWithoutMap,
  scriptsOf,
} from '../../../scripts/bench/console-pages.js';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';

const PAGE_BYTES = 42_000;
/** The list of objects, with its counts, filters and open alarms; what its map needs comes on top. */
const FIRST_PAGE_BYTES = 46_000;
/** Pages with charts contain the library of charts. */
const CHART_PAGE_BYTES = 74_000;
/** The editor of rules, which only those load who write one. */
const RULE_EDITOR_BYTES = 7_000;
const MAP_BYTES = 460_000;
/** Tiles, of objects without a position. */
const TILES_BYTES = 3_500;
/** The search for last positions, which is loaded because objects of this test have none; and what calls it. */
const SEARCH_BYTES = 2_500;
/** What says in words where an object is, on the card and on the page of an object that has a position. */
const WHERE_BYTES = 14_000;
/** The question which map is shown, until an administrator has answered it. */
const QUESTION_BYTES = 1_500;
const BASEMAP_BYTES = 300_000;

const service = useService();
const browser = useBrowser(service);

test('keeps the outlines of the world and its towns within their budget', () => {
  const files = readdirSync(CONSOLE_FOLDER).filter((name) => /^(world|towns).*\.json$/.test(name));
  expect(files).toHaveLength(3);
  expect(gzipBytesOf(files)).toBeLessThanOrEqual(BASEMAP_BYTES);
});

test.each(['en', 'de'])('keeps the scripts of every page without a map within their budget (%s)', async (language) => {
  const own = `sized-${language}`;
  // Without a position: its history has no map.
  const { body } = await service.admin('POST', 'objects', { id: own, name: 'Sized' });
  await service.admin('POST', `objects/${own}/packets`, [{ speed: 1 }, { speed: 2 }]);
  const page = await browser.openAs('/account/profile');
  await page.evaluate(`localStorage.setItem('vigil.language', '${language}')`);
  const sizes: [string, number][] = [];
  for (const row of pagesWithoutMap(body._id)) {
    await openPage(page, service.url, row);
    sizes.push([row[0], gzipBytesOf(await scriptsOf(page))]);
  }
  const budgetOf = (path: string): number => {
    if (path === '/rules/new') return PAGE_BYTES + RULE_EDITOR_BYTES;
    return /live|history|compare/.test(path) ? CHART_PAGE_BYTES : PAGE_BYTES;
  };
  expect(sizes.filter(([path, bytes]) => bytes > budgetOf(path))).toEqual([]);
});

test('keeps the scripts of the first page of sensors, which is tiles, within the budgets of a page and tiles', async () => {
  const page = await browser.openAs('/');
  await page.locator('.tile').first().waitFor();
  await page.waitForLoadState('networkidle');
  expect(gzipBytesOf(await scriptsOf(page))).toBeLessThanOrEqual(FIRST_PAGE_BYTES + TILES_BYTES + SEARCH_BYTES);
});

test('keeps the scripts of the first page within the budgets of a page and the map', async () => {
  const page = await browser.openAs('/');
  const sizeWith = async (map: object | null): Promise<number> => {
    await service.admin('PATCH', 'settings', { map });
    // The objects of this test have no position: they would be tiles.
    await page.goto(`${service.url}/?view=map`);
    await page.locator('.map[data-drawn]').waitFor();
    if (map === null) await page.locator('.map-question').waitFor();
    return gzipBytesOf(await scriptsOf(page));
  };
  const budget = FIRST_PAGE_BYTES + SEARCH_BYTES + MAP_BYTES;
  expect(await sizeWith({ kind: 'none' })).toBeLessThanOrEqual(budget);
  expect(await sizeWith(null)).toBeLessThanOrEqual(budget + QUESTION_BYTES);
});

test('keeps what says where an object is within its budget', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'placed', name: 'Placed' });
  const page = await browser.openAs('/account/profile');
  const sizeOf = async (element: string): Promise<number> => {
    await openPage(page, service.url, [`/objects/${body._id}/commands`, element]);
    return gzipBytesOf(await scriptsOf(page));
  };
  const before = await sizeOf('main h2');
  await service.admin('POST', 'objects/placed/packets', { lat: 48.24, lon: 11.41, speed: 0 });
  expect((await sizeOf('.where .card-sentence')) - before).toBeLessThanOrEqual(WHERE_BYTES);
});
