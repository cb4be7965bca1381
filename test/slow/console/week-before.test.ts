/** The same hours a week before, behind the charts of an object. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const MINUTE_MS = 60_000;
const MINUTES = 60;
const fromMs = Math.floor(Date.now() / MINUTE_MS - MINUTES) * MINUTE_MS;
const INTERVAL = `from=${fromMs}&to=${fromMs + MINUTES * MINUTE_MS}`;

function weekBeforeMs(ms: number): number {
  const date = new Date(ms);
  date.setDate(date.getDate() - 7);
  return date.getTime();
}

/** An hour of one value each minute. */
const hourOf = (startMs: number, temperature: number) =>
  Array.from({ length: MINUTES }, (_, minute) => ({ time: startMs + minute * MINUTE_MS, temperature, speed: 1 }));

async function add(id: string, packets: readonly object[]): Promise<void> {
  await service.admin('POST', 'objects', { id, name: id });
  await service.admin('POST', `objects/${id}/packets`, packets);
}

/** Hovers until the charts say this: a chart that is drawn again forgets the pointer. */
const untilRead = (page: Page, form: RegExp): Promise<void> =>
  until(async () => {
    await page.locator('.u-over').first().hover();
    return form.test((await page.locator('.readout').first().textContent()) ?? '');
  }, `a readout like ${form}`);

const PICTURE = `document.querySelector('.uplot canvas').toDataURL()`;

test('draws the same hours a week before, whatever their values, and reads them at the pointer, until they are hidden', async () => {
  await add('weekly', [...hourOf(weekBeforeMs(fromMs), 250), ...hourOf(fromMs, 20)]);
  const page = await browser.openAs(`/objects/weekly/history?${INTERVAL}&charts=temperature`, ADMIN);
  await untilRead(page, /· 20 °C$/);
  const without = await page.evaluate(PICTURE);
  const button = page.getByRole('button', { name: 'Week before' });
  await eventually(async () => expect(await button.getAttribute('aria-pressed')).toBe('false'));
  await button.click();
  await page.getByText('Dashed: the same hours a week before').waitFor();
  await untilRead(page, /· 20 °C · a week before 250$/);
  expect(await page.evaluate(PICTURE)).not.toBe(without);
  // What is shown can be sent to somebody, and a zoom keeps it.
  expect(new URL(page.url()).searchParams.get('before')).toBe('week');
  await page.getByRole('button', { name: 'Longer interval' }).click();
  await page.waitForURL((url) => !url.search.includes(String(fromMs)) && url.searchParams.get('before') === 'week');
  await button.click();
  await eventually(async () => expect(await button.getAttribute('aria-pressed')).toBe('false'));
  await eventually(async () => expect(await page.getByText('Dashed: the same hours').count()).toBe(0));
  await untilRead(page, /· 20 °C$/);
});

test('says that there was nothing in the same hours a week before', async () => {
  await add('young', hourOf(fromMs, 20));
  const page = await browser.openAs(`/objects/young/history?${INTERVAL}&charts=temperature&before=week`, ADMIN);
  await page.getByText('No values in the same hours a week before').waitFor();
  await untilRead(page, /· 20 °C$/);
});
