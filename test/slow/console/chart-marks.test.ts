/** Alarms and thresholds of rules in the charts of an object. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const MINUTE_MS = 60_000;
const startMs = Math.floor(Date.now() / MINUTE_MS - 30) * MINUTE_MS;

async function create(store: string, body: object): Promise<string> {
  return (await service.admin('POST', store, body)).body._id;
}

/** Half an hour, in which it is too warm for ten minutes; and rules that do not concern the chart. */
async function addStore(id: string): Promise<string> {
  const _id = await create('objects', { id, name: id });
  const select = { objects: [id] };
  const when = { param: 'temperature', op: '>', value: 8 };
  await create('rules', { name: `Too warm ${id}`, severity: 'critical', select, when });
  await create('objects', { id: `other-${id}`, name: 'Other' });
  await create('rules', { name: `Of another ${id}`, select: { objects: [`other-${id}`] }, when });
  await create('rules', { name: `Switched off ${id}`, active: false, select, when });
  await create('rules', { name: `Silent ${id}`, severity: 'info', select, when: { silent: '20 days' } });
  for (let minute = 0; minute < 30; minute++) {
    const temperature = minute >= 10 && minute < 20 ? 9 : 5;
    await service.admin('POST', `objects/${id}/packets`, { time: startMs + minute * MINUTE_MS, temperature, speed: 1 });
  }
  await until(
    async () => (await service.admin('GET', `alarms?where.object=${_id}&where.status=cleared`)).body.length === 1,
    'an alarm that is over',
  );
  return _id;
}

/** Runs in the page: whether the first chart has pixels that are rather red, as thresholds and alarms are. */
const IS_MARKED = `(() => {
  const canvas = document.querySelector('.uplot canvas');
  if (canvas === null) return null;
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] > 200 && data[at] > 150 && data[at] > 2 * data[at + 1] && data[at] > 2 * data[at + 2]) return true;
  return false;
})()`;

const open = (id: string, user = ADMIN): Promise<Page> =>
  browser.openAs(`/objects/${id}/history?charts=temperature`, user);

test('marks the alarms of an object in its chart, with the threshold of the rule, and leads to both', async () => {
  const id = await addStore('marked');
  const page = await open(id);
  const thresholds = page.getByRole('list', { name: 'Thresholds of rules' });
  await thresholds.getByText('> 8 °C').waitFor();
  await eventually(async () =>
    expect(await thresholds.getByRole('link').allTextContents()).toEqual(['Too warm marked']),
  );
  await until(async () => (await page.evaluate(IS_MARKED)) === true, 'the marks');
  const alarms = page.locator('.interval-alarms');
  await alarms.getByRole('heading', { name: 'Alarms in this interval (1)' }).waitFor();
  await alarms.getByText('for 10 min').waitFor();
  await alarms.getByRole('img', { name: 'Critical' }).waitFor();
  await alarms.getByRole('link', { name: 'Too warm marked' }).click();
  await page.waitForURL(/\/alarms\/[0-9a-f]+$/);
  await page.goBack();
  await thresholds.getByRole('link').click();
  await page.waitForURL(/\/rules\/[0-9a-f]{24}$/);
});

test('shows neither alarms nor thresholds of other intervals and parameters', async () => {
  const id = await addStore('elsewhere');
  const interval = `from=${startMs}&to=${startMs + 5 * MINUTE_MS}`;
  const page = await browser.openAs(`/objects/${id}/history?${interval}&charts=speed`);
  await page.locator('.uplot').waitFor();
  await page.getByRole('button', { name: 'temperature' }).click();
  await page.getByRole('list', { name: 'Thresholds of rules' }).waitFor();
  expect(await page.locator('.interval-alarms').count()).toBe(0);
  await eventually(async () => expect(await page.getByRole('list', { name: 'Thresholds of rules' }).count()).toBe(1));
});

test('shows charts without marks, and no error, to a user who may read neither alarms nor rules', async () => {
  const id = await addStore('unmarked');
  await service.admin('POST', 'roles', {
    name: 'markless',
    credentials: ['', '/:id', '/:id/packets', '/:id/model', '/:id/series'].map((path) => `GET /objects${path}`),
  });
  const page = await open(id, await createUser(service, 'markless'));
  await page.getByRole('img', { name: 'temperature: 5 – 9 °C' }).waitFor();
  await page.locator('.uplot canvas').waitFor();
  expect(await page.locator('.chart-marks').count()).toBe(0);
  expect(await page.getByRole('alert').count()).toBe(0);
  expect(await page.evaluate(IS_MARKED)).toBe(false);
});
