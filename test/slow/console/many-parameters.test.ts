/** Objects whose parameters have thousands of names: their pages stay small and usable. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';

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
  expect(await chip.getAttribute('aria-pressed')).toBe('true');
});
