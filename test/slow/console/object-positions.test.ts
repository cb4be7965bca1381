/** Where objects are on the map: in the field names of many devices, and where they were last if their newest packet does not say it. */
import { beforeEach, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
const HOUR_MS = 3_600_000;
/** The card of the selected object is at the right of the map. */
const CARD_PX = 360;
/** The map jumps. */
const STILL = { reducedMotion: 'reduce' } as const;
let nowMs = 0;

beforeEach(() => {
  nowMs = Date.now();
});

const send = (id: string, ...packets: object[]) => service.admin('POST', `objects/${id}/packets`, packets);

async function create(id: string, name: string, ...packets: object[]): Promise<string> {
  const { body } = await service.admin('POST', 'objects', { id, name });
  if (packets.length > 0) await send(id, ...packets);
  return body._id;
}

/** Shows only this object: it is in the middle of the map, where a click selects it. */
async function selectOnMap(page: Page, name: string): Promise<void> {
  await page.getByRole('searchbox').fill(name);
  await page.locator('.row', { hasText: name }).waitFor();
  await clickMiddle(page, name);
}

async function clickMiddle(page: Page, name: string): Promise<void> {
  await page.locator('.map[data-drawn]').waitFor();
  const heading = page.locator('.card').getByRole('heading', { name });
  await until(async () => {
    await page.getByRole('button', { name: 'Show all objects' }).click();
    const { x, y, width, height } = (await page.locator('.map').boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.click(x + width / 2, y + height / 2);
    return heading.isVisible();
  }, `${name} is selected on the map`);
}

const placeOf = (page: Page, text: string) => page.locator('.card .place', { hasText: text });

test('shows objects whose devices name their position differently', async () => {
  await create('a', 'Longitudes', { latitude: 48, longitude: 11, heading: 90, fuel: 7 });
  await create('b', 'Nested', { position: { lat: 50.5, lon: 11 }, speed: 33 });
  await create('c', 'Geographer', { location: { type: 'Point', coordinates: [11, 52] }, fuel: 9 });
  const page = await browser.openAs('/', ADMIN, STILL);
  const rows: [string, string, string][] = [
    ['Longitudes', '48.00000, 11.00000', 'Heading 90° Fuel 7 Position 48.00000, 11.00000'],
    ['Nested', '50.50000, 11.00000', 'Speed 33 km/h Position 50.50000, 11.00000'],
    ['Geographer', '52.00000, 11.00000', 'Fuel 9 Position 52.00000, 11.00000'],
  ];
  for (const [name, place, values] of rows) {
    await selectOnMap(page, name);
    await placeOf(page, place).waitFor();
    await eventually(async () =>
      expect((await page.locator('.card .values').allInnerTexts()).join().replace(/\s+/g, ' ')).toBe(values),
    );
  }
});

test('draws the route of an object whose positions are nested', async () => {
  const packets = Array.from({ length: 5 }, (_, nth) => ({
    time: nowMs - nth * 60_000,
    gps: { lat: 48 + nth / 100, lng: 11 },
  }));
  const _id = await create('route', 'Route', ...packets);
  const page = await browser.openAs(`/objects/${_id}/history`);
  await page.locator('.track-map canvas').waitFor();
  await page.goto(`${service.url}/objects/${_id}/live`);
  await page.locator('.value-cards .place', { hasText: '48.00000, 11.00000' }).waitFor();
});

test('shows objects where they last were if their newest packets have no position', async () => {
  await create('cart', 'Cart', { time: nowMs - 3 * HOUR_MS, lat: 40, lon: 11 }, { time: nowMs, fuel: 60 });
  await create('lost', 'Lost', { time: nowMs - 2 * HOUR_MS, lat: 42, lon: 11 }, { time: nowMs, lat: 0, lon: 0 });
  await create(
    'halves',
    'Halves',
    { time: nowMs - 3, lat: 44 },
    { time: nowMs - 2, lon: 11 },
    { time: nowMs, fuel: 1 },
  );
  await create('indoors', 'Indoors', { time: nowMs, humidity: 40 });
  const page = await browser.openAs('/', ADMIN, STILL);
  await selectOnMap(page, 'Cart');
  await placeOf(page, '40.00000, 11.00000').getByText('3 hr ago').waitFor();
  await selectOnMap(page, 'Lost');
  await placeOf(page, '42.00000, 11.00000').getByText('2 hr ago').waitFor();
  await selectOnMap(page, 'Halves');
  await placeOf(page, '44.00000, 11.00000').waitFor();
  // A new packet does not take the position away, and a new position replaces it.
  await send('halves', { time: nowMs + 5, fuel: 2 });
  await page.locator('.card .values', { hasText: /fuel\s*2/i }).waitFor();
  await placeOf(page, '44.00000, 11.00000').waitFor();
  await send('halves', { time: nowMs + 6, lat: 44.5, lon: 11 });
  await placeOf(page, '44.50000, 11.00000').waitFor();
  await send('halves', { time: nowMs + 7, fuel: 3 });
  await page.locator('.card .values', { hasText: /fuel\s*3/i }).waitFor();
  await placeOf(page, '44.50000, 11.00000').waitFor();
  await send('halves', { time: nowMs + 8, lat: 45 });
  await send('halves', { time: nowMs + 9, lon: 12 });
  await placeOf(page, '45.00000, 12.00000').waitFor();
  await page.getByRole('searchbox').fill('');
  await selectOnMap(page, 'Halves');
});

test('searches the selected object first, and moves the map there', async () => {
  const _id = await create('van', 'Van', { time: nowMs - HOUR_MS, lat: -30, lon: -60 }, { time: nowMs, fuel: 1 });
  // A page without a map: it searches nothing.
  const page = await browser.openAs('/account/profile', ADMIN, STILL);
  const searches: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('latest-of-each')) searches.push(request.url());
  });
  await page.goto(`${service.url}/?object=${_id}`);
  await placeOf(page, '-30.00000, -60.00000').waitFor();
  expect(new URL(searches[0] as string).searchParams.get('where._id')).toBe(`"${_id}"`);
  // The address says where the map is once the user has moved it.
  await page.locator('.map[data-drawn]').waitFor();
  await page.getByRole('button', { name: 'Zoom out' }).click();
  // The middle of the map is right of the object, which is in the middle of what the card leaves.
  await page.waitForURL(/at=-30\.0\d+%2C-59\.9\d+/);
});

