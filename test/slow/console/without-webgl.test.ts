/** The console in a browser that cannot draw with WebGL: the same objects on a plain canvas. */
import { expect, test } from '@jest/globals';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service, ['--disable-3d-apis']);

test('draws objects, selects the one that is clicked, and follows its packets', async () => {
  await service.admin('POST', 'objects', { id: 'plain', name: 'Plain' });
  await service.admin('POST', 'objects/plain/packets', { lat: 48, lon: 11, speed: 1 });
  const page = await browser.openAs('/');
  expect(await page.evaluate('document.createElement("canvas").getContext("webgl2") === null')).toBe(true);
  await page.locator('.map canvas').waitFor();
  await page.locator('.row', { hasText: 'Plain' }).waitFor();
  await effectsRun(page);
  await page.getByRole('button', { name: 'Show all objects' }).click();
  const box = await page.locator('.map').boundingBox();
  if (box === null) throw new Error('no map');
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  const card = page.locator('.card');
  await card.getByRole('heading', { name: 'Plain' }).waitFor();
  await service.admin('POST', 'objects/plain/packets', { lat: 48.1, lon: 11.1, speed: 77 });
  await card.getByText('77').waitFor();
  expect(await page.getByText('cannot draw the map').count()).toBe(0);
});
