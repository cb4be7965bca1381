/** The console in a window that is enlarged, as people do who read small type badly. */
import { expect, test } from '@jest/globals';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

/** 200 % and 400 % of 1280 × 720. */
const ZOOMS = [
  ['200 %', { viewport: { width: 640, height: 360 }, deviceScaleFactor: 2 }],
  ['400 %', { viewport: { width: 320, height: 180 }, deviceScaleFactor: 4 }],
] as const;

test.each(ZOOMS)('reaches every object and what is beside it at %s', async (name, options) => {
  const prefix = name.slice(0, 3);
  for (let index = 0; index < 20; index++) {
    const id = `zoomed-${prefix}-${index}`;
    await service.admin('POST', 'objects', { id, name: `Zoomed ${prefix} ${index}` });
    await service.admin('POST', `objects/${id}/packets`, { lat: 48 + index / 10, lon: 11, speed: index });
  }
  const page = await browser.openAs(`/?search=zoomed-${prefix}`, undefined, options);
  const { width, height } = options.viewport;
  const row = page.locator('.row', { hasText: `Zoomed ${prefix} 2` }).first();
  // Rows that come later move it.
  await until(async () => {
    await row.scrollIntoViewIfNeeded();
    const box = (await row.boundingBox()) ?? { x: -1, y: -1, width: 0, height: 0 };
    return box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height;
  }, 'the row in the window');
  const count = page.locator('.side-count > span').first();
  await until(
    () => count.evaluate((text) => text.textContent !== '' && text.scrollWidth <= text.clientWidth),
    'the count, whole',
  );
  await row.getByRole('button').click();
  const card = page.locator('.card');
  await card.getByRole('link', { name: 'History' }).click();
  await page.waitForURL(/\/history/);
  await page.locator('.uplot').first().waitFor();
});

test('scrolls no page sideways at 200 %', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'wide', name: 'An object with a long name' });
  const page = await browser.openAs('/account/profile', undefined, ZOOMS[0][1]);
  const own = ['live', 'history', 'commands', 'settings'].map((tab) => `/objects/${object._id}/${tab}`);
  const wide: string[] = [];
  for (const path of ['/', ...own, '/log', '/models', '/geofences', '/data/handlers', '/access/users', '/welcome']) {
    await page.goto(service.url + path);
    await page.locator('main h1').first().waitFor({ state: 'attached' });
    if (await page.evaluate('document.documentElement.scrollWidth > innerWidth')) wide.push(path);
  }
  expect(wide).toEqual([]);
});
