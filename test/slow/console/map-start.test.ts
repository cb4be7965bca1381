/** How the map begins: what would keep the page from answering is done elsewhere, or once. */
import { beforeAll, expect, test } from '@jest/globals';
import { useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service);
const drawn = '.map[data-drawn]';

beforeAll(async () => {
  await service.admin('POST', 'objects', { id: 'placed', name: 'Placed' });
  await service.admin('POST', 'objects/placed/packets', { lat: 52.5, lon: 13.4 });
});

test('reads countries and towns in a worker, not in the page', async () => {
  const page = await browser.openAs('/', ADMIN);
  const loaded: string[] = [];
  page.on('response', (response) => loaded.push(response.url()));
  await page.reload();
  await page.locator(drawn).waitFor();
  const isGround = (url: string): boolean => /(world|towns)-.*\.json$/.test(url);
  expect(loaded.filter(isGround).length).toBeGreaterThan(1);
  const ofPage = 'performance.getEntriesByType("resource").map(({ name }) => name)';
  expect(((await page.evaluate(ofPage)) as string[]).filter(isGround)).toEqual([]);
});

test('creates one WebGL context for one map', async () => {
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
  expect(await page.evaluate('contexts')).toBe(1);
});
