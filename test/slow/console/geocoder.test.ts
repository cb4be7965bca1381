/** Addresses in the console: of an object on request, and the objects nearest to a place; with a geocoder, without one, and with one that is away. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { until } from '../../support/until.js';

const asked: string[] = [];
let isAway = false;
/** Like Photon. */
const server = createServer((req, res) => {
  asked.push(String(req.url));
  if (isAway) return void res.writeHead(500).end();
  const feature = (name: string, lon: number, lat: number) => ({
    type: 'Feature',
    geometry: { type: 'Point', coordinates: [lon, lat] },
    properties: { type: 'house', street: name, housenumber: '1', postcode: '85221', city: 'Dachau' },
  });
  const found = [feature('Münchner Straße', 11.41, 48.24), feature('Münchner Platz', 13.7, 51.03)];
  res.end(
    JSON.stringify({
      type: 'FeatureCollection',
      features: req.url?.startsWith('/reverse') ? found.slice(0, 1) : found,
    }),
  );
});
const env: Record<string, string> = { GEOCODER_KIND: 'photon', WEBHOOK_NETWORKS: '127.0.0.1' };
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  env.GEOCODER_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const service = useService({ env });
const without = useService();
const browser = useBrowser(service);
const browserWithout = useBrowser(without);
const METRIC = { locale: 'en-IE' };

beforeAll(async () => {
  for (const one of [service, without]) {
    await one.admin('PATCH', 'settings', { map: { kind: 'none' } });
    for (const [id, lat, lon, minutesAgo] of [
      ['near', 48.25, 11.41, 3],
      ['far', 51.03, 13.8, 1],
      ['here', 48.24, 11.41, 0],
    ] as const) {
      await one.admin('POST', 'objects', { id, name: id });
      await one.admin('POST', `objects/${id}/packets`, { lat, lon, speed: 0, time: Date.now() - minutesAgo * 60_000 });
    }
    await one.admin('POST', 'objects', { id: 'nowhere', name: 'nowhere' });
  }
});
beforeEach(() => {
  isAway = false;
  asked.length = 0;
});

test('shows the address of an object when somebody asks, and never for a packet', async () => {
  const page = await browser.openAs('/objects/here/live', ADMIN, METRIC);
  const button = page.getByRole('button', { name: 'Show the address' });
  await button.waitFor();
  await service.admin('POST', 'objects/here/packets', { lat: 48.2401, lon: 11.41, speed: 7 });
  await page.getByText('Moving 7 km/h, near Dachau').waitFor();
  expect(asked).toEqual([]);
  await button.click();
  await page.getByText('Münchner Straße 1, 85221 Dachau').waitFor();
  await service.admin('POST', 'objects/here/packets', { lat: 48.26, lon: 11.434, speed: 8 });
  await button.waitFor();
  await page.getByText('Münchner Straße').waitFor({ state: 'detached' });
  expect(asked).toHaveLength(1);
});

test('says in one line that the geocoder does not answer, and everything else works', async () => {
  isAway = true;
  browser.expectErrors(/503/);
  const page = await browser.openAs('/objects/near/live', ADMIN, METRIC);
  await page.getByRole('button', { name: 'Show the address' }).click();
  await page.getByText('The geocoder does not answer.').waitFor();
  await page.getByText(/^Standing for .*Dachau$/).waitFor();
  isAway = false;
  await page.locator('.where-address').getByRole('button', { name: 'Try again' }).click();
  await page.getByText('Münchner Straße 1, 85221 Dachau').waitFor();
});

test('lists the objects nearest to an address, with the age of their positions, and to the other place of that name', async () => {
  const page = await browser.openAs('/account/profile', ADMIN, METRIC);
  await page.locator('#main').waitFor();
  await effectsRun(page);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('Münchner 1');
  await page.getByRole('option', { name: 'Objects near “Münchner 1”' }).click();
  const rows = page.locator('.nearest li');
  await until(async () => (await rows.count()) === 3, 'three objects with a position');
  await rows.last().getByText('far', { exact: true }).waitFor();
  await page.getByLabel('Which place').selectOption({ label: 'Münchner Platz 1, 85221 Dachau' });
  await rows.first().getByText('far').waitFor();
  await rows.first().getByText(/7 km/).waitFor();
  await rows.first().getByText(/min/).waitFor();
  await rows.first().getByRole('link').click();
  await page.locator('.card').getByRole('heading', { name: 'far' }).waitFor();
});

test('says that the geocoder does not answer, and asks again for the same address', async () => {
  isAway = true;
  browser.expectErrors(/503/);
  const page = await browser.openAs('/nearest?to=M%C3%BCnchner+Ring', ADMIN, METRIC);
  await page.getByRole('alert').getByText('The geocoder does not answer.').waitFor();
  isAway = false;
  await page.getByRole('button', { name: 'Find' }).click();
  await page.locator('.nearest li').first().waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
});

test('finds by latitude and longitude alone where there is no geocoder, and says so', async () => {
  const page = await browserWithout.openAs('/objects/near/live', ADMIN, METRIC);
  await page.getByText(/Dachau$/).waitFor();
  expect(await page.getByRole('button', { name: 'Show the address' }).count()).toBe(0);
  await page.goto(`${without.url}/nearest`);
  await page.getByText('Addresses cannot be found here').waitFor();
  await page.getByLabel('Address, or latitude and longitude').fill('51.03, 13.7');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.locator('.nearest li').first().getByText('far').waitFor();
});

test('shows addresses on a screen and on a phone, in the light and in the dark', async () => {
  const folder = process.env.SCREENSHOTS;
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const [form, options] of [
      ['screen', { viewport: { width: 1_280, height: 760 } }],
      ['phone', browser.phone],
    ] as const) {
      const page = await browser.openAs('/nearest?to=M%C3%BCnchner', ADMIN, { ...METRIC, colorScheme, ...options });
      await page.locator('.nearest li').first().waitFor();
      expect(await page.getByRole('alert').count()).toBe(0);
      if (folder) await page.screenshot({ path: join(folder, `nearest-${form}-${colorScheme}.png`) });
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
      await page.goto(`${service.url}/objects/near/live`);
      await page.getByRole('button', { name: 'Show the address' }).click();
      await page.getByText('Münchner Straße 1, 85221 Dachau').waitFor();
      if (folder) await page.screenshot({ path: join(folder, `address-${form}-${colorScheme}.png`) });
    }
  }
});
