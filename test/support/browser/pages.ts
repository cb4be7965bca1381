/** The pages of the console, each with an element that is there when all of the page is. */
import type { Page } from 'playwright-core';

type PageRow = readonly [path: string, element: string];

const rows = (paths: readonly string[], element: string): PageRow[] => paths.map((path) => [path, element]);

/** Of an object with packets; its history shows a map if these have positions. */
export const pagesWithoutMap = (object: string): readonly PageRow[] => [
  ...rows([`/objects/${object}/live`, `/objects/${object}/history`], '.uplot'),
  ...rows([`/objects/${object}/commands`, `/objects/${object}/settings`], 'main h2'),
  ...rows(['/access/users', '/access/groups', '/access/roles', '/access/tokens', '/access/audit'], 'main table'),
  ...rows(
    ['/access/rights', '/account/profile', '/account/sessions', '/models/new', '/welcome'],
    'main input, main h2',
  ),
  ...rows(['/account/tokens', '/models', '/data/labels', '/data/stores'], 'main h2'),
  ...rows(['/log'], 'main .search'),
];

export const pagesWithMap = (object: string): readonly PageRow[] => [
  ['/', '.row'],
  [`/?object=${object}`, '.card'],
  ['/geofences', '.stage'],
];

/** Opens a page, and waits until all of it is there. */
export async function openPage(page: Page, url: string, [path, element]: PageRow): Promise<void> {
  await page.goto(url + path);
  await page.locator(element).first().waitFor({ state: 'attached' });
  await page.locator('.skeleton').waitFor({ state: 'detached' });
}
