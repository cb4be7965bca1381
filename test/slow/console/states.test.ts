/** What an object was over time, as bars with the duration of each state in words. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const MINUTE_MS = 60_000;
const startMs = Math.floor(Date.now() / MINUTE_MS - 180) * MINUTE_MS;

/** Two hours, a packet each minute: a door that opens for 20 minutes, and three modes. */
async function addMachine(id: string): Promise<string> {
  const { body } = await service.admin('POST', 'objects', { id, name: id });
  const packets = Array.from({ length: 121 }, (_, minute) => ({
    time: startMs + minute * MINUTE_MS,
    door: minute >= 30 && minute < 50,
    engine: { mode: minute < 60 ? 'idle' : minute < 90 ? 'drive' : 'charge' },
    firmware: '1.2.3',
    speed: minute,
  }));
  await service.admin('POST', `objects/${id}/packets`, packets);
  return body._id;
}

const bar = (page: Page, name: string | RegExp) => page.getByRole('img', { name });

test('says in words, and to screen readers, how long each state held', async () => {
  const id = await addMachine('worded');
  const page = await browser.openAs(`/objects/${id}/history`);
  await bar(page, 'door: No 1 h 40 min, Yes 20 min').waitFor();
  await bar(page, 'engine.mode: idle 1 h, drive 30 min, charge 30 min').waitFor();
  await bar(page, 'firmware: 1.2.3 2 h').waitFor();
  await eventually(async () =>
    expect(await page.locator('.state-totals').first().textContent()).toMatch(/No\s*1 h 40 min\s*Yes\s*20 min/),
  );
  await eventually(async () => expect(await page.getByRole('img', { name: /^speed/ }).count()).toBe(1));
});

test('lists the changes, which lead to their interval and keep what is chosen', async () => {
  const id = await addMachine('changing');
  const page = await browser.openAs(`/objects/${id}/history`);
  const chips = page.getByRole('button', { name: 'firmware' });
  await chips.click();
  await bar(page, 'firmware').waitFor({ state: 'detached' });
  await page.getByText('Changes (3)').first().click();
  const opened = page.getByRole('row', { name: /^Yes .* 20 min / });
  await opened.getByRole('link').press('Enter');
  await page.waitForURL((url) => url.searchParams.get('from') === String(startMs + 30 * MINUTE_MS));
  expect(new URL(page.url()).searchParams.get('to')).toBe(String(startMs + 50 * MINUTE_MS));
  expect(new URL(page.url()).searchParams.get('states')).toBe('door,engine.mode');
  await bar(page, 'door: Yes 20 min').waitFor();
  expect(await bar(page, 'firmware').count()).toBe(0);
});

test('shows the state at the pointer and at the finger', async () => {
  const id = await addMachine('pointed');
  for (const options of [{}, browser.phone]) {
    const page = await browser.openAs(`/objects/${id}/history`, ADMIN, options);
    const door = bar(page, 'door');
    await door.waitFor();
    const readout = page.locator('.state', { has: door }).locator('.readout');
    await until(async () => {
      const { width, height } = (await door.boundingBox()) ?? { width: 0, height: 0 };
      await door.hover({ position: { x: width / 3, y: height / 2 } });
      return /· Yes · 20 min$/.test((await readout.textContent()) ?? '');
    }, 'the open door');
  }
});

test('keeps its height, and its page quick to use, with a state that changes in each packet', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'flickering', name: 'Flickering' });
  for (let at = 0; at < 9_000; at += 1_000) {
    const packets = Array.from({ length: 1_000 }, (_, index) => ({
      time: startMs + (at + index) * 1_000,
      door: index % 2 === 0,
    }));
    await service.admin('POST', 'objects/flickering/packets', packets);
  }
  const page = await browser.openAs(`/objects/${body._id}/history?from=${startMs}&to=${startMs + 9_000_000}`);
  await bar(page, /^door: (Yes|No) 1 h 15 min, (Yes|No) 1 h 14 min/).waitFor();
  // A drawing for each value, not an element for each change.
  expect(await page.locator('.state-bar *').count()).toBeLessThan(10);
  await page.getByText('Changes (9,000)').click();
  await eventually(async () => expect(await page.locator('.state tbody tr').count()).toBe(200));
  await page.getByText('The newest 200 are shown.').waitFor();
});

test('shows no states of an object that has none', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'stateless', name: 'Stateless' });
  await service.admin('POST', 'objects/stateless/packets', [{ speed: 1 }, { speed: 2, text: 'x'.repeat(100) }]);
  const page = await browser.openAs(`/objects/${body._id}/history`);
  await page.locator('.uplot').waitFor();
  expect(await page.getByRole('heading', { name: 'States' }).count()).toBe(0);
});
