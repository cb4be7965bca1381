/** The first page of objects that are nowhere on a map: tiles with their values. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { entityOf } from '../../support/answers.js';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { storeFleet } from '../../support/fleet.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);
const HOUR_MS = 3_600_000;

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;
const send = (id: string, packet: object) => service.admin('POST', `objects/${id}/packets`, packet);
const tile = (page: Page, name: string) => page.locator('.tile', { hasText: name });
const scriptsOf = (page: Page): Promise<string> =>
  page.evaluate('performance.getEntriesByType("resource").map(({ name }) => name).join()');

beforeAll(async () => {
  const children = [
    { type: 'argument', id: 'temperature', name: 'Air', unit: '°C', dataType: 'number' },
    { type: 'argument', id: 'humidity', name: 'Humidity', unit: '%', dataType: 'number' },
  ];
  const model = await create('models', { name: 'Climate', data: { children } });
  for (const index of Array.from({ length: 12 }, (_, at) => at + 1)) {
    await create('objects', { id: `room-${index}`, name: `Room ${index}`, model });
    const past = Array.from({ length: 10 }, (_, at) => ({
      time: Date.now() - HOUR_MS + at * 60_000,
      temperature: index + Math.sin(at),
    }));
    await send(`room-${index}`, past);
    await send(`room-${index}`, { temperature: index, humidity: 40 + index, door: index % 2 === 0 });
  }
  await create('rules', {
    name: 'Too warm',
    severity: 'critical',
    select: { objects: ['room-12'] },
    when: { param: 'temperature', op: '>', value: 11 },
  });
  await send('room-12', { temperature: 12.5, humidity: 52, door: true });
});

describe('without any position', () => {
  test('shows tiles with values, units and the worst alarm, live, and loads no map', async () => {
    const page = await browser.openAs('/');
    await tile(page, 'Room 3').waitFor();
    await tile(page, 'Room 3').getByText('Air').waitFor();
    await tile(page, 'Room 3').getByText('°C').first().waitFor();
    await eventually(async () => expect(await tile(page, 'Room 3').textContent()).toContain('Humidity 43 %'));
    await page.locator('.tile.critical', { hasText: 'Room 12' }).getByText('Too warm since').waitFor();
    await send('room-3', { temperature: 3.75, humidity: 43 });
    await tile(page, 'Room 3').locator('b', { hasText: '3.75' }).waitFor();
    await tile(page, 'Room 3').locator('.spark path').waitFor({ state: 'attached' });
    expect(await scriptsOf(page)).not.toContain('fleet-map');
    expect(await page.locator('.stage .map').count()).toBe(0);
  });

  test('selects a tile, and leads through them with the arrows', async () => {
    const page = await browser.openAs('/?sort=name&search=room');
    await tile(page, 'Room 1').first().click();
    await page.locator('.card h2', { hasText: 'Room 1' }).waitFor();
    await page.keyboard.press('ArrowRight');
    await eventually(async () => expect(await page.locator('.tile:focus').textContent()).toContain('Room 2'));
    await page.keyboard.press('Enter');
    await page.locator('.card h2', { hasText: 'Room 2' }).waitFor();
    expect(new URL(page.url()).searchParams.get('object')).not.toBeNull();
  });

  test('pins the values that somebody chooses, which are in the address', async () => {
    const page = await browser.openAs('/?sort=name');
    await tile(page, 'Room 4').waitFor();
    await page.getByRole('button', { name: 'Values' }).click();
    await page.getByRole('dialog').getByLabel('Humidity').check();
    await page.keyboard.press('Escape');
    await tile(page, 'Room 4').locator('b', { hasText: '44' }).waitFor();
    expect(new URL(page.url()).searchParams.get('columns')).toBe('.humidity');
    await page.reload();
    await tile(page, 'Room 4').locator('b', { hasText: '44' }).waitFor();
  });

  test('shows the map to who asks for it, and says so in the address', async () => {
    const page = await browser.openAs('/');
    await tile(page, 'Room 1').first().waitFor();
    await page.getByTitle('Map', { exact: true }).click();
    await page.locator('.stage .map').waitFor({ state: 'attached' });
    await page.waitForURL(/view=map/);
    await page.getByTitle('Tiles', { exact: true }).click();
    await page.waitForURL((url) => !url.searchParams.has('view'));
    await tile(page, 'Room 1').first().waitFor();
  });

  test('draws the line of what was silent for hours and sends again', async () => {
    await create('objects', { id: 'cellar', name: 'Cellar' });
    await send('cellar', { time: Date.now() - 10 * HOUR_MS, temperature: 9 });
    const page = await browser.openAs('/account/profile');
    const lines = page.waitForResponse((response) => response.url().includes('/api/v1/series'));
    await page.goto(`${service.url}/?view=tiles&search=cellar`);
    await lines;
    await tile(page, 'Cellar').locator('b', { hasText: '9' }).waitFor();
    for (const temperature of [10, 11, 12]) {
      await send('cellar', { temperature });
      await tile(page, 'Cellar')
        .locator('b', { hasText: String(temperature) })
        .waitFor();
    }
    await tile(page, 'Cellar').locator('.spark path').waitFor({ state: 'attached' });
  });

  test('has only the tiles in view, of however many objects', async () => {
    await storeFleet(service.client.db(), 1_500, () => ({ labels: ['many'] }));
    const page = await browser.openAs('/?view=tiles&label=many');
    await page.getByText('1,500 objects').waitFor();
    await tile(page, 'Device 0').first().waitFor();
    expect(await page.locator('.tile').count()).toBeLessThan(100);
    await page.locator('.tiles .virtual-list').evaluate((list) => list.scrollTo(0, list.scrollHeight));
    await tile(page, 'Device 1499').waitFor();
    expect(await page.locator('.tile').count()).toBeLessThan(100);
  });
});

describe('with some positions', () => {
  test('shows the map, and below it the tiles of what is not on it, which can be folded', async () => {
    await create('objects', { id: 'van', name: 'Van' });
    await send('van', { lat: 48.1, lon: 11.5, speed: 40 });
    const page = await browser.openAs('/?search=r');
    const strip = page.locator('.strip');
    await strip.getByText('Room 7').waitFor();
    await page.locator('.stage .map').waitFor({ state: 'attached' });
    expect(await strip.locator('.tile', { hasText: 'Van' }).count()).toBe(0);
    await strip.locator('summary').click();
    await strip.locator('.tile').first().waitFor({ state: 'hidden' });
    await page.reload();
    await strip.locator('summary').waitFor();
    await until(async () => (await strip.getAttribute('open')) === null, 'the strip stays folded');
  });
});
