/** The first page as a table of objects. */
import { readFile } from 'node:fs/promises';
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { entityOf } from '../../support/answers.js';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { storeFleet } from '../../support/fleet.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;
const send = (id: string, packet: object) => service.admin('POST', `objects/${id}/packets`, packet);

const names = (page: Page): Promise<string[]> => page.locator('.object-rows td button').allTextContents();
const row = (page: Page, name: string) => page.locator('.object-rows tbody tr', { hasText: name });
const expectNames = (page: Page, wanted: readonly string[]) =>
  eventually(async () => expect(await names(page)).toEqual(wanted));
const focused = (page: Page): Promise<string> => page.evaluate('document.activeElement.textContent');

beforeAll(async () => {
  const children = [{ type: 'argument', id: 'temperature', name: 'Air', unit: '°C', dataType: 'number' }];
  const model = await create('models', { name: 'Climate', data: { children } });
  for (const [name, temperature] of [
    ['Alpha', 5],
    ['Beta', 21.5],
    ['Gamma', -3],
    ['Silo 2', 7],
    ['Silo 10', 8],
  ] as const) {
    await create('objects', { id: name, name, model, labels: ['small', name === 'Beta' ? '=1+1' : 'x, "y"'] });
    await send(name, { temperature, mode: name === 'Beta' ? 'eco' : 'auto' });
  }
  await create('objects', { id: 'Zeta', name: 'Zeta', model, labels: ['small'] });
});

test('shows the parameters that objects send, with units, live, and orders by any column', async () => {
  const page = await browser.openAs('/?view=table&label=small&sort=name');
  await expectNames(page, ['Alpha', 'Beta', 'Gamma', 'Silo 2', 'Silo 10', 'Zeta']);
  await page.getByRole('button', { name: 'Air (°C)' }).click();
  await expectNames(page, ['Beta', 'Silo 10', 'Silo 2', 'Alpha', 'Gamma', 'Zeta']);
  await page.locator('th[aria-sort=descending]', { hasText: 'Air (°C)' }).waitFor();
  await send('Gamma', { temperature: 30, mode: 'auto' });
  await expectNames(page, ['Gamma', 'Beta', 'Silo 10', 'Silo 2', 'Alpha', 'Zeta']);
  await row(page, 'Gamma').getByText('30', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Air (°C)' }).click();
  // What has no value is last in both directions.
  await expectNames(page, ['Alpha', 'Silo 2', 'Silo 10', 'Beta', 'Gamma', 'Zeta']);
  await page.reload();
  await expectNames(page, ['Alpha', 'Silo 2', 'Silo 10', 'Beta', 'Gamma', 'Zeta']);
  await send('Gamma', { temperature: -3, mode: 'auto' });
});

test('shows the columns that somebody chooses', async () => {
  const page = await browser.openAs('/?view=table&label=small&columns=name,.mode,labels,model');
  await row(page, 'Beta').getByText('eco').waitFor();
  await row(page, 'Beta').getByText('Climate').waitFor();
  const titles = () => page.locator('.object-rows th').allTextContents();
  await eventually(async () => expect(await titles()).toEqual(['Name', 'mode', 'Labels', 'Model']));
  await page.getByRole('button', { name: 'Columns' }).click();
  await page.getByRole('dialog').getByLabel('Group').check();
  await page.getByRole('dialog').getByLabel('Labels').uncheck();
  await page.keyboard.press('Escape');
  await eventually(async () => expect(await titles()).toEqual(['Name', 'mode', 'Model', 'Group']));
  expect(new URL(page.url()).searchParams.get('columns')).toBe('name,.mode,model,group');
});

test('is used with the keyboard alone', async () => {
  const page = await browser.openAs('/?view=table&label=small&sort=name');
  await expectNames(page, ['Alpha', 'Beta', 'Gamma', 'Silo 2', 'Silo 10', 'Zeta']);
  await page.getByRole('searchbox').focus();
  await page.keyboard.press('ArrowDown');
  await eventually(async () => expect(await focused(page)).toBe('Alpha'));
  await page.keyboard.press('ArrowDown');
  await eventually(async () => expect(await focused(page)).toBe('Beta'));
  await page.keyboard.press('Enter');
  await page.locator('.card h2', { hasText: 'Beta' }).waitFor();
  await page.keyboard.press('End');
  await eventually(async () => expect(await focused(page)).toBe('Zeta'));
  await page.keyboard.press('Escape');
  await page.locator('.card').waitFor({ state: 'detached' });
  await page.keyboard.press('Home');
  await eventually(async () => expect(await focused(page)).toBe('Alpha'));
  await page.keyboard.press('Escape');
  await eventually(async () => expect(await page.locator('input[type=search]:focus').count()).toBe(1));
});

test('exports what it shows, in its order, for spreadsheets', async () => {
  const page = await browser.openAs('/?view=table&label=small&columns=name,.temperature,labels&by=-.temperature');
  await expectNames(page, ['Beta', 'Silo 10', 'Silo 2', 'Alpha', 'Gamma', 'Zeta']);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  const text = await readFile(await (await download).path(), 'utf8');
  expect(text).toBe(
    [
      '\uFEFFName,Air (°C),Labels',
      'Beta,21.5,"small, =1+1"',
      'Silo 10,8,"small, x, ""y"""',
      'Silo 2,7,"small, x, ""y"""',
      'Alpha,5,"small, x, ""y"""',
      'Gamma,-3,"small, x, ""y"""',
      'Zeta,,small',
      '',
    ].join('\r\n'),
  );
});

test('has only the rows in view, of 10,000 objects', async () => {
  await storeFleet(service.client.db(), 10_000, () => ({ labels: ['many'] }));
  const page = await browser.openAs('/?view=table&label=many&by=name');
  // A browser that others leave little of a core takes a minute for so many.
  await page.getByText('10,000 objects').waitFor({ timeout: 180_000 });
  await row(page, 'Device 0').first().waitFor();
  expect(await page.locator('.object-rows tbody tr').count()).toBeLessThan(100);
  await page.locator('.object-rows').evaluate((list) => list.scrollTo(0, list.scrollHeight));
  await row(page, 'Device 9999').waitFor();
  expect(await page.locator('.object-rows tbody tr').count()).toBeLessThan(100);
  await page.locator('.object-rows td button').last().focus();
  await page.keyboard.press('Home');
  await eventually(async () => expect(await focused(page)).toBe('Device 0'));
});
