/** The map of all objects: when it is created, where it begins, and what it draws. */
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { WORLD_PX } from '../../../src/console/map/camera.js';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { boxOf } from '../../support/browser/box.js';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
const drawn = '.map[data-drawn]';
const MAP_FILES = /\/console\/fleet-map-.*\.js$/;
const WATER = '219 230 238';
const ONLINE = '13 153 97';

beforeAll(async () => {
  // In the ocean, where nothing else is drawn.
  await service.admin('POST', 'objects', { id: 'placed', name: 'Placed' });
  await service.admin('POST', 'objects/placed/packets', { lat: 30, lon: -40 });
});

/** The colors of the map at these distances to the right of its middle, in pixels. */
async function colorsAt(page: Page, rights: readonly number[]): Promise<string[]> {
  const { x, y, width, height } = await boxOf(page.locator('.stage'));
  const most = Math.max(...rights.map(Math.abs));
  const clip = { x: Math.round(x + width / 2) - most, y: Math.round(y + height / 2), width: 2 * most + 1, height: 1 };
  const png = await page.screenshot({ clip });
  return page.evaluate(`new Promise((done) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement('canvas');
      canvas.width = image.width;
      const context = canvas.getContext('2d');
      context.drawImage(image, 0, 0);
      const colorAt = (x) => [...context.getImageData(x, 0, 1, 1).data].slice(0, 3).join(' ');
      done(${JSON.stringify(rights.map((right) => most + right))}.map(colorAt));
    };
    image.src = 'data:image/png;base64,${png.toString('base64')}';
  })`);
}

/** The color in the middle of the map. */
const middle = async (page: Page): Promise<string> => (await colorsAt(page, [0]))[0] as string;

const untilMiddle = (page: Page, color: string): Promise<void> =>
  until(async () => (await middle(page)) === color, `${color} in the middle of the map`);

test('reads countries and towns in a worker, not in the page', async () => {
  const page = await browser.openAs('/', ADMIN);
  const loaded: string[] = [];
  page.on('response', (response) => loaded.push(response.url()));
  await page.reload();
  await page.locator(drawn).waitFor();
  const isGround = (url: string): boolean => /(world|towns)-.*\.json$/.test(url);
  await until(() => loaded.filter(isGround).length > 1, 'countries and towns are loaded');
  const ofPage = 'performance.getEntriesByType("resource").map(({ name }) => name)';
  expect(((await page.evaluate(ofPage)) as string[]).filter(isGround)).toEqual([]);
});

test('creates one WebGL context for the map and one for the objects', async () => {
  const page = await browser.openAs('/', ADMIN);
  await page.addInitScript(`(() => {
    globalThis.contexts = 0;
    const { getContext } = HTMLCanvasElement.prototype;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
      if (kind.startsWith('webgl')) globalThis.contexts++;
      return getContext.call(this, kind, ...rest);
    };
  })()`);
  await page.reload();
  await page.locator(drawn).waitFor();
  await untilMiddle(page, ONLINE);
  expect(await page.evaluate('contexts')).toBe(2);
});

test('lists the objects before the map is loaded, and zooms as soon as it is', async () => {
  const page = await browser.openAs('/account/profile');
  const [held, release] = createDeferred<void>();
  await page.route(MAP_FILES, async (route) => {
    await held;
    await route.continue();
  });
  await page.goto(service.url);
  await page.locator('.row', { hasText: 'Placed' }).waitFor();
  // Also when another page was shown meanwhile.
  await page.getByRole('link', { name: 'Log' }).click();
  await page.locator('.log').waitFor();
  await page.getByRole('link', { name: 'Map' }).click();
  await page.locator('.row', { hasText: 'Placed' }).waitFor();
  expect(await page.locator('.map canvas').count()).toBe(0);
  await page.getByRole('button', { name: 'Zoom in' }).click();
  release();
  await page.waitForURL(/at=30\.0\d*%2C-40\.0\d*/);
  await page.locator(drawn).waitFor();
  await untilMiddle(page, ONLINE);
});

test('goes where a saved view says, also while it is shown, and back', async () => {
  const { body } = await service.admin('POST', 'views', { name: 'There', query: 'at=30,-40,9' });
  const page = await browser.openAs('/?at=0,0,9');
  await page.locator(drawn).waitFor();
  await page.getByRole('button', { name: 'Views', exact: true }).click();
  await page.getByRole('dialog').getByRole('link', { name: 'There' }).click();
  await untilMiddle(page, ONLINE);
  await page.goBack();
  await until(async () => (await colorsAt(page, [0]))[0] !== ONLINE, 'the map where it was before');
  await service.admin('DELETE', `views/${body._id}`);
});

test('begins at the selected object, not at all objects', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'far', name: 'Far' });
  await service.admin('POST', 'objects/far/packets', { lat: -30, lon: 70 });
  const page = await browser.openAs('/account/profile');
  await page.goto(`${service.url}/?object=${body._id}`);
  await page.locator(drawn).waitFor();
  await page.getByRole('button', { name: 'Zoom out' }).click();
  await page.waitForURL(/at=-30\.0\d*%2C70\.0\d*%2C10\./);
  await service.admin('DELETE', 'objects/far');
});

