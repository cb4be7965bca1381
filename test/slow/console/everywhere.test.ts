/** What must hold on every page: a hostile name stays text, a phone is wide enough, dialogs work with the keyboard. */
import { beforeAll, expect, test } from '@jest/globals';
import { entityOf } from '../../support/answers.js';
import { useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service);
const NAME = '<img src=x onerror="document.title=1"><script>document.title=1</script>';
let [object, model, user]: string[] = [];

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

beforeAll(async () => {
  const tree = [
    { type: 'argument', id: 'note', name: NAME, unit: '<b>' },
    { type: 'action', id: 'stop', name: NAME },
  ];
  model = await create('models', { name: NAME, data: { children: tree } });
  object = await create('objects', { id: 'hostile', name: NAME, status: NAME, model, labels: [NAME] });
  await service.admin('POST', `objects/${object}/packets`, { lat: 48, lon: 11, note: NAME, speed: 1 });
  await service.admin('POST', `objects/${object}/commands/stop`, { why: NAME });
  for (const store of ['geofences', 'groups', 'labels']) await create(store, { name: NAME });
  await create('roles', { name: NAME, credentials: ['GET /objects'] });
  await create('tokens', { name: NAME });
  user = await create('users', { login: 'hostile', name: NAME, password: 'correct horse' });
});

/** Every page, and whether the hostile name is on it. */
const pages = (): readonly (readonly [string, boolean])[] => [
  ['/', true],
  [`/?object=${object}`, true],
  ['/welcome', false],
  ['/log', false],
  ...['live', 'history', 'commands', 'settings'].map((tab) => [`/objects/${object}/${tab}`, true] as const),
  ['/models', true],
  [`/models/${model}`, true],
  ['/geofences', true],
  ['/data/labels', true],
  ['/data/stores', false],
  ['/access/users', true],
  ['/access/groups', true],
  ['/access/roles', true],
  ['/access/tokens', true],
  ['/access/audit', false],
  [`/access/rights?user=${user}`, false],
  ['/account/profile', false],
  ['/account/tokens', true],
  ['/account/sessions', false],
];

test('a hostile name stays text on every page', async () => {
  const page = await browser.openAs('/');
  for (const [path, isThere] of pages()) {
    await page.goto(service.url + path);
    await page.locator('main h1').first().waitFor({ state: 'attached' });
    await page.locator('.skeleton').waitFor({ state: 'detached' });
    if (isThere) await page.getByText(NAME).first().waitFor({ state: 'attached' });
    expect([path, await page.locator('img, main script').count()]).toEqual([path, 0]);
    expect([path, await page.title()]).not.toEqual([path, '1']);
  }
}, 240_000);

test('speaks English in a browser whose system names no language', async () => {
  // As Chromium does where LANG is C.
  const page = await browser.openAs('/', ADMIN, { locale: 'en-US@posix' });
  await page.locator('.row').first().waitFor();
  await page.goto(`${service.url}/account/sessions`);
  await page.getByText('logged in').first().waitFor();
});

test('no page is wider than a phone', async () => {
  const page = await browser.openAs('/', ADMIN, browser.phone);
  for (const [path] of pages()) {
    await page.goto(service.url + path);
    await page.locator('main h1').first().waitFor({ state: 'attached' });
    await page.locator('.skeleton').waitFor({ state: 'detached' });
    // A browser makes the window wider for a page that is.
    const width = await page.evaluate('Math.max(document.documentElement.scrollWidth, innerWidth)');
    expect([path, width]).toEqual([path, browser.phone.viewport?.width]);
  }
}, 240_000);

test('every dialog is opened, answered and left with the keyboard, and gives the focus back', async () => {
  const page = await browser.openAs('/account/tokens');
  const opener = page.getByRole('button', { name: 'New token' }).first();
  await opener.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  expect(await page.evaluate('document.activeElement.closest("dialog") !== null')).toBe(true);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(await opener.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
});
