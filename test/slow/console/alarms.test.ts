/** The alarms in the console: the list that is live, keys, acknowledging, the badge on every page. */
import { beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import type { Page } from 'playwright-core';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { entityOf } from '../../support/answers.js';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { untilNotice } from '../../support/browser/notices.js';
import { createUser } from '../../support/browser/users.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
const objects = new Map<string, string>();

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

const send = async (id: string, packet: object): Promise<unknown> =>
  entityOf(await service.admin('POST', `objects/${id}/packets`, packet));

const openAlarms = async (): Promise<Record<string, unknown>[]> =>
  (await service.admin('GET', 'alarms?where.status=raised')).body;

const countOpen = (count: number): Promise<void> =>
  until(async () => (await openAlarms()).length === count, `${count} open alarms`);

beforeAll(async () => {
  for (const [id, name] of [
    ['cold-1', 'Cold store 1'],
    ['cold-2', 'Cold store 2'],
    ['truck-1', 'Truck 1'],
  ] as const)
    objects.set(id, await create('objects', { id, name }));
  await create('rules', {
    name: 'Too warm',
    severity: 'critical',
    select: { objects: ['cold-1', 'cold-2'] },
    when: { param: 'temperature', op: '>', value: 8 },
  });
  await create('rules', {
    name: 'Too fast',
    select: { objects: ['truck-1'] },
    when: { param: 'speed', op: '>', value: 90 },
  });
  await create('rules', { name: 'Fuel is low', severity: 'info', when: { param: 'fuel', op: '<', value: 10 } });
});

const rowsOf = (page: Page): Promise<string[]> => page.locator('.alarm-row .alarm-name').allTextContents();
const badge = (page: Page) => page.locator('.nav .badge');

/** Holds the answers of the requests to this address, which the service has carried out, until it is called. */
async function holdAnswers(page: Page, address: RegExp): Promise<() => void> {
  const [held, release] = createDeferred<void>();
  await page.route(address, async (route) => {
    const response = await route.fetch();
    await held;
    await route.fulfill({ response });
  });
  return release;
}

async function expectRows(page: Page, names: readonly string[]): Promise<void> {
  await until(async () => (await rowsOf(page)).join() === names.join(), `the rows ${names.join()}`);
}

test('shows alarms as they are raised, the worst first, counts them on every page, and drops those that end', async () => {
  const page = await browser.openAs('/log');
  await page.locator('.status.live').waitFor();
  expect(await badge(page).count()).toBe(0);
  await page.getByRole('link', { name: 'Alarms' }).click();
  await page.getByRole('heading', { name: 'No alarms' }).waitFor();
  await send('truck-1', { speed: 95, lat: 48.1, lon: 11.5 });
  await expectRows(page, ['Too fast']);
  await send('truck-1', { speed: 95, fuel: 4 });
  await send('cold-1', { temperature: 9.5 });
  await expectRows(page, ['Too warm', 'Too fast', 'Fuel is low']);
  await eventually(async () =>
    expect(await page.locator('.alarm-row').first().getByRole('img').getAttribute('aria-label')).toBe('Critical'),
  );
  await eventually(async () =>
    expect(await page.locator('.alarm-row').first().locator('.alarm-values').textContent()).toBe('temperature 9.5 °C'),
  );
  await page.locator('.badge', { hasText: '3' }).waitFor();
  await until(async () => (await page.title()).startsWith('(3) Alarms'), 'the count in the title');
  await page.goto(`${service.url}/account/profile`);
  await page.locator('.badge', { hasText: '3' }).waitFor();
  await send('cold-1', { temperature: 5 });
  await page.locator('.badge', { hasText: '2' }).waitFor();
  await send('truck-1', { speed: 20, fuel: 80 });
  await badge(page).waitFor({ state: 'detached' });
  await until(async () => !(await page.title()).startsWith('('), 'the title without a count');
});

test('says why an alarm was raised and what happened, acknowledges it with a note, and clears it', async () => {
  await send('truck-1', { speed: 120, lat: 48.1, lon: 11.5 });
  await countOpen(1);
  const page = await browser.openAs('/alarms');
  await page.locator('.alarm-open').click();
  const detail = page.getByRole('complementary', { name: 'Alarm' });
  await detail.getByText('speed > 90').waitFor();
  await detail.getByText('48.10000, 11.50000').waitFor();
  await detail.getByLabel('Note').fill('Driver called');
  await detail.getByRole('button', { name: 'Acknowledge with this note' }).click();
  await detail.getByText('Acknowledged by admin').waitFor();
  await detail.getByText('Driver called').waitFor();
  await badge(page).waitFor({ state: 'detached' });
  expect((await openAlarms())[0]).toMatchObject({ acknowledged: { note: 'Driver called' } });
  await detail.getByLabel('Note').fill('Slows down');
  // The event of the acknowledgement may come before its answer: one piece of work at a time.
  await detail.getByRole('button', { name: 'Add note' }).and(page.locator('[aria-busy=false]')).click();
  await detail.locator('.step-note', { hasText: 'Slows down' }).waitFor();
  // Whoever receives the address sees the same.
  await page.goto(page.url());
  await detail.getByText('Slows down').waitFor();
  await detail.getByRole('button', { name: 'Clear' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Clear' }).click();
  await detail.getByText('Cleared by admin').waitFor();
  await page.getByRole('heading', { name: 'No alarms' }).waitFor();
  await page.getByRole('button', { name: 'Cleared' }).click();
  await page.locator('.alarm-row', { hasText: 'Cleared' }).first().waitFor();
  await send('truck-1', { speed: 20 });
});

test('keeps the note that is typed before the answer to the one before has come', async () => {
  await send('truck-1', { speed: 120 });
  await countOpen(1);
  const page = await browser.openAs('/alarms');
  const release = await holdAnswers(page, /\/acknowledge$/);
  await page.locator('.alarm-open').click();
  const detail = page.getByRole('complementary', { name: 'Alarm' });
  const note = detail.getByLabel('Note');
  await note.fill('Driver called');
  await detail.getByRole('button', { name: 'Acknowledge with this note' }).click();
  // Its event is there, its answer is not.
  await detail.getByText('Acknowledged by admin').waitFor();
  await note.fill('Slows down');
  release();
  await detail.locator('button[aria-busy=false]', { hasText: 'Add note' }).click();
  await detail.locator('.step-note', { hasText: 'Slows down' }).waitFor();
  await until(async () => (await note.inputValue()) === '', 'the note is empty when it is stored');
  await send('truck-1', { speed: 20 });
  await countOpen(0);
});

test('is used with the keys alone', async () => {
  await send('cold-1', { temperature: 9 });
  await send('cold-2', { temperature: 10 });
  await send('truck-1', { speed: 99 });
  await countOpen(3);
  const page = await browser.openAs('/alarms');
  await expectRows(page, ['Too warm', 'Too warm', 'Too fast']);
  await effectsRun(page);
  await page.keyboard.press('ArrowDown');
  await page.locator('.alarm-row').nth(0).locator('[aria-pressed=true]').waitFor();
  await page.keyboard.press('ArrowDown');
  await page.locator('.alarm-row').nth(1).locator('[aria-pressed=true]').waitFor();
  await page.keyboard.press('ArrowUp');
  await page.locator('.alarm-row').nth(0).locator('[aria-pressed=true]:focus').waitFor();
  await page.locator('.alarm-detail textarea').waitFor();
  await page.keyboard.press('n');
  await page.keyboard.type('an apple');
  await eventually(async () => expect(await page.locator('.alarm-detail textarea').inputValue()).toBe('an apple'));
  await page.keyboard.press('Escape');
  await page.locator('.alarm-row').nth(0).locator('[aria-pressed=true]:focus').waitFor();
  await page.keyboard.press('a');
  await page.locator('.badge', { hasText: '2' }).waitFor();
  // The next one that waits is there, and the acknowledged one below.
  await page.keyboard.press('a');
  await page.locator('.badge', { hasText: '1' }).waitFor();
  await expectRows(page, ['Too fast', 'Too warm', 'Too warm']);
  await page.keyboard.press('Escape');
  await page.locator('.alarm-detail').waitFor({ state: 'detached' });
  const waiting = (await openAlarms()).filter(({ acknowledged }) => acknowledged === null);
  expect(waiting.map(({ name }) => name)).toEqual(['Too fast']);
  await send('cold-1', { temperature: 2 });
  await send('cold-2', { temperature: 2 });
  await send('truck-1', { speed: 9 });
  await countOpen(0);
});

test('acknowledges the next alarm with its key, also before the answer for the one before has come', async () => {
  await send('cold-1', { temperature: 9 });
  await send('cold-2', { temperature: 10 });
  await countOpen(2);
  const page = await browser.openAs('/alarms');
  const release = await holdAnswers(page, /\/acknowledge$/);
  await expectRows(page, ['Too warm', 'Too warm']);
  await effectsRun(page);
  await page.keyboard.press('ArrowDown');
  await page.locator('.alarm-row').nth(0).locator('[aria-pressed=true]').waitFor();
  await page.keyboard.press('a');
  await page.locator('.badge', { hasText: '1' }).waitFor();
  await page.locator('.waiting-row [aria-pressed=true]').waitFor();
  await page.keyboard.press('a');
  await until(async () => (await openAlarms()).every(({ acknowledged }) => acknowledged), 'both are acknowledged');
  release();
  await untilNotice(page, '1 alarm acknowledged');
  await send('cold-1', { temperature: 2 });
  await send('cold-2', { temperature: 2 });
  await countOpen(0);
});

test.each([
  ['its button', async (page: Page) => page.getByRole('button', { name: 'Acknowledge A', exact: true }).click()],
  ['its key', async (page: Page) => page.keyboard.press('a')],
])('leaves an alarm cleared that was before the answer to its acknowledgement with %s came', async (_, act) => {
  await send('cold-1', { temperature: 9 });
  await countOpen(1);
  const page = await browser.openAs('/alarms');
  const release = await holdAnswers(page, /\/acknowledge$/);
  await page.locator('.alarm-open').click();
  const detail = page.getByRole('complementary', { name: 'Alarm' });
  await detail.getByText('temperature > 8').waitFor();
  await act(page);
  await detail.getByText('Acknowledged by admin').waitFor();
  await send('cold-1', { temperature: 2 });
  await page.getByRole('heading', { name: 'No alarms' }).waitFor();
  // The page shows an event that comes after the answer together with what the answer has changed.
  const isAnswered = page.waitForEvent('requestfinished', (request) => request.url().endsWith('/acknowledge'));
  release();
  await isAnswered;
  await effectsRun(page);
  await send('truck-1', { speed: 99 });
  await page.locator('.alarm-row', { hasText: 'Too fast' }).waitFor();
  await expectRows(page, ['Too fast']);
  await send('truck-1', { speed: 9 });
  await countOpen(0);
});

test('finds alarms by their status, severity, rule and object, with all of it in the address', async () => {
  await send('cold-1', { temperature: 9 });
  await send('cold-2', { temperature: 10 });
  await send('truck-1', { speed: 99 });
  await countOpen(3);
  const page = await browser.openAs('/alarms');
  await expectRows(page, ['Too warm', 'Too warm', 'Too fast']);
  await page.getByLabel('Severity').selectOption('warning');
  await expectRows(page, ['Too fast']);
  await page.getByLabel('Severity').selectOption('');
  await page.getByLabel('Rule').selectOption({ label: 'Too warm' });
  await expectRows(page, ['Too warm', 'Too warm']);
  await page.getByLabel('Object', { exact: true }).selectOption({ label: 'Cold store 2' });
  await expectRows(page, ['Too warm']);
  await page.goto(page.url());
  await expectRows(page, ['Too warm']);
  await page.goto(`${service.url}/alarms`);
  await page.getByRole('searchbox').fill('truck');
  await expectRows(page, ['Too fast']);
  await page.getByRole('searchbox').fill('nothing of this kind');
  await page.getByRole('link', { name: 'Remove the filters' }).click();
  await expectRows(page, ['Too warm', 'Too warm', 'Too fast']);
});

test('acknowledges many at once, and shows ten thousand without freezing', async () => {
  const alarms = service.client.db().collection('alarms');
  const [model] = await alarms.find({ status: 'raised' }).limit(1).toArray();
  const many = Array.from({ length: 10_000 }, (_, index) => ({
    ...model,
    _id: new ObjectId(),
    name: `Alarm ${index}`,
    severity: 'info',
    raised: Date.now() - index * 1_000,
  }));
  await alarms.insertMany(many);
  const page = await browser.openAs('/alarms');
  await page.getByText(/^10,00\d alarms/).waitFor();
  expect(await page.locator('.alarm-row').count()).toBeLessThan(100);
  await page.getByRole('searchbox').fill('Alarm 12');
  await page.getByText(/^111 alarms ·/).waitFor();
  await page.getByLabel('Choose all that are not acknowledged').check();
  await page.getByText('111 chosen').waitFor();
  await page.locator('.alarms-selection').getByRole('button', { name: 'Acknowledge' }).click();
  await untilNotice(page, '111 alarms acknowledged');
  await page.getByText('0 not acknowledged').waitFor();
  expect(await alarms.countDocuments({ name: /^Alarm 12/, acknowledged: { $type: 'object' } })).toBe(111);
  await alarms.deleteMany({ name: /^Alarm / });
});

/** Runs in the page before its scripts: counts the tones. */
const COUNT_TONES = `(() => {
  globalThis.tones = 0;
  const { start } = OscillatorNode.prototype;
  OscillatorNode.prototype.start = function (...args) { globalThis.tones++; return start.apply(this, args); };
})()`;

test('sounds while an alarm waits if that is switched on, and stops when it is acknowledged', async () => {
  const page = await browser.openAs('/alarms');
  await page.addInitScript(COUNT_TONES);
  await page.goto(`${service.url}/alarms`);
  await page.locator('.alarm-row').first().waitFor();
  await page.locator('.status.live').waitFor();
  const tones = async (): Promise<number> => page.evaluate('globalThis.tones');
  expect(await tones()).toBe(0);
  await page.getByRole('button', { name: 'Sound is off' }).click();
  await until(async () => (await tones()) >= 4, 'two times two tones');
  await page.locator('[data-sounding]').waitFor();
  await page.getByLabel('Choose all that are not acknowledged').check();
  await page.locator('.alarms-selection').getByRole('button', { name: 'Acknowledge' }).click();
  await badge(page).waitFor({ state: 'detached' });
  await page.locator('[data-sounding]').waitFor({ state: 'detached' });
});

test('shows those who may only read what there is, and nothing to press', async () => {
  const page = await browser.openAs('/alarms', await createUser(service, 'viewer'));
  await page.locator('.alarm-open').first().click();
  const detail = page.getByRole('complementary', { name: 'Alarm' });
  await detail.getByText('temperature > 8').waitFor();
  await eventually(async () => expect(await detail.getByRole('button').allTextContents()).toEqual(['']));
  expect(await page.locator('.alarms-list input:enabled').count()).toBe(0);
});

test('shows the worst open alarm of an object in the list of objects, live', async () => {
  const page = await browser.openAs('/');
  const row = page.locator('.row', { hasText: 'Truck 1' });
  await row.waitFor();
  await page.locator('.status.live').waitFor();
  await send('truck-1', { speed: 130, fuel: 3 });
  await row.getByRole('img', { name: 'Warning' }).waitFor();
  await send('truck-1', { speed: 10, fuel: 3 });
  await row.getByRole('img', { name: 'Info' }).waitFor();
  await send('truck-1', { speed: 10, fuel: 90 });
  await row.getByRole('img').waitFor({ state: 'detached' });
});

test('leads from an object to its alarms, also those that were cleared', async () => {
  const page = await browser.openAs(`/objects/${objects.get('truck-1')}/live`);
  await page.locator('.object-head').getByRole('link', { name: 'Alarms' }).click();
  await page.locator('.alarm-row', { hasText: 'Cleared' }).first().waitFor();
  await eventually(async () =>
    expect(new Set(await page.locator('.alarm-object').allTextContents())).toEqual(new Set(['Truck 1'])),
  );
});
