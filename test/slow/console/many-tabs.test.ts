/** Many tabs of one browser: over HTTP/1.1 it opens six connections to a server, which live events must not occupy. */
import { expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { until } from '../../support/until.js';

const TABS = 8;
/** As many as the window has room for. */
const PACKETS = 8;
const SOCKETS = /\/socket\.io\//;

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);

const createObject = async (id: string): Promise<void> => {
  await service.admin('POST', 'objects', { id, name: `Name of ${id}` });
  await service.admin('POST', `objects/${id}/packets`, { speed: 1 });
};
const send = (id: string, speed: number) => service.admin('POST', `objects/${id}/packets`, { speed });
const speedIn = (page: Page, id: string, speed: number): Promise<void> =>
  page
    .locator('.row', { hasText: `Name of ${id}` })
    .getByText(String(speed))
    .waitFor();

async function openTab(context: BrowserContext, path: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(service.url + path);
  return page;
}

test('follows live events in eight tabs at once, and loads pages in each', async () => {
  await createObject('tabs');
  const first = await browser.openAs('/');
  const pages = [first];
  while (pages.length < TABS) pages.push(await openTab(first.context(), '/'));
  for (const page of pages) await page.locator('.status.live').waitFor();
  await send('tabs', 61);
  for (const page of pages) await speedIn(page, 'tabs', 61);
  for (const page of pages) {
    await page.locator('.nav').getByRole('link', { name: 'Log' }).click();
    await page.locator('.log').waitFor();
  }
});

test.each([
  ['closes WebSockets', (close: () => void) => close()],
  ['accepts WebSockets and passes nothing on', () => undefined],
])('follows live events in eight tabs where a network %s', async (_, handle) => {
  const id = `without-${handle.length}`;
  await createObject(id);
  const first = await browser.openAs('/account/profile');
  await first.context().routeWebSocket(SOCKETS, (socket) => handle(() => void socket.close()));
  const pages: Page[] = [];
  while (pages.length < TABS) pages.push(await openTab(first.context(), '/'));
  for (const page of pages) await page.locator('.status.live').waitFor();
  await send(id, 62);
  for (const page of pages) await speedIn(page, id, 62);
});

test('loses and repeats no event where a network closes WebSockets', async () => {
  await createObject('polled');
  const page = await browser.openAs('/account/profile');
  await page.context().routeWebSocket(SOCKETS, (socket) => void socket.close());
  const log = await openTab(page.context(), '/log');
  await log.locator('.status.live').waitFor();
  const marks = Array.from({ length: PACKETS }, (_, nth) => nth + 100);
  for (const mark of marks) await send('polled', mark);
  const seen = async () => (await log.locator('.log-row').allTextContents()).join('\n');
  await until(async () => (await seen()).includes(`"speed":${marks.at(-1)}`), 'the last event');
  const text = await seen();
  expect(marks.map((mark) => text.split(`"speed":${mark}`).length - 1)).toEqual(marks.map(() => 1));
});
