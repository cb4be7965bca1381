/** A page on paper: all of it, dark on white, without what only a screen can do. */
import { expect, test } from '@jest/globals';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service);

/** How much of the content lies below the frame that shows it, and whether black ink is on white. */
const PRINTED = `(() => {
  const { scrollHeight, clientHeight } = document.querySelector('main');
  const style = getComputedStyle(document.body);
  return {
    cutPx: Math.max(0, scrollHeight - clientHeight),
    heightPx: document.documentElement.scrollHeight,
    ink: style.color,
    paper: style.backgroundColor,
  };
})()`;

test('prints all of an object, in dark ink, without navigation and buttons', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'printed', name: 'Printed' });
  const packets = Array.from({ length: 15 }, (_, index) => ({ time: Date.now() - index * 60_000, speed: index }));
  await service.admin('POST', 'objects/printed/packets', packets);
  const viewport = { width: 1000, height: 500 };
  const page = await browser.openAs(`/objects/${body._id}/live`, undefined, { colorScheme: 'dark', viewport });
  await page.locator('main td').nth(20).waitFor();
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const printed = (await page.evaluate(PRINTED)) as { heightPx: number };
  expect(printed).toMatchObject({ cutPx: 0, ink: 'rgb(20, 24, 31)', paper: 'rgb(255, 255, 255)' });
  expect(printed.heightPx).toBeGreaterThan(2 * viewport.height);
  expect(await page.locator('.top, .tabs, main button, main a.button').filter({ visible: true }).count()).toBe(0);
  expect(await page.locator('main td, main h1').filter({ visible: true }).count()).toBeGreaterThan(20);
});
