/** What needs attention, on the first page: the most urgent open alarms, which are acknowledged there. */
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { entityOf } from '../../support/answers.js';
import { effectsRun, useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);
const objects = new Map<string, string>();

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

const send = async (id: string, packet: object): Promise<unknown> =>
  entityOf(await service.admin('POST', `objects/${id}/packets`, packet));

const openAlarms = async (): Promise<{ _id: string; object: string; acknowledged?: unknown }[]> =>
  (await service.admin('GET', 'alarms?where.status=raised')).body;

beforeAll(async () => {
  for (const [id, name] of [
    ['store', 'Cold store'],
    ['van', 'Van 1'],
    ['truck', 'Truck 2'],
  ] as const)
    objects.set(id, await create('objects', { id, name }));
  const rule = (name: string, severity: string, param: string, value: number) =>
    create('rules', { name, severity, when: { param, op: '>', value } });
  await rule('Too warm', 'critical', 'temperature', 8);
  await rule('Too fast', 'warning', 'speed', 90);
  await rule('Door', 'info', 'door', 0);
});

const items = (page: Page) => page.locator('.attention li');
const named = (page: Page, name: string) => items(page).filter({ hasText: name });

async function expectItems(page: Page, names: readonly string[]): Promise<void> {
  const found = page.locator('.attention-name');
  await until(async () => (await found.allTextContents()).join() === names.join(), `the alarms ${names.join()}`);
}

test('appears with the first alarm, orders them live, and goes with the last one', async () => {
  const page = await browser.openAs('/');
  await page.locator('.status.live').waitFor();
  await page.locator('.row', { hasText: 'Van 1' }).waitFor();
  expect(await page.locator('.attention').count()).toBe(0);
  await send('van', { speed: 95, lat: 48.1, lon: 11.5 });
  await expectItems(page, ['Too fast']);
  await named(page, 'Too fast').getByText('Van 1 · speed 95 km/h').waitFor();
  await named(page, 'Too fast').getByText('1 min', { exact: true }).waitFor();
  await page
    .locator('.row', { hasText: 'Van 1' })
    .getByText(/^Too fast since \d\d:\d\d$/)
    .waitFor();
  await send('truck', { door: 1 });
  await send('store', { temperature: 9.5 });
  await expectItems(page, ['Too warm', 'Too fast', 'Door']);
  await eventually(async () =>
    expect(await page.locator('.attention summary').textContent()).toMatch(/Needs attention\s+3/),
  );
  await send('store', { temperature: 4 });
  await expectItems(page, ['Too fast', 'Door']);
  await send('van', { speed: 10 });
  await send('truck', { door: 0 });
  await page.locator('.attention').waitFor({ state: 'detached' });
});

test('acknowledges an alarm, which then comes after those that wait, and says who did it', async () => {
  await send('store', { temperature: 12 });
  await send('van', { speed: 120 });
  await until(async () => (await openAlarms()).length === 2, 'two open alarms');
  const page = await browser.openAs('/');
  await expectItems(page, ['Too warm', 'Too fast']);
  await named(page, 'Too warm').getByText('Cold store · temperature 12 °C').waitFor();
  await page.getByRole('button', { name: 'Acknowledge Too warm, Cold store' }).click();
  await expectItems(page, ['Too fast', 'Too warm']);
  await named(page, 'Too warm').getByText('admin').waitFor();
  const stored = await openAlarms();
  expect(stored.filter(({ acknowledged }) => acknowledged).map(({ object }) => object)).toEqual([objects.get('store')]);
  await page.locator('.nav .badge', { hasText: '1' }).waitFor();
  // The object of an alarm is shown, with a link to all about it.
  await named(page, 'Too fast').locator('.attention-open').click();
  await page.locator('.card h2', { hasText: 'Van 1' }).waitFor();
  await page.locator('.card-alarm').click();
  await page.getByRole('heading', { name: 'Too fast' }).waitFor();
});

