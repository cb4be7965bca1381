/** An administrator of the installation is asked once which map it shows, and chooses another one among the settings. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ADMINISTRATOR_ROLE_ID } from '../../../src/core/builtin.js';
import { useBrowser } from '../../support/browser/browser.js';
import { createPng } from '../../support/browser/map-files.js';
import { createPerson } from '../../support/callers.js';
import { useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const RED = createPng([200, 30, 40]);
const asked: string[] = [];
const server = createServer((req, res) => {
  asked.push(req.url ?? '');
  res.setHeader('Access-Control-Allow-Origin', '*').setHeader('Content-Type', 'image/png').end(RED);
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

const service = useService();
const browser = useBrowser(service);
const question = (page: Page) => page.locator('.map-question');
const stored = async () => (await service.admin('GET', 'settings')).body.map;
const choose = (map: object | null) => service.admin('PATCH', 'settings', { map });
beforeEach(async () => {
  await choose(null);
});

describe('the question', () => {
  test('comes at the first start, before there are objects, and never after “no streets”', async () => {
    const page = await browser.openAs('/');
    const loaded = page.waitForEvent('load');
    await question(page).getByRole('button', { name: 'No streets' }).click();
    await loaded;
    expect(await stored()).toEqual({ kind: 'none' });
    await page.getByText('Connect').first().waitFor();
    await page.waitForLoadState('networkidle');
    expect(await question(page).count()).toBe(0);
  });

  test('comes over the map, and is away when it is closed', async () => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    const page = await browser.openAs('/');
    await question(page).waitFor();
    // Paper answers nothing.
    await page.emulateMedia({ media: 'print' });
    expect(await question(page).isVisible()).toBe(false);
    await page.emulateMedia({ media: 'screen' });
    await question(page).getByRole('button', { name: 'Close' }).click();
    await question(page).waitFor({ state: 'detached' });
    expect(await stored()).toBeNull();
  });

  test('leaves the buttons of the map free on phones', async () => {
    await service.admin('POST', 'objects', { id: 'on phone', name: 'On phone' });
    for (const width of [320, 390]) {
      const page = await browser.openAs('/', undefined, { ...browser.phone, viewport: { width, height: 740 } });
      await question(page).waitFor();
      // A click waits until nothing else is in the way.
      await page.getByRole('button', { name: 'Zoom in' }).click();
      await page.getByRole('button', { name: 'Show all objects' }).click();
      await question(page).getByRole('button', { name: 'No streets' }).click({ trial: true });
    }
  });

  test('stores that streets come from OpenFreeMap, which pages may then ask', async () => {
    // The request is aborted below: no test asks the internet.
    browser.expectErrors(/ERR_FAILED|openfreemap/);
    const page = await browser.openAs('/');
    const streets: string[] = [];
    await page.route('https://tiles.openfreemap.org/**', (route) => {
      streets.push(route.request().url());
      return route.abort();
    });
    const loaded = page.waitForEvent('load');
    await question(page).getByRole('button', { name: 'Streets of OpenFreeMap' }).click();
    await loaded;
    await page.locator('.map[data-drawn]').waitFor();
    expect(await stored()).toEqual({ kind: 'openfreemap' });
    expect(streets).not.toEqual([]);
  });

  test('is not asked of an administrator of a group', async () => {
    const { _id: group } = (await service.admin('POST', 'groups', { name: 'tenant' })).body;
    const person = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group });
    await person.call('POST', 'objects', { id: 'of tenant', name: 'Of tenant' });
    const page = await browser.openAs('/', person);
    await page.locator('.map[data-drawn]').waitFor();
    await page.waitForLoadState('networkidle');
    expect(await question(page).count()).toBe(0);
    await page.goto(`${service.url}/access/settings`);
    await page.getByText('* /settings').waitFor();
  });

  test('is asked in German of those who speak it', async () => {
    const page = await browser.openAs('/', undefined, { locale: 'de-DE' });
    await question(page).getByRole('button', { name: 'Straßen von OpenFreeMap' }).waitFor();
  });
});

describe('the settings', () => {
  test('show the tiles of a server of ones own, with whose map it is', async () => {
    await service.admin('POST', 'objects', { id: 'seen too', name: 'Seen too' });
    const page = await browser.openAs('/');
    await question(page).getByRole('link', { name: 'A map of your own' }).click();
    await page.getByRole('combobox', { name: 'Map', exact: true }).selectOption('tiles');
    await page.getByLabel('Address').fill(`${origin()}/{z}/{x}.png`);
    await page.getByLabel('Whose map it is').fill('© <b>Somebody</b>');
    browser.expectErrors(/400/);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Expected {z}, {x} and {y}, each once').waitFor();
    await page.getByLabel('Address').fill(`${origin()}/{z}/{x}/{y}.png`);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.map[data-drawn]').waitFor();
    await page.getByText('© <b>Somebody</b>').waitFor();
    expect(asked.some((path) => /^\/\d+\/\d+\/\d+\.png$/.test(path))).toBe(true);
    expect(await stored()).toEqual({
      kind: 'tiles',
      url: `${origin()}/{z}/{x}/{y}.png`,
      attribution: '© <b>Somebody</b>',
    });
  });

  test('show what is stored', async () => {
    await choose({ kind: 'style', url: 'https://maps.example/style.json', origins: ['https://a.example'] });
    const page = await browser.openAs('/access/settings');
    await page.getByLabel('Address').waitFor();
    await eventually(async () =>
      expect(await page.getByLabel('Address').inputValue()).toBe('https://maps.example/style.json'),
    );
    await eventually(async () => expect(await page.getByLabel('Other servers').inputValue()).toBe('https://a.example'));
  });
});

describe('with an environment variable', () => {
  const fixed = useService({ env: { MAP_STYLE_URL: `${origin()}/style.json` } });
  const fixedBrowser = useBrowser(fixed);
  test('says that it decides the map, and asks nothing', async () => {
    const page = await fixedBrowser.openAs('/access/settings');
    await page.getByText('MAP_STYLE_URL decides the map').waitFor();
    await page.goto(`${fixed.url}/welcome`);
    expect(await question(page).count()).toBe(0);
  });
});
