/** Saved views of the first page: saved by a name, opened from the menu and with Ctrl-K, shared with a group. */
import { beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import type { Page, Request } from 'playwright-core';
import { OPERATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../../src/core/builtin.js';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { entityOf } from '../../support/answers.js';
import { animationsEnd, findAxe } from '../../support/browser/axe.js';
import { effectsRun, useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { createPerson } from '../../support/callers.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);
let north: string;

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

beforeAll(async () => {
  north = await create('groups', { name: 'North' });
  for (const [name, group, temperature] of [
    ['Alpha', north, 5],
    ['Beta', north, 21],
    ['Gamma', undefined, 1],
  ] as const) {
    await create('objects', { id: name, name, ...(group && { group }), labels: ['cold'] });
    await service.admin('POST', `objects/${name}/packets`, { temperature });
  }
});

const names = (page: Page): Promise<string[]> => page.locator('.object-rows td button').allTextContents();
const openMenu = (page: Page) => page.getByRole('button', { name: 'Views', exact: true }).click();

async function save(page: Page, name: string, group?: string): Promise<void> {
  await openMenu(page);
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill(name);
  if (group !== undefined) await dialog.getByLabel('For').selectOption({ label: group });
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
}

test('saves what is shown, and shows it again from the menu and with Ctrl-K', async () => {
  const person = await createPerson(service, { role: OPERATOR_ROLE_ID, group: north });
  const page = await browser.openAs('/?view=table&columns=name,.temperature&by=-.temperature&label=cold', person);
  await eventually(async () => expect(await names(page)).toEqual(['Beta', 'Alpha']));
  await save(page, 'Warm first');
  await page.goto(service.url);
  await page.locator('.row', { hasText: 'Alpha' }).waitFor();
  await openMenu(page);
  await page.getByRole('dialog').getByRole('link', { name: 'Warm first' }).click();
  await eventually(async () => expect(await names(page)).toEqual(['Beta', 'Alpha']));
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.goto(`${service.url}/log`);
  await page.getByRole('searchbox').waitFor();
  // From then on the page follows keys.
  await effectsRun(page);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('warm');
  await page.getByRole('option', { name: 'Warm first' }).waitFor();
  await page.keyboard.press('Enter');
  await eventually(async () => expect(await names(page)).toEqual(['Beta', 'Alpha']));
});

test('offers the views of a user whose colleagues have saved thousands for themselves', async () => {
  const person = await createPerson(service, { role: OPERATOR_ROLE_ID, group: north });
  const colleague = await createPerson(service, { role: OPERATOR_ROLE_ID, group: north });
  const ours = { name: 'Ours', query: 'show=online', shared: true };
  for (const view of [{ name: 'Theirs', query: '' }, ours]) entityOf(await colleague.call('POST', 'views', view));
  const views = service.client.db().collection('views');
  const theirs = await views.findOne({ name: 'Theirs' });
  const copies = Array.from({ length: 2_000 }, (_, index) => ({
    ...theirs,
    _id: new ObjectId(),
    name: `Theirs ${index}`,
  }));
  await views.insertMany(copies);
  entityOf(await person.call('POST', 'views', { name: 'Own', query: 'show=offline' }));
  await views.insertMany(copies.map((copy) => ({ ...copy, _id: new ObjectId() })));
  const page = await browser.openAs('/', person);
  await openMenu(page);
  const offered = page.getByRole('dialog').getByRole('link').locator('span:first-child');
  await eventually(async () => expect(await offered.allTextContents()).toEqual(['Ours', 'Own']));
  await views.deleteMany({ name: /^(Theirs|Ours|Own)/ });
});

test('replaces a view of the same name, and removes it', async () => {
  const person = await createPerson(service, { role: OPERATOR_ROLE_ID, group: north });
  const page = await browser.openAs('/?show=online', person);
  await page.locator('.row', { hasText: 'Alpha' }).waitFor();
  await save(page, 'Mine');
  await page.goto(`${service.url}/?show=offline`);
  await page.getByRole('button', { name: 'Views', exact: true }).waitFor();
  await openMenu(page);
  await page.getByRole('dialog').getByRole('link', { name: 'Mine' }).waitFor();
  await page.keyboard.press('Escape');
  await save(page, 'Mine');
  const stored = async () =>
    (await person.call('GET', 'views?where.name=Mine')).body.map(({ query }: { query: string }) => query);
  await eventually(async () => expect(await stored()).toEqual(['show=offline']));
  await openMenu(page);
  await page.getByRole('button', { name: 'Remove Mine' }).click();
  await page.getByRole('link', { name: 'Mine' }).waitFor({ state: 'detached' });
  expect(await stored()).toEqual([]);
});

test('replaces a view of the same name before the menu has read it', async () => {
  const person = await createPerson(service, { role: OPERATOR_ROLE_ID, group: north });
  entityOf(await person.call('POST', 'views', { name: 'Early', query: 'show=online' }));
  const page = await browser.openAs('/?show=offline', person);
  const [held, release] = createDeferred<void>();
  await page.route(/\/api\/v1\/views\?/, async (route) => {
    await held;
    await route.continue();
  });
  await openMenu(page);
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('Early');
  await dialog.getByRole('button', { name: 'Save' }).click();
  release();
  await dialog.waitFor({ state: 'detached' });
  const { body } = await person.call('GET', 'views?where.name=Early');
  expect(body.map(({ query }: { query: string }) => query)).toEqual(['show=offline']);
});

test('offers a view that was saved while an earlier list of them was on its way', async () => {
  const person = await createPerson(service, { role: OPERATOR_ROLE_ID, group: north });
  const page = await browser.openAs('/?show=offline', person);
  const [held, release] = createDeferred<void>();
  const early: Request[] = [];
  const ended = new Set<Request>();
  for (const event of ['requestfinished', 'requestfailed'] as const)
    page.on(event as 'requestfinished', (request) => ended.add(request));
  await page.route(/\/api\/v1\/views\?/, async (route) => {
    // One's own views, and those that are shared.
    if (early.length === 2) return route.continue();
    early.push(route.request());
    await held;
    return route.fulfill({ json: [] });
  });
  await openMenu(page);
  await until(() => early.length === 2, 'the first list is asked for');
  await page.keyboard.press('Escape');
  await save(page, 'Late');
  await openMenu(page);
  const late = page.getByRole('dialog').getByRole('link', { name: 'Late' });
  await late.waitFor();
  release();
  await until(() => early.every((request) => ended.has(request)), 'the first list has arrived');
  await effectsRun(page);
  await eventually(async () => expect(await late.count()).toBe(1));
});

test('offers the views of a group to its members, who see no more objects by it and cannot save any', async () => {
  const admin = await browser.openAs('/?view=table&columns=name&label=cold&by=name');
  await eventually(async () => expect(await names(admin)).toEqual(['Alpha', 'Beta', 'Gamma']));
  await save(admin, 'Cold ones', 'North');
  await save(admin, 'Only mine');
  const viewer = await createPerson(service, { role: VIEWER_ROLE_ID, group: north });
  const page = await browser.openAs('/', viewer);
  await page.getByRole('button', { name: 'Views', exact: true }).waitFor();
  await openMenu(page);
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('link', { name: 'Cold ones' }).waitFor();
  expect(await dialog.getByRole('link', { name: 'Only mine' }).count()).toBe(0);
  expect(await dialog.getByRole('button', { name: 'Save' }).count()).toBe(0);
  expect(await dialog.getByRole('button', { name: 'Remove' }).count()).toBe(0);
  await dialog.getByRole('link', { name: 'Cold ones' }).click();
  await eventually(async () => expect(await names(page)).toEqual(['Alpha', 'Beta']));
});

test('has a menu without barriers', async () => {
  const page = await browser.openAs('/?view=tiles');
  await page.locator('.tile').first().waitFor();
  await save(page, 'Sensors');
  await openMenu(page);
  await page.getByRole('dialog').getByRole('link', { name: 'Sensors' }).waitFor();
  await page.evaluate(await findAxe());
  await animationsEnd(page);
  const found = (await page.evaluate(`axe.run(document, { resultTypes: ['violations'] })`)) as {
    violations: unknown[];
  };
  expect(found.violations).toEqual([]);
});
