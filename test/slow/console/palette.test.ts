/** Ctrl-K: objects, pages and actions from everywhere, as far as the role permits them. */
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

beforeAll(async () => {
  for (const name of ['Crane', 'Truck 1', 'Truck 2', 'Old truck'])
    await service.admin('POST', 'objects', { id: name.toLowerCase().replace(' ', '-'), name });
});

const field = (page: Page) => page.getByRole('combobox', { name: 'Go to' });
const options = (page: Page) => page.getByRole('option');
const chosen = (page: Page) => page.getByRole('option', { selected: true });

/** The names of what is found. */
const texts = (page: Page): Promise<string[]> => page.locator('.palette-text:not(.quiet)').allTextContents();

async function open(page: Page): Promise<void> {
  await page.locator('#main').waitFor();
  // From then on the page follows keys.
  await effectsRun(page);
  await page.keyboard.press('Control+k');
  await field(page).waitFor();
  await eventually(async () => expect(await field(page).and(page.locator(':focus')).count()).toBe(1));
}

test('opens an object from another page with the keyboard alone', async () => {
  const page = await browser.openAs('/log');
  await open(page);
  await page.keyboard.type('TRUCK');
  await eventually(async () => expect(await texts(page)).toEqual(['Truck 1', 'Truck 2', 'Old truck']));
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await eventually(async () => expect(await chosen(page).textContent()).toContain('Old truck'));
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  await eventually(async () => expect(await chosen(page).textContent()).toContain('Truck 2'));
  await page.keyboard.press('Enter');
  await page.locator('.card h2', { hasText: 'Truck 2' }).waitFor();
  expect(await field(page).count()).toBe(0);
});

test('offers what is done with the only object that is found', async () => {
  const page = await browser.openAs('/account/profile');
  await open(page);
  await page.keyboard.type('cran');
  await eventually(async () =>
    expect(await texts(page)).toEqual(['Crane', 'Open Crane', 'History of Crane', 'Send a command to Crane']),
  );
  await options(page).filter({ hasText: 'Send a command' }).click();
  await page.waitForURL(/\/objects\/[0-9a-f]{24}\/commands$/);
});

test('opens pages, says when nothing is found, and leaves the page as it was with Esc', async () => {
  const page = await browser.openAs('/alarms');
  await open(page);
  await page.keyboard.type('geofen');
  await eventually(async () => expect(await texts(page)).toEqual(['Geofences']));
  await field(page).fill('no such thing');
  await page.getByText('Nothing found for “no such thing”.').waitFor();
  await page.keyboard.press('Enter');
  await field(page).waitFor();
  await page.keyboard.press('Escape');
  await field(page).waitFor({ state: 'detached' });
  expect(new URL(page.url()).pathname).toBe('/alarms');
  await open(page);
  await field(page).fill('geofen');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/geofences$/);
});

test('gives the focus back with Esc, and to the page that is opened', async () => {
  const page = await browser.openAs('/log');
  const search = page.locator('.search input');
  await search.focus();
  await open(page);
  await page.keyboard.press('Escape');
  await field(page).waitFor({ state: 'detached' });
  await search.and(page.locator(':focus')).waitFor();
  await open(page);
  await page.keyboard.type('Reports');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/reports$/);
  await page.locator('#main:focus').waitFor();
});

test('tells how many there are, and offers every section of administration', async () => {
  const page = await browser.openAs('/log');
  await open(page);
  const status = page.getByRole('dialog').getByRole('status');
  for (const [name, path] of [
    ['Security events', 'audit'],
    ['Settings', 'settings'],
    ['Permissions', 'rights'],
  ] as const) {
    if (path !== 'audit') await open(page);
    await field(page).fill(name);
    await eventually(async () => expect(await texts(page)).toEqual([name]));
    await status.getByText('1 result', { exact: true }).waitFor({ state: 'attached' });
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`/access/${path}$`));
  }
});

test('stays away from an open dialog', async () => {
  const page = await browser.openAs('/data/labels');
  await page.getByRole('button', { name: 'New', exact: true }).first().click();
  await page.getByRole('dialog').getByRole('textbox').first().waitFor();
  await page.keyboard.press('Control+k');
  await effectsRun(page);
  await eventually(async () => expect(await page.getByRole('dialog').count()).toBe(1));
});

test('offers only what the role permits', async () => {
  const page = await browser.openAs('/', await createUser(service, 'viewer'));
  await open(page);
  await eventually(async () => expect((await texts(page))[0]).toBe('Map'));
  expect(await texts(page)).not.toContain('Add an object');
  await page.keyboard.type('cran');
  await eventually(async () => expect(await texts(page)).toEqual(['Crane', 'Open Crane', 'History of Crane']));
});

test('speaks German', async () => {
  const page = await browser.openAs('/', undefined, { locale: 'de-DE' });
  await page.locator('#main').waitFor();
  await effectsRun(page);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Gehe zu' }).fill('hinzu');
  await page.getByRole('option', { name: /Objekt hinzufügen/ }).waitFor();
});