test.each(['drags the map', 'moves the map with keys'])(
  'follows the selected object until the user %s',
  async (way) => {
    const id = `courier-${way.split(' ')[0]}`;
    const _id = await create(id, 'Courier', { time: nowMs, lat: 60, lon: 20 });
    const page = await browser.openAs(`/?object=${_id}`, ADMIN, STILL);
    await page.locator('.map[data-drawn]').waitFor();
    const { x, y, width, height } = (await page.locator('.map').boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    /** Of what the card leaves. */
    const middle = [x + (width - CARD_PX) / 2, y + height / 2] as const;
    /** A click beside every object selects none. */
    const isInMiddle = async (place: string): Promise<boolean> => {
      await placeOf(page, place).waitFor();
      await effectsRun(page);
      await page.mouse.click(...middle);
      await effectsRun(page);
      return page.locator('.card').isVisible();
    };
    await send(id, { time: nowMs + 1, lat: 62, lon: 24 });
    expect(await isInMiddle('62.00000, 24.00000')).toBe(true);
    if (way === 'drags the map') {
      await page.mouse.move(...middle);
      await page.mouse.down();
      await page.mouse.move(middle[0] - 60, middle[1], { steps: 5 });
      await page.mouse.up();
    } else {
      await page.locator('.maplibregl-canvas').focus();
      // Each moves it by 100 pixels.
      for (let movedPx = 0; movedPx < width / 2; movedPx += 100) await page.keyboard.press('ArrowRight');
    }
    // The map moves with the next frame.
    await effectsRun(page);
    await send(id, { time: nowMs + 2, lat: 64, lon: 28 });
    expect(await isInMiddle('64.00000, 28.00000')).toBe(false);
  },
);

test('searches each position only once, and shows no error to a user who may not read packets', async () => {
  await create('dark', 'Dark', { time: nowMs - HOUR_MS, lat: 20, lon: 11 }, { time: nowMs, lat: 0, lon: 0 });
  const { body: role } = await service.admin('POST', 'roles', {
    name: 'lister',
    credentials: ['GET /objects', 'GET /objects/*/model'],
  });
  const user = await createUser(service, role.name);
  const page = await browser.openAs('/account/profile', user, STILL);
  const searches: string[] = [];
  let packets = 0;
  page.on('request', (request) => {
    if (request.url().includes('latest-of-each')) searches.push(request.url());
    if (request.url().includes('/packets')) packets++;
  });
  await page.goto(service.url);
  await selectOnMap(page, 'Cart');
  await page.getByRole('searchbox').fill('Dark');
  await page.locator('.row', { hasText: 'Dark' }).click();
  await page.locator('.card').getByRole('heading', { name: 'Dark' }).waitFor();
  await page.getByRole('link', { name: 'Log' }).click();
  await page.getByRole('link', { name: 'Map' }).click();
  await selectOnMap(page, 'Cart');
  expect(searches.length).toBeGreaterThan(0);
  expect(searches).toEqual([...new Set(searches)]);
  expect(packets).toBe(0);
  expect(await page.locator('.notices p').count()).toBe(0);
});