test('acknowledges two alarms at once, and leaves the focus where somebody puts it meanwhile', async () => {
  for (const id of objects.keys()) await send(id, { temperature: 0, speed: 0, door: 0 });
  await until(async () => (await openAlarms()).length === 0, 'no open alarm');
  await send('store', { temperature: 12 });
  await send('van', { speed: 120 });
  const page = await browser.openAs('/');
  await expectItems(page, ['Too warm', 'Too fast']);
  const [held, release] = createDeferred<void>();
  let count = 0;
  await page.route(/acknowledge$/, async (route) => {
    count++;
    await held;
    await route.continue();
  });
  await page.getByRole('button', { name: 'Acknowledge Too fast' }).click();
  await page.getByRole('button', { name: 'Acknowledge Too warm' }).click();
  await until(() => count === 2, 'both requests');
  await page.getByRole('searchbox').focus();
  let answers = 0;
  page.on('requestfinished', (request) => {
    if (request.url().endsWith('/acknowledge')) answers++;
  });
  release();
  await until(() => answers === 2, 'both answers');
  await page.locator('.attention-act').first().waitFor({ state: 'detached' });
  await effectsRun(page);
  expect(await page.evaluate('document.activeElement.type')).toBe('search');
});

test('is used with the keyboard: arrows, a, and Enter', async () => {
  for (const id of objects.keys()) await send(id, { temperature: 0, speed: 0, door: 0 });
  await until(async () => (await openAlarms()).length === 0, 'no open alarm');
  await send('store', { temperature: 12 });
  await send('van', { speed: 120 });
  await send('truck', { door: 1 });
  const page = await browser.openAs('/');
  await expectItems(page, ['Too warm', 'Too fast', 'Door']);
  await effectsRun(page);
  const focused = () => page.evaluate<string>('document.activeElement.textContent');
  await items(page).first().locator('.attention-open').focus();
  await page.keyboard.press('ArrowDown');
  expect(await focused()).toMatch(/^Too fast/);
  await page.keyboard.press('a');
  await expectItems(page, ['Too warm', 'Door', 'Too fast']);
  await until(async () => (await focused()).startsWith('Door'), 'the focus on the alarm in its place');
  await page.keyboard.press('ArrowUp');
  expect(await focused()).toMatch(/^Too warm/);
  await page.keyboard.press('Enter');
  await page.locator('.card h2', { hasText: 'Cold store' }).waitFor();
  await page.locator('.attention summary').focus();
  await page.keyboard.press('Enter');
  await items(page).first().waitFor({ state: 'hidden' });
  await page.reload();
  await page.locator('.attention summary').waitFor();
  await items(page).first().waitFor({ state: 'hidden' });
});

test('says what went wrong when an alarm cannot be acknowledged', async () => {
  const page = await browser.openAs('/');
  browser.expectErrors(/503/);
  await page.locator('.attention-act').first().waitFor();
  await page.route(/acknowledge$/, (route) => route.fulfill({ status: 503, json: { success: false } }));
  await page.locator('.attention-act').first().click();
  await page.locator('.attention').getByRole('alert').waitFor();
  expect((await openAlarms()).filter(({ acknowledged }) => acknowledged)).toHaveLength(1);
});

test('shows those who may only read the alarms, and no button', async () => {
  const page = await browser.openAs('/', await createUser(service, 'viewer'));
  await named(page, 'Too warm').getByText('Not acknowledged').waitFor();
  expect(await page.locator('.attention-act').count()).toBe(0);
});

test('shows at most twenty, and leads to all of them', async () => {
  await create('rules', { name: 'Many', severity: 'critical', when: { param: 'many', op: '>', value: 0 } });
  for (let index = 0; index < 22; index++) {
    await create('objects', { id: `many-${index}`, name: `Many ${index}` });
    await send(`many-${index}`, { many: 1 });
  }
  await until(async () => (await openAlarms()).length === 25, '25 open alarms');
  const page = await browser.openAs('/');
  const link = page.getByRole('link', { name: 'All 25 open alarms' });
  await link.waitFor({ state: 'attached' });
  await eventually(async () => expect(await page.locator('.attention-open').count()).toBe(20));
  await link.click();
  await page.getByRole('heading', { name: 'Alarms' }).waitFor();
});
