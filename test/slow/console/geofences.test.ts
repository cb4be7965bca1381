/** Geofences in the console: drawn on a map, changed there, and shown with the objects. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { entityOf } from '../../support/answers.js';
import { boxOf } from '../../support/browser/box.js';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
const SQUARE = [
  [11, 48],
  [11.2, 48],
  [11.2, 48.1],
  [11, 48.1],
  [11, 48],
];

const create = async (fields: object): Promise<string> =>
  entityOf(await service.admin('POST', 'geofences', fields))._id as string;
const read = async (id: string) => entityOf(await service.admin('GET', `geofences/${id}`));
const named = async (name: string) => {
  const { body } = await service.admin('GET', 'geofences?limit=100');
  return (body as Record<string, unknown>[]).find((one) => one.name === name);
};

/** A page whose map can be drawn on. */
async function openMap(): Promise<Page> {
  const page = await browser.openAs('/geofences');
  await page.locator('.map[data-drawn]').waitFor();
  return page;
}

/** Clicks at these places of the map, in parts of its width and height. */
async function clickMap(page: Page, places: readonly (readonly [number, number])[]): Promise<void> {
  // The map follows the form in an effect.
  await effectsRun(page);
  const box = await boxOf(page.locator('.map'));
  for (const [x, y] of places) {
    await page.mouse.move(box.x + box.width * x, box.y + box.height * y, { steps: 2 });
    await page.mouse.click(box.x + box.width * x, box.y + box.height * y);
  }
}

test('draws an area, and stores it as a polygon', async () => {
  const page = await openMap();
  await page.getByRole('button', { name: 'Draw', exact: true }).click();
  await page.getByText('Click each corner on the map').waitFor();
  await clickMap(page, [
    ...([
      [0.3, 0.3],
      [0.6, 0.3],
      [0.5, 0.6],
      [0.3, 0.3],
    ] as const),
  ]);
  await page.getByText('Drag a corner').waitFor();
  await page.getByLabel('Name').fill('Drawn area');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.item', { hasText: 'Drawn area' }).waitFor();
  const corner = [expect.any(Number), expect.any(Number)];
  const ring = [corner, corner, corner, corner];
  expect(await named('Drawn area')).toMatchObject({ geometry: { type: 'Polygon', coordinates: [ring] } });
});

test('leaves the map where somebody draws while the geofences are loaded', async () => {
  await create({ name: 'Loaded late', geometry: { type: 'Polygon', coordinates: [SQUARE] } });
  const page = await browser.openAs('/account/profile');
  const [held, release] = createDeferred<void>();
  await page.route(/\/api\/v1\/geofences\?/, async (route) => {
    await held;
    await route.continue();
  });
  await page.goto(`${service.url}/geofences`);
  await page.locator('.map[data-drawn]').waitFor();
  await page.getByRole('button', { name: 'Draw', exact: true }).click();
  await page.getByText('Click each corner on the map').waitFor();
  await clickMap(page, [
    [0.3, 0.3],
    [0.6, 0.3],
  ]);
  const isLoaded = page.waitForEvent('requestfinished', (request) => request.url().includes('/geofences?'));
  release();
  await isLoaded;
  await effectsRun(page);
  await clickMap(page, [
    [0.5, 0.6],
    [0.3, 0.3],
  ]);
  await page.getByText('Drag a corner').waitFor();
});

test('draws a circle, and stores it as a point with a radius', async () => {
  const page = await openMap();
  await page.getByRole('button', { name: 'Draw', exact: true }).click();
  await page.getByRole('button', { name: 'Circle' }).click();
  await page.getByText('Click the centre on the map').waitFor();
  await clickMap(page, [
    [0.5, 0.5],
    [0.6, 0.5],
  ]);
  await page.getByLabel('Radius in metres').fill('1500');
  await page.getByLabel('Name').fill('Drawn circle');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.item', { hasText: 'Drawn circle' }).getByText('Circle, 1.5 km').waitFor();
  expect(await named('Drawn circle')).toMatchObject({ geometry: { type: 'Point' }, radius: 1500 });
});