test('keeps the selected object out from under its card, when it is chosen and when it moves', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'covered', name: 'Covered' });
  await service.admin('POST', 'objects/covered/packets', { lat: -40, lon: 60 });
  const page = await browser.openAs('/');
  // It is at the right edge of the map.
  await page.goto(`${service.url}/?at=-40,59.88,11`);
  await page.locator(drawn).waitFor();
  await page.locator('.row', { hasText: 'Covered' }).click();
  await page.locator('.card').waitFor();
  const CARD_PX = 360;
  const expectBesideCard = (): Promise<void> =>
    until(async () => (await colorsAt(page, [-CARD_PX / 2]))[0] === ONLINE, 'the marker in the middle beside the card');
  await expectBesideCard();
  await page.locator(drawn).waitFor();
  await service.admin('POST', `objects/${body._id}/packets`, { lat: -40, lon: 60.14 });
  await page.locator('.card').getByText('-40.00000, 60.14000').waitFor();
  await expectBesideCard();
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/card-beside.png` });
  await service.admin('DELETE', 'objects/covered');
});

test('lets each of the objects in one place be chosen', async () => {
  const ids: string[] = [];
  for (const [index, name] of ['Pump 10', 'Pump 2', 'Valve'].entries()) {
    const { body } = await service.admin('POST', 'objects', { id: `stack-${index}`, name });
    // Three metres apart: further than a packet's digits, closer than the map comes.
    await service.admin('POST', `objects/stack-${index}/packets`, { lat: -10 + index * 0.00003, lon: -20 });
    ids.push(body._id);
  }
  const page = await browser.openAs('/');
  await page.goto(`${service.url}/?at=-10,-20,12`);
  await page.locator(drawn).waitFor();
  await page.locator('.row', { hasText: 'Valve' }).waitFor();
  const { x, y, width, height } = await boxOf(page.locator('.map'));
  const choice = page.getByRole('dialog', { name: '3 objects here' });
  // The map may be there before its objects are, and move when one is chosen.
  const openChoice = (): Promise<void> =>
    until(async () => {
      if (await choice.isVisible()) return true;
      await page.mouse.click(x + width / 2, y + height / 2);
      await effectsRun(page);
      return choice.isVisible();
    }, 'the choice of objects');
  for (const [index, name] of ['Pump 10', 'Pump 2', 'Valve'].entries()) {
    await openChoice();
    await choice.getByRole('button', { name, exact: true }).click();
    await page.waitForURL(new RegExp(`object=${ids[index]}`));
    await page.locator('.card h2', { hasText: name }).waitFor();
    await choice.waitFor({ state: 'detached' });
    await page.locator(drawn).waitFor();
  }
  await openChoice();
  await eventually(async () =>
    expect(await choice.getByRole('button').allTextContents()).toEqual(['Pump 2', 'Pump 10', 'Valve']),
  );
  await page.keyboard.press('Escape');
  await choice.waitFor({ state: 'detached' });
  for (const index of ids.keys()) await service.admin('DELETE', `objects/stack-${index}`);
});

test('draws a geofence in its own color, and in the usual one without a valid color', async () => {
  const wrong = ['no color', 'inherit', 'url(x)', 7, null];
  const colors = [undefined, '#ff0000', 'rgb(255 0 0)', 'red', ...wrong];
  // One degree of longitude apart.
  const zoom = 6;
  const apartPx = (WORLD_PX * 2 ** zoom) / 360;
  const fromMiddle = colors.map((_, index) => index - (colors.length - 1) / 2);
  for (const [index, color] of colors.entries()) {
    const lon = -30 + (fromMiddle[index] as number);
    const ring = [
      [lon - 0.4, 19],
      [lon + 0.4, 19],
      [lon + 0.4, 21],
      [lon - 0.4, 21],
      [lon - 0.4, 19],
    ];
    await service.admin('POST', 'geofences', { name: '', color, geometry: { type: 'Polygon', coordinates: [ring] } });
  }
  const page = await browser.openAs(`/?at=20,-30,${zoom}`);
  await page.locator(drawn).waitFor();
  let found: string[] = [];
  await until(async () => {
    const before = found;
    found = await colorsAt(
      page,
      fromMiddle.map((steps) => Math.round(steps * apartPx)),
    );
    return !found.includes(WATER) && String(found) === String(before);
  }, 'all geofences are drawn');
  const [usual, hex, rgb, named, ...ofWrong] = found;
  expect(hex).not.toBe(usual);
  expect(hex).toMatch(/^22[2-5] 20[1-4] (20[89]|21[01])$/);
  expect(rgb).toBe(named);
  expect(ofWrong).toEqual(wrong.map(() => usual));
});

test('draws the objects again when the browser has taken the graphics card away', async () => {
  const page = await browser.openAs('/');
  await page.locator(drawn).waitFor();
  await untilMiddle(page, ONLINE);
  await page.evaluate(`(() => {
    globalThis.lost = document.querySelector('.map-points').getContext('webgl2').getExtension('WEBGL_lose_context');
    lost.loseContext();
  })()`);
  await untilMiddle(page, WATER);
  await page.evaluate('lost.restoreContext()');
  await untilMiddle(page, ONLINE);
});

test('removes an object from the map when it is deleted', async () => {
  await service.admin('POST', 'objects', { id: 'stays', name: 'Stays' });
  const page = await browser.openAs('/?at=30,-40,9');
  await page.locator(drawn).waitFor();
  await untilMiddle(page, ONLINE);
  await service.admin('DELETE', 'objects/placed');
  await page.locator('.row', { hasText: 'Placed' }).waitFor({ state: 'detached' });
  await untilMiddle(page, WATER);
});
