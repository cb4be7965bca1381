/** Where an object is, in words: on its card and on its page, as it moves, without a request for each packet. */
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);
const browserWithMaps = useBrowser(service);
/** English, with the units of the packets. */
const METRIC = { locale: 'en-IE' };
const NEAR_DACHAU = { lat: 48.24, lon: 11.41 };
const MINUTE_MS = 60_000;

const zone = (west: number, south: number, east: number, north: number) => ({
  type: 'Polygon',
  coordinates: [
    [
      ...([
        [west, south],
        [east, south],
        [east, north],
        [west, north],
        [west, south],
      ] as const),
    ],
  ],
});

async function addObject(id: string, packets: object[]): Promise<string> {
  const { body } = await service.admin('POST', 'objects', { id, name: id });
  await service.admin('POST', `objects/${id}/packets`, packets);
  return body._id as string;
}

/** Drove for an hour, entered the zone 40 minutes ago, and stands there since 30 minutes ago. */
function parked(nowMs = Date.now()): object[] {
  const at = (minutesAgo: number, fields: object): object => ({ time: nowMs - minutesAgo * MINUTE_MS, ...fields });
  return [
    at(60, { lat: 48.4, lon: 11.9, speed: 50 }),
    at(40, { ...NEAR_DACHAU, speed: 50 }),
    at(30, { ...NEAR_DACHAU, speed: 0 }),
    at(1, { ...NEAR_DACHAU, speed: 0 }),
  ];
}

const sentence = (page: Page, text: string | RegExp): Promise<void> =>
  page.locator('.where .card-sentence').getByText(text).waitFor();

/** Waits for what a page says of an object that stands since then, however long the page took to say it. */
const standing = (page: Page, sinceMs: number, where: string): Promise<void> =>
  eventually(async () => {
    const text = await page.locator('.where .card-sentence').textContent();
    const minutes = Math.max(1, Math.floor((Date.now() - sinceMs) / MINUTE_MS));
    expect(text).toBe(`Standing for ${minutes} min${where}`);
  });

/** The requests of a page that could be sent for every packet. */
function countRequests(page: Page): () => number {
  let count = 0;
  page.on('request', (request) => {
    if (/\/near-|\/packets|\/geofences/.test(request.url())) count++;
  });
  return () => count;
}

beforeAll(async () => {
  await service.admin('PATCH', 'settings', { map: { kind: 'none' } });
  await service.admin('POST', 'geofences', { name: 'Low emission zone', geometry: zone(11.4, 48.2, 11.5, 48.3) });
});

test('says on the card what an object does, near which town, and since when it is in a geofence', async () => {
  const nowMs = Date.now();
  const id = await addObject('van 12', parked(nowMs));
  const page = await browser.openAs('/', ADMIN, METRIC);
  await page.locator('.row', { hasText: 'van 12' }).click();
  await standing(page, nowMs - 30 * MINUTE_MS, ', 3 km SW of Dachau');
  await page
    .locator('.where-geofences')
    .getByText(/^In Low emission zone since \d/)
    .waitFor();
  const requestsOf = countRequests(page);
  const before = requestsOf();
  for (let step = 1; step <= 5; step++) {
    await service.admin('POST', 'objects/van 12/packets', { lat: 48.24 + step / 1_000, lon: 11.41, speed: 50 + step });
    await sentence(page, `Moving ${50 + step} km/h, near Dachau`);
  }
  await page
    .locator('.where-geofences')
    .getByText(/^In Low emission zone since \d/)
    .waitFor();
  const stopMs = Date.now();
  await service.admin('POST', 'objects/van 12/packets', { time: stopMs, lat: 48.155, lon: 11.56, speed: 0 });
  await standing(page, stopMs, ', in Munich');
  await page.locator('.where-geofences').waitFor({ state: 'detached' });
  expect(requestsOf()).toBe(before);
  await page.goto(`${service.url}/objects/${id}/live`);
  await standing(page, stopMs, ', in Munich');
});

test('says it in the language and the units of the reader', async () => {
  await addObject('lkw', parked());
  const page = await browser.openAs('/objects/lkw/live', ADMIN, { locale: 'de-DE' });
  await sentence(page, /3 km südwestlich von Dachau/);
  await service.admin('POST', 'objects/lkw/packets', { lat: 48.155, lon: 11.56, speed: 0 });
  await sentence(page, /in München$/);
  const british = await browser.openAs('/objects/lkw/settings');
  await service.admin('POST', 'objects/lkw/packets', { lat: 48.4, lon: -6.1, speed: 0 });
  await sentence(british, /74 mi W of Brest$/);
  await service.admin('POST', 'objects/lkw/packets', { lat: -40, lon: -120, speed: 0 });
  await sentence(british, /^Standing for \d+ min$/);
});

test('says where an object was last, and of a sensor where it is', async () => {
  await addObject('away', [...parked(), { online: false }]);
  const page = await browser.openAs('/objects/away/live', ADMIN, METRIC);
  await sentence(page, /^Last known 3 km SW of Dachau$/);
  await addObject('sensor', [{ ...NEAR_DACHAU, temperature: 7 }]);
  await page.goto(`${service.url}/objects/sensor/live`);
  await sentence(page, /^3 km SW of Dachau$/);
});

test('says what an object does where the towns cannot be loaded, and asks for them once', async () => {
  const nowMs = Date.now();
  await addObject('cut off', parked(nowMs));
  browser.expectErrors(/near-|ERR_FAILED|Failed to load/);
  const page = await browser.openAs('/account/profile', ADMIN, METRIC);
  let asked = 0;
  await page.route(/\/near-/, (route) => {
    asked++;
    return route.abort();
  });
  await page.goto(`${service.url}/objects/cut off/live`);
  await standing(page, nowMs - 30 * MINUTE_MS, '');
  await until(() => asked === 1, 'the request for the towns');
  await service.admin('POST', 'objects/cut off/packets', { ...NEAR_DACHAU, speed: 40 });
  await sentence(page, /^Moving 40 km\/h$/);
  expect(asked).toBe(1);
});

test('shows the words on a screen and on a phone, in the light and in the dark', async () => {
  const nowMs = Date.now();
  const id = await addObject('shown', parked(nowMs));
  const folder = process.env.SCREENSHOTS;
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const [form, options] of [
      ['screen', { viewport: { width: 1_280, height: 760 } }],
      ['phone', browserWithMaps.phone],
    ] as const) {
      const page = await browserWithMaps.openAs(`/?object=${id}`, ADMIN, { ...METRIC, colorScheme, ...options });
      await standing(page, nowMs - 30 * MINUTE_MS, ', 3 km SW of Dachau');
      await page.locator('.map[data-drawn]').waitFor();
      if (folder) await page.screenshot({ path: join(folder, `where-card-${form}-${colorScheme}.png`) });
      await page.goto(`${service.url}/objects/${id}/live`);
      await standing(page, nowMs - 30 * MINUTE_MS, ', 3 km SW of Dachau');
      await page.locator('.uplot').waitFor();
      if (folder) await page.screenshot({ path: join(folder, `where-page-${form}-${colorScheme}.png`) });
      const widthPx = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect(widthPx).toBe(0);
    }
  }
});
