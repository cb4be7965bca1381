/** What charts say about the moment at the pointer or the finger, and how much detail they have. */
import { describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const MINUTE_MS = 60_000;
const TIME = String.raw`(\d+ \w+ \d{4}, )?\d\d:\d\d:\d\d`;

/** Two parameters every minute; the least, the greatest and the last speed of a minute are 1, 9 and 5. */
async function addDriven(id: string, minutes: number): Promise<string> {
  const { body } = await service.admin('POST', 'objects', { id, name: id });
  const startMs = Math.floor(Date.now() / MINUTE_MS - minutes) * MINUTE_MS;
  const packets = Array.from({ length: minutes * 3 }, (_, third) => ({
    time: startMs + Math.floor(third / 3) * MINUTE_MS + (third % 3),
    speed: [1, 9, 5][third % 3],
    temperature: 21.5,
  }));
  await service.admin('POST', `objects/${id}/packets`, packets);
  return body._id;
}

const readouts = (page: Page): Promise<string[]> => page.locator('.readout').allInnerTexts();

async function expectReadouts(page: Page, ...forms: readonly RegExp[]): Promise<void> {
  const areShown = async () => {
    const texts = await readouts(page);
    return texts.length === forms.length && forms.every((form, index) => form.test(texts[index] as string));
  };
  await until(areShown, `readouts ${forms.join(' ')}`);
}

test('shows the time and the values at the pointer in the headings of all charts, until it leaves', async () => {
  const id = await addDriven('hovered', 600);
  const page = await browser.openAs(`/objects/${id}/history`);
  const plot = page.locator('.u-over').first();
  await plot.waitFor();
  const before = await plot.boundingBox();
  await expectReadouts(page, /^$/, /^$/);
  await plot.hover();
  await expectReadouts(
    page,
    new RegExp(String.raw`^${TIME} · 5 \(1 – 9\) km/h$`),
    new RegExp(String.raw`^${TIME} · 21\.5 °C$`),
  );
  expect(await plot.boundingBox()).toEqual(before);
  // Screen readers would read every move of the pointer.
  expect(await page.locator(':is([aria-live], [role=status], output) .readout, output.readout').count()).toBe(0);
  await page.locator('h1').hover();
  await expectReadouts(page, /^$/, /^$/);
});

test('shows the value under a tap on a phone, until another tap elsewhere', async () => {
  const id = await addDriven('tapped', 30);
  const page = await browser.openAs(`/objects/${id}/live`, ADMIN, browser.phone);
  const plot = page.locator('.u-over');
  await plot.scrollIntoViewIfNeeded();
  // The chart is drawn again when the page has all of its values: a tap before that is forgotten.
  await until(async () => {
    await plot.tap();
    return new RegExp(`^${TIME} · [159] km/h$`).test((await readouts(page)).join());
  }, 'the value under a tap');
  await page.locator('h2').first().tap();
  await expectReadouts(page, /^$/);
});

test('shows every packet of a short drive in a chart of 24 hours', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'short', name: 'Short' });
  const startMs = Date.now() - 10 * 60 * MINUTE_MS;
  const packets = [0, 10, 20, 30].map((second) => ({ time: startMs + second * 1_000, speed: second }));
  await service.admin('POST', 'objects/short/packets', packets);
  const page = await browser.openAs(`/objects/${body._id}/history`);
  await page.getByRole('img', { name: 'speed: 0 – 30 km/h' }).waitFor();
  const box = await page.locator('.u-over').boundingBox();
  if (box === null) throw new Error('no chart');
  for (const [part, speed] of [0, 10, 20, 30].entries()) {
    await page.mouse.move(box.x + 1 + (part * (box.width - 2)) / 3, box.y + 20);
    await expectReadouts(page, new RegExp(`^${TIME} · ${speed} km/h$`));
  }
  expect(page.url()).not.toContain('from=');
});

test('explains how to zoom where that works: not to fingers, which scroll', async () => {
  const id = await addDriven('explained', 3);
  const hintOn = async (options?: typeof browser.phone) => {
    const page = await browser.openAs(`/objects/${id}/history`, ADMIN, options);
    await page.locator('.uplot').first().waitFor();
    return page.getByText('Drag over a chart to zoom').isVisible();
  };
  expect(await hintOn()).toBe(true);
  expect(await hintOn(browser.phone)).toBe(false);
});

describe('the map of a route', () => {
  const open = async (id: string, options?: typeof browser.phone) => {
    const { body } = await service.admin('POST', 'objects', { id, name: id });
    const startMs = Date.now() - 10 * MINUTE_MS;
    const packets = [0, 1, 2].map((minute) => ({
      time: startMs + minute * MINUTE_MS,
      lat: 48 + minute / 100,
      lon: 11,
    }));
    await service.admin('POST', `objects/${id}/packets`, packets);
    const page = await browser.openAs(`/objects/${body._id}/history`, ADMIN, options);
    await page.locator('.track-map .map[data-drawn]').waitFor();
    return page;
  };

  test('leaves the wheel over a route to the page, and says how to zoom', async () => {
    const page = await open('wheeled', { viewport: { width: 1280, height: 500 } });
    const map = page.locator('.track-map');
    await map.scrollIntoViewIfNeeded();
    await page.getByText('Natural Earth, GeoNames · MapLibre').waitFor();
    await map.hover();
    const before = await map.boundingBox();
    // The map shows the text for a tenth of a second.
    await page.evaluate(`globalThis.shownTexts = ''; new MutationObserver(() => {
      globalThis.shownTexts += document.querySelector('.maplibregl-show')?.textContent ?? '';
    }).observe(document.querySelector('.track-map'), { subtree: true, attributes: true })`);
    await page.mouse.wheel(0, -120);
    const isShown = async () =>
      String(await page.evaluate('shownTexts')).includes('Zoom the map with Ctrl and the wheel.');
    await until(isShown, 'the map says how to zoom');
    await until(async () => ((await map.boundingBox())?.y ?? 0) > (before?.y ?? 0), 'the page scrolls');
  });

  test('leaves one finger on a route to the page', async () => {
    const page = await open('swiped', browser.phone);
    const action = await page.evaluate('getComputedStyle(document.querySelector(".track-map canvas")).touchAction');
    expect(action).toBe('pan-x pan-y');
    expect(await page.getByText('Move the map with two fingers.').count()).toBe(1);
  });
});
