/** Everything on every page can be reached with the keyboard, and on a phone with a finger. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { openPage, pagesWithMap, pagesWithoutMap } from '../../../scripts/bench/console-pages.js';
import { useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service);
const TARGET_PX = 44;
const PARTS_OF_DATE = 8;
let id: string;

beforeAll(async () => {
  await service.admin('POST', 'groups', { name: 'North' });
  id = (await service.admin('POST', 'objects', { id: 'truck', name: 'Truck', labels: ['cold'] })).body._id;
  const packets = [1, 2, 3].map((index) => ({
    ...{ time: Date.now() - index * 60_000, lat: 48 + index / 500, lon: 11, speed: 40 + index, locked: true },
  }));
  await service.admin('POST', `objects/${id}/packets`, packets);
  await service.admin('POST', `objects/${id}/commands/lock`, { doors: 'all' });
  await service.admin('POST', 'tokens', { name: 'Pump', scopes: ['GET /*'] });
  await service.admin('POST', 'labels', { name: 'Cold' });
  await service.admin('POST', 'models', { name: 'Pump' });
  const area = { type: 'Polygon', coordinates: [[0, 1, 2, 0].map((degrees) => [degrees, degrees ** 2])] };
  await service.admin('POST', 'geofences', { name: 'Yard', geometry: area });
});

const pages = () => [...pagesWithMap(id), ...pagesWithoutMap(id)];

/** Runs in the page: what a user can operate there, each marked with its number. */
const MARK = `(() => {
  const all = document.querySelectorAll('a[href], button, input, select, textarea, summary, canvas[tabindex="0"], [tabindex="0"]');
  const shown = [...all].filter((one) =>
    one.checkVisibility({ visibilityProperty: true }) && !one.disabled && one.tabIndex >= 0 && !one.matches('.skip'));
  shown.forEach((one, index) => { one.dataset.number = index; });
  return shown.map((one) => one.outerHTML.slice(0, 120));
})()`;

/** Of a group of radio buttons, Tab reaches the chosen one; arrows lead to the others. */
const REACHED = `(() => {
  const one = document.activeElement;
  if (one?.dataset.number === undefined) return null;
  const isSeen = getComputedStyle(one).outlineStyle !== 'none';
  const group = one.type === 'radio' ? document.querySelectorAll('input[name="' + one.name + '"]') : [one];
  return { numbers: [...group].map(({ dataset }) => Number(dataset.number)), isSeen };
})()`;

interface Reached {
  readonly numbers: readonly number[];
  readonly isSeen: boolean;
}

/** What Tab does not lead to, and what does not show that it has the focus. */
async function findUnreached(page: Page): Promise<string[]> {
  const marked = (await page.evaluate(MARK)) as string[];
  const [reached, seen] = [new Set<number>(), new Set<number>()];
  // A date has a field for each of its parts.
  const most = marked.length * PARTS_OF_DATE;
  for (let presses = 0; presses < most && reached.size < marked.length; presses++) {
    await page.keyboard.press('Tab');
    const found = (await page.evaluate(REACHED)) as Reached | null;
    for (const number of found?.numbers ?? []) {
      reached.add(number);
      if (found?.isSeen) seen.add(number);
    }
  }
  return [
    ...marked.filter((_, number) => !reached.has(number)).map((html) => `not reached: ${html}`),
    ...marked.filter((_, number) => reached.has(number) && !seen.has(number)).map((html) => `focus not seen: ${html}`),
  ];
}

/** Runs in the page: the targets that are smaller than a finger. A link within a sentence has the size of its words. */
const SMALL = `(() => {
  const all = document.querySelectorAll('a[href], button, input, select, textarea, summary');
  const targets = [...all].filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.matches('.skip, p a'));
  return [...new Set(targets.map((one) => one.closest('label') ?? one))].flatMap((one) => {
    const { width, height } = one.getBoundingClientRect();
    return Math.min(width, height) >= ${TARGET_PX} - 0.5 ? [] : [Math.round(width) + ' × ' + Math.round(height) + ' ' + one.outerHTML.slice(0, 120)];
  });
})()`;

describe.each(['light', 'dark'] as const)('in the %s theme', (colorScheme) => {
  test('reaches everything with the Tab key, and sees where the focus is', async () => {
    const page = await browser.openAs('/', ADMIN, { colorScheme });
    const found: [string, string[]][] = [];
    for (const row of pages()) {
      await openPage(page, service.url, row);
      const unreached = await findUnreached(page);
      if (unreached.length > 0) found.push([row[0], unreached]);
    }
    expect(found).toEqual([]);
  }, 240_000);

  test('finds every target of a phone large enough for a finger', async () => {
    const page = await browser.openAs('/', ADMIN, { ...browser.phone, colorScheme });
    const found: [string, string[]][] = [];
    const check = async (name: string): Promise<void> => {
      const small = (await page.evaluate(SMALL)) as string[];
      if (small.length > 0) found.push([name, small]);
    };
    for (const row of pages()) {
      await openPage(page, service.url, row);
      await check(row[0]);
    }
    await page.getByRole('button', { name: 'Account of' }).click();
    await check('the menu of the user');
    await openPage(page, service.url, ['/account/tokens', 'main h2']);
    await page.getByRole('button', { name: 'New token' }).first().click();
    await page.getByRole('dialog').waitFor();
    await check('a dialog');
    expect(found).toEqual([]);
  }, 240_000);
});

/** Whether the field of the search has the focus. */
const isSearching = (page: Page): Promise<boolean> => page.evaluate('document.activeElement.type === "search"');

test.each(['/', '/log', '/access/users', '/data/labels'])('searches %s after / and Ctrl-K', async (path) => {
  const page = await browser.openAs(path);
  await page.getByRole('searchbox').waitFor();
  for (const key of ['/', 'Control+k']) {
    await page.locator('#main').focus();
    await page.keyboard.press(key);
    expect([key, await isSearching(page)]).toEqual([key, true]);
  }
  // There it is a character.
  await page.keyboard.type('a/b');
  expect(await page.getByRole('searchbox').inputValue()).toBe('a/b');
});

test('leaves the keys of the search to a dialog that is open', async () => {
  const page = await browser.openAs('/data/labels');
  await page.getByRole('button', { name: 'New', exact: true }).first().click();
  await page.getByRole('dialog').getByRole('textbox').first().focus();
  await page.keyboard.press('Control+k');
  expect(await page.evaluate('document.activeElement.closest("dialog") !== null')).toBe(true);
});

test('opens and leaves the menu of the user with the keyboard', async () => {
  const page = await browser.openAs('/log');
  const opener = page.locator('.avatar');
  await opener.focus();
  await page.keyboard.press('Enter');
  await page.locator('#account-menu').waitFor();
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement.closest("#account-menu") !== null')).toBe(true);
  await page.keyboard.press('Escape');
  await page.locator('#account-menu').waitFor({ state: 'hidden' });
  expect(await page.evaluate('document.activeElement.matches(".avatar")')).toBe(true);
});

test('gives the focus to the page when a dialog has removed what opened it', async () => {
  const { body } = await service.admin('POST', 'labels', { name: 'Short-lived' });
  const page = await browser.openAs('/data/labels');
  await page.getByRole('button', { name: 'Remove Short-lived' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Tab');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect((await service.admin('GET', `labels/${body._id}`)).status).toBe(404);
  expect(await page.evaluate('document.activeElement.closest("main") !== null')).toBe(true);
});
