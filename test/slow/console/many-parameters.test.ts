/** Objects whose parameters have thousands of names, and objects of large packets: their pages stay small and usable. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const NAMES = 2_000;
const MOST_NODES = 1_500;
const macOf = (nth: number): string => `AA-BB-CC-DD-${String(nth).padStart(4, '0')}`;
const countNodes = (page: Page): Promise<number> => page.locator('*').count();

async function createBeacons(id: string): Promise<string> {
  const { body } = await service.admin('POST', 'objects', { id, name: id });
  const fromMs = Date.now() - 200_000;
  const packets = Array.from({ length: 200 }, (_, at) => ({
    time: fromMs + at * 1_000,
    ...Object.fromEntries(Array.from({ length: 100 }, (_, nth) => [macOf((at * 100 + nth) % NAMES), -40 - (at % 20)])),
  }));
  expect((await service.admin('POST', `objects/${id}/packets`, packets)).status).toBe(200);
  return body._id;
}

test.each(['history', 'live'])('shows some parameters of thousands, and finds the others: %s', async (tab) => {
  const _id = await createBeacons(`gateway-${tab}`);
  const page = await browser.openAs(`/objects/${_id}/${tab}`);
  await page.getByRole('img').first().waitFor();
  const chips = page.locator('fieldset.chips[aria-label="Parameter"] button');
  expect(await chips.count()).toBeLessThan(40);
  expect(await countNodes(page)).toBeLessThan(MOST_NODES);
  const wanted = ((await chips.last().textContent()) ?? '').toLowerCase();
  await page.getByLabel('Search parameters').fill(wanted);
  const chip = page.locator('fieldset.chips').getByRole('button', { name: new RegExp(wanted, 'i') });
  await chip.click();
  await page.getByRole('img', { name: new RegExp(`^${wanted}: `, 'i') }).waitFor();
});

test('finds by search a parameter that is not among the first', async () => {
  const _id = await createBeacons('gateway');
  const page = await browser.openAs(`/objects/${_id}/history`);
  await page.getByText(/more: search for them/).waitFor();
  const wanted = macOf(1_234);
  const chip = page.locator('fieldset.chips').getByRole('button', { name: wanted, exact: true });
  expect(await chip.count()).toBe(0);
  await page.getByLabel('Search parameters').fill('dd-1234');
  await chip.click();
  await page.getByRole('img', { name: new RegExp(`^${wanted}: `) }).waitFor();
  await page.getByLabel('Search parameters').fill('');
  // What was chosen stays, so that it can be taken back.
  await eventually(async () => expect(await chip.getAttribute('aria-pressed')).toBe('true'));
});

test('shows the whole history of large packets in charts, and reads only some of them', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'scope', name: 'Scope' });
  const fromMs = Date.now() - 2_000_000;
  for (let at = 0; at < 2_000; at += 500) {
    const packets = Array.from({ length: 500 }, (_, nth) => ({
      time: fromMs + (at + nth) * 1_000,
      level: at + nth,
      wave: 'x'.repeat(9_000),
    }));
    expect((await service.admin('POST', 'objects/scope/packets', packets)).status).toBe(200);
  }
  let bytes = 0;
  const page = await browser.openAs('/account/profile');
  page.on('response', async (response) => {
    if (response.url().includes('/packets?')) bytes += (await response.body().catch(() => Buffer.alloc(0))).length;
  });
  await page.goto(`${service.url}/objects/${body._id}/history`);
  await page.getByRole('img', { name: /^level: \d – 1,999/ }).waitFor();
  await until(() => bytes > 0, 'the packets');
  expect(bytes).toBeLessThan(12_000_000);
});
