/** The way of the selected object in the last ten minutes, as a line on the map in a real browser. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { boxOf } from '../../support/browser/box.js';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
const MINUTE_MS = 60_000;
const ZOOM = 12;
/** In the ocean, where nothing else is drawn. */
const LAT = 30;
/** Of the map, left of its middle. */
const WIDTH_PX = 300;
/** The line is bluer than water by this much, but for its first tenth. */
const BLUE = 40;

let nextLon = -40;

/** A new object, and what sends packets of it so many pixels beside its last place, and so long ago. */
async function addObject(id: string) {
  const lon = nextLon--;
  await service.admin('POST', 'objects', { id, name: id });
  const send = async (px: number, agoMs: number): Promise<void> => {
    const packet = { lat: LAT, lon: lon + (px * 360) / (512 * 2 ** ZOOM), speed: 50, time: Date.now() - agoMs };
    expect((await service.admin('POST', `objects/${id}/packets`, packet)).status).toBe(200);
  };
  return { lon, send };
}

/** How many pixels of the row left of the middle of the map are of a line. */
async function lengthOf(page: Page): Promise<number> {
  const { x, y, width, height } = await boxOf(page.locator('.stage'));
  const left = Math.round(x + width / 2) - WIDTH_PX;
  const png = await page.screenshot({ clip: { x: left, y: Math.round(y + height / 2), width: WIDTH_PX, height: 1 } });
  const found = await page.evaluate(`(async () => {
    const image = new Image();
    image.src = 'data:image/png;base64,${png.toString('base64')}';
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = image.width;
    canvas.height = 1;
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, 1);
    return Array.from({ length: image.width }, (_, at) => data[4 * at + 2] - data[4 * at]).filter((blue) => blue > ${BLUE}).length;
  })()`);
  return found as number;
}

/** Opens the map with the object's last place in its middle. */
async function openMap(page: Page, id: string, lon: number): Promise<void> {
  await page.goto(`${service.url}/?at=${LAT},${lon},${ZOOM}`);
  await page.locator('.map[data-drawn]').waitFor();
  await page.locator('.row-name').getByText(id, { exact: true }).waitFor();
}

const select = (page: Page, id: string): Promise<void> => page.locator('.row').filter({ hasText: id }).click();

const expectLength = (page: Page, leastPx: number, mostPx: number): Promise<void> =>
  eventually(async () => {
    const px = await lengthOf(page);
    expect(px).toBeGreaterThanOrEqual(leastPx);
    expect(px).toBeLessThanOrEqual(mostPx);
  });

test('draws where the selected object was in the last ten minutes, and goes on as it moves', async () => {
  const { lon, send } = await addObject('moving');
  await send(-250, 30 * MINUTE_MS);
  await send(-200, 6 * MINUTE_MS);
  await send(-100, 2 * MINUTE_MS);
  const page = await browser.openAs('/');
  await openMap(page, 'moving', lon);
  await expectLength(page, 0, 20);
  await select(page, 'moving');
  await expectLength(page, 60, 110);
  await send(0, 0);
  await expectLength(page, 150, 210);
  await page.getByRole('button', { name: 'Close' }).click();
  await expectLength(page, 0, 20);
});

test('draws nothing of packets that are removed meanwhile', async () => {
  const { lon, send } = await addObject('removed');
  const to = new Date(Date.now() - 4 * MINUTE_MS).toISOString();
  await send(-200, 6 * MINUTE_MS);
  await send(-100, 2 * MINUTE_MS);
  await send(0, 0);
  const page = await browser.openAs('/');
  await openMap(page, 'removed', lon);
  await select(page, 'removed');
  await expectLength(page, 150, 210);
  expect((await service.admin('DELETE', `objects/removed/packets?from=0&to=${to}`)).status).toBe(200);
  await expectLength(page, 60, 110);
});
