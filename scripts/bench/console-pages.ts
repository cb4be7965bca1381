// The pages of the console as tests and measurements open them: each with an element that is there when all of the page is.
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';

type PageRow = readonly [path: string, element: string];

const rows = (paths: readonly string[], element: string): PageRow[] => paths.map((path) => [path, element]);

/** Of an object with packets; its history shows a map if these have positions. */
export const pagesWithoutMap = (object: string): readonly PageRow[] => [
  ...rows([`/objects/${object}/live`, `/objects/${object}/history`, `/compare?series=${object}:speed`], '.uplot'),
  ...rows([`/objects/${object}/commands`, `/objects/${object}/settings`], 'main h2'),
  ...rows(['/access/users', '/access/groups', '/access/roles', '/access/tokens', '/access/audit'], 'main table'),
  ...rows(
    ['/access/rights', '/account/profile', '/account/channels', '/account/sessions', '/models/new', '/welcome'],
    'main input, main h2',
  ),
  ...rows(['/account/tokens', '/models', '/data/labels', '/data/stores', '/rules', '/rules/new'], 'main h2'),
  ...rows(['/log', '/alarms'], 'main .search'),
  ...rows(['/reports'], '.report-about'),
  ...rows(['/data/objects'], '.import input'),
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
  // There may be several.
  await page.locator('.skeleton').first().waitFor({ state: 'detached' });
}

export async function logIn(page: Page, user: { login: string; password: string }): Promise<void> {
  await page.getByLabel('Login').fill(user.login);
  await page.getByLabel('Password').fill(user.password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.locator('.frame').waitFor();
}

const KEY_PAUSE_MS = 300;

/** Types into the search as people do. */
export async function typeSlowly(page: Page, text: string): Promise<void> {
  await page.getByRole('searchbox').focus();
  await page.keyboard.type(text, { delay: KEY_PAUSE_MS });
}

/** The built console, beside the folder in which npm runs scripts and tests. */
export const CONSOLE_FOLDER = 'dist/console';

/** The scripts that a page has loaded. */
export async function scriptsOf(page: Page): Promise<string[]> {
  const loaded = (await page.evaluate('performance.getEntriesByType("resource").map(({ name }) => name)')) as string[];
  return [...new Set(loaded.filter((url) => url.endsWith('.js')).map((url) => url.split('/').at(-1) as string))];
}

/** The size of files as browsers receive them over plain HTTP. */
export const gzipBytesOf = (names: readonly string[]): number =>
  names.reduce((bytes, name) => bytes + readFileSync(`${CONSOLE_FOLDER}/${name}.gz`).length, 0);