test('changes the shape that is dragged, and keeps all other fields', async () => {
  const id = await create({ name: 'Depot', geometry: { type: 'Polygon', coordinates: [SQUARE] }, color: 'red' });
  const page = await openMap();
  await page.getByRole('button', { name: 'Edit Depot' }).click();
  await page.getByText('Drag a corner').waitFor();
  await effectsRun(page);
  await page.locator('.map[data-drawn]').waitFor();
  const box = await boxOf(page.locator('.map'));
  const x = box.x + box.width / 2;
  const y = box.y + box.height / 2;
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 80, y, { steps: 6 });
  await page.mouse.up();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Edit Depot' }).waitFor();
  const { geometry, color, name } = await read(id);
  expect([color, name]).toEqual(['red', 'Depot']);
  const [west = 0] = (geometry as { coordinates: number[][][] }).coordinates[0]?.[0] ?? [];
  expect(west).toBeGreaterThan(11.01);
});

test('renames a geofence without touching a shape that cannot be drawn', async () => {
  const hole = SQUARE.map(([lon = 0, lat = 0]) => [11.1 + (lon - 11.1) / 2, 48.05 + (lat - 48.05) / 2]);
  const geometry = { type: 'Polygon', coordinates: [SQUARE, hole] };
  const id = await create({ name: 'With a hole', geometry });
  const page = await openMap();
  await page.getByRole('button', { name: 'Edit With a hole' }).click();
  await page.getByLabel('Name').fill('Renamed');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.item', { hasText: 'Renamed' }).waitFor();
  expect(await read(id)).toMatchObject({ name: 'Renamed', geometry });
});

test('removes a geofence after a question', async () => {
  const id = await create({ name: 'Gone soon', geometry: { type: 'Point', coordinates: [11, 48] } });
  const page = await openMap();
  await page.getByRole('button', { name: 'Remove Gone soon' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.locator('.item', { hasText: 'Gone soon' }).waitFor({ state: 'detached' });
  expect((await service.admin('GET', `geofences/${id}`)).status).toBe(404);
});

test('shows a viewer geofences, and nothing that writes', async () => {
  await create({ name: 'Seen', geometry: { type: 'Point', coordinates: [11, 48] }, radius: 100 });
  const page = await browser.openAs('/geofences', await createUser(service, 'viewer'));
  await page.locator('.item', { hasText: 'Seen' }).waitFor();
  expect(
    await page
      .locator('.split')
      .getByRole('button', { name: /^(Draw|Edit|JSON|Remove)\b/ })
      .count(),
  ).toBe(0);
});

test('shows geofences on the map of the objects', async () => {
  await service.admin('POST', 'objects', { id: 'inside', name: 'Inside' });
  await service.admin('POST', 'objects/inside/packets', { lat: 10, lon: 10 });
  const page = await browser.openAs('/', ADMIN);
  const picture = async (): Promise<string> => {
    await page.reload();
    await page.locator('.row', { hasText: 'Inside' }).waitFor();
    await effectsRun(page);
    await page.locator('.map[data-drawn]').waitFor();
    return (await page.locator('.map').screenshot()).toString('base64');
  };
  // Until all of the map is drawn each time.
  let before = '';
  await until(async () => {
    const last = before;
    before = await picture();
    return before === last;
  }, 'the same picture twice');
  await create({ name: 'Around it', geometry: { type: 'Point', coordinates: [10, 10] }, radius: 400 });
  // The map may be drawn once before the geofences have come.
  await until(async () => (await picture()) !== before, 'the geofence on the map');
});

test('shows a geofence of the list on the map', async () => {
  const _id = await create({
    name: 'Far field',
    geometry: { type: 'Point', coordinates: [100, -30] },
    radius: 1_500,
  });
  const page = await openMap();
  await page.getByRole('button', { name: 'Far field', exact: true }).click();
  // A click on a geofence of the map edits it.
  await until(async () => {
    await clickMap(page, [[0.5, 0.5]]);
    return page.getByLabel('Radius in metres').isVisible();
  }, 'it is in the middle of the map');
  await eventually(async () => expect(await page.getByLabel('Name').inputValue()).toBe('Far field'));
  await service.admin('DELETE', `geofences/${_id}`);
});
