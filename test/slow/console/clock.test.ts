/** Ages in a browser whose clock is not that of the server. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { ZONE } from '../../support/browser/zone.js';
import { useService } from '../../support/fixture.js';
import { until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

/** Shifts the clock of the pages of this browser profile; `shiftClock` shifts that of the open one. */
const shifting = (shiftMs: number) => `{
  const Real = Date;
  let shiftMs = ${shiftMs};
  globalThis.shiftClock = (ms) => { shiftMs = ms; };
  globalThis.Date = class extends Real {
    constructor(...given) {
      if (given.length === 0) super(Real.now() + shiftMs);
      else super(...given);
    }
    static now() { return Real.now() + shiftMs; }
  };
}`;

async function openShifted(path: string, shiftMs: number): Promise<Page> {
  const page = await browser.openAs('/account/profile', undefined, { timezoneId: ZONE });
  await page.context().addInitScript(shifting(shiftMs));
  await page.goto(service.url + path);
  return page;
}

const sendOld = async (id: string): Promise<number> => {
  const time = Date.now() - 10 * MINUTE_MS;
  await service.admin('POST', `objects/${id}/packets`, { time, level: 1 });
  return time;
};

/** Waits until a text ends with the age of this time, however long the test took until now. */
async function untilAge(text: () => Promise<string>, timeMs: number, what: string): Promise<void> {
  const minutes = (): number => Math.floor((Date.now() - timeMs) / MINUTE_MS);
  await until(async () => {
    const before = minutes();
    const shown = await text();
    return [before, minutes()].some((age) => shown.endsWith(`${age} min ago`));
  }, what);
}

const textOf = (page: Page, selector: string) => async () =>
  ((await page.locator(selector).allInnerTexts())[0] ?? '').trim();

test.each([
  ['seven minutes slow', -7 * MINUTE_MS],
  ['two hours slow', -120 * MINUTE_MS],
  ['three days slow', -3 * DAY_MS],
  ['a minute fast', MINUTE_MS],
  ['seven minutes fast', 7 * MINUTE_MS],
  ['years fast', 700 * DAY_MS],
])('counts ages by the clock of the server in a browser that is %s', async (name, shiftMs) => {
  const id = name.replaceAll(' ', '-');
  const { body: object } = await service.admin('POST', 'objects', { id, name: id });
  const sentMs = await sendOld(id);
  const page = await openShifted(`/?search=${id}`, shiftMs);
  const age = textOf(page, '.row-note');
  await untilAge(age, sentMs, '10 min ago in the list');
  expect(await age()).toMatch(/^Online\s/);
  await service.admin('POST', `objects/${id}/packets`, { level: 2 });
  await until(async () => /^Online\s*(now|\d+ sec ago)$/.test(await age()), 'now in the list');

  await page.goto(`${service.url}/objects/${object._id}/live`);
  await page.locator('.object-head time').first().waitFor();
  // Of a slow machine, the last one may be a minute old by now.
  await service.admin('POST', `objects/${id}/packets`, { level: 3 });
  await until(async () => /(now|\d+ sec ago)$/.test(await textOf(page, '.object-head time')()), 'now in the page');
  // The newest packet is of this day, so that it shows the time alone.
  await until(async () => /^\d{2}:\d{2}:\d{2}$/.test(await textOf(page, 'tbody td')()), 'the time in the table');
  await page.goto(`${service.url}/account/sessions`);
  await until(async () => !/in \d/.test(await textOf(page, '.items time')()), 'no session begins later');
});

test('counts ages by the clock of the server when the clock of the browser is set', async () => {
  await service.admin('POST', 'objects', { id: 'reset', name: 'Reset' });
  const sentMs = await sendOld('reset');
  const page = await openShifted('/?search=reset', 0);
  const age = textOf(page, '.row-note');
  await untilAge(age, sentMs, '10 min ago');
  for (const shiftMs of [-7 * MINUTE_MS, 3 * DAY_MS]) {
    const asked = page.waitForResponse(/\/api\/v1\/auth$/);
    await page.evaluate(`shiftClock(${shiftMs})`);
    await asked;
    await untilAge(age, sentMs, `10 min ago after ${shiftMs} ms`);
  }
});
