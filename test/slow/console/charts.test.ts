/** What charts say about the moment at the pointer or the finger, and how much detail they have. */
import { describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { boxOf } from '../../support/browser/box.js';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

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

const expectReadouts = (page: Page, ...forms: readonly RegExp[]): Promise<void> =>
  untilReadouts(page, async () => undefined, ...forms);

/** Acts until these are shown: a chart is drawn again when the page has all of its values, and forgets the pointer and the finger. */
async function untilReadouts(page: Page, act: () => Promise<unknown>, ...forms: readonly RegExp[]): Promise<void> {
  const areShown = async () => {
    await act();
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
  await expectReadouts(page, /^$/, /^$/);
  const values = [
    new RegExp(String.raw`^${TIME} · 5 \(1 – 9\) km/h$`),
    new RegExp(String.raw`^${TIME} · 21\.5 °C$`),
  ] as const;
  await untilReadouts(page, () => plot.hover(), ...values);
  await page.locator('h1').hover();
  await expectReadouts(page, /^$/, /^$/);
  // By now all of the page is there: only the headings can move the charts.
  const before = await plot.boundingBox();
  await untilReadouts(page, () => plot.hover(), ...values);
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
  await untilReadouts(page, () => plot.tap(), new RegExp(`^${TIME} · [159] km/h$`));
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
  for (const [part, speed] of [0, 10, 20, 30].entries()) {
    const point = async () => {
      const box = await boxOf(page.locator('.u-over'));
      // From another place, because a pointer that does not move says nothing.
      for (const y of [30, 20]) await page.mouse.move(box.x + 1 + (part * (box.width - 2)) / 3, box.y + y);
    };
    await untilReadouts(page, point, new RegExp(`^${TIME} · ${speed} km/h$`));
  }
  expect(page.url()).not.toContain('from=');
});

test('keeps the charts of an interval without packets, with ways back', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'gap', name: 'Gap' });
  const startMs = Date.now() - 10 * 60 * MINUTE_MS;
  const packets = [0, 1, 540, 541].map((minute) => ({ time: startMs + minute * MINUTE_MS, speed: minute }));
  await service.admin('POST', 'objects/gap/packets', packets);
  const page = await browser.openAs(`/objects/${body._id}/history`);
  const plot = page.locator('.u-over');
  await page.getByRole('img', { name: /speed: .* 541 km/i }).waitFor();
  const zoom = (from: number, to: number): Promise<void> => {
    const before = page.url();
    return until(async () => {
      const box = await boxOf(plot);
      await page.mouse.move(box.x + box.width * from, box.y + 40);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * to, box.y + 40, { steps: 5 });
      await page.mouse.up();
      await effectsRun(page);
      return page.url() !== before;
    }, 'another interval');
  };
  await zoom(0.3, 0.6);
  await page.getByText('No packets in this interval').waitFor();
  await plot.waitFor();
  const narrow = page.url();
  // Also without values.
  await zoom(0.4, 0.6);
  await page.getByRole('button', { name: 'Zoom out' }).click();
  await page.getByRole('button', { name: 'Zoom out' }).click();
  await page
    .getByRole('button', { name: 'The last packets' })
    .or(page.getByRole('img', { name: /speed: / }))
    .first()
    .waitFor();
  await page.goto(narrow);
  await plot.waitFor();
  await page.getByRole('button', { name: 'The last packets' }).click();
  await page.getByRole('img', { name: /speed: .* 541 km/i }).waitFor();
  await page.goBack();
  await page.getByText('No packets in this interval').waitFor();
});

test('takes a drag over one of several charts back in one step', async () => {
  const id = await addDriven('dragged', 30);
  const page = await browser.openAs(`/objects/${id}/history`);
  const plots = page.locator('.u-over');
  await plots.nth(1).waitFor();
  const before = page.url();
  await until(async () => {
    const box = await boxOf(plots.first());
    await page.mouse.move(box.x + box.width * 0.8, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.9, box.y + 40, { steps: 5 });
    await page.mouse.up();
    await effectsRun(page);
    return page.url() !== before;
  }, 'another interval');
  await page.goBack();
  await page.waitForURL(before);
});

/** How many peaks reach the greatest height, by the columns of strong color that do. */
const HIGHEST_PEAKS = `(() => {
  const { width, height } = document.querySelector('.uplot canvas');
  const pixels = document.querySelector('.uplot canvas').getContext('2d').getImageData(0, 0, width, height).data;
  const isStrong = (x, y) => {
    const at = (y * width + x) * 4;
    return pixels[at] < 110 && pixels[at + 2] > 150 && pixels[at + 3] > 150;
  };
  const tops = Array.from({ length: width }, (_, x) => {
    for (let y = 0; y < height; y++) if (isStrong(x, y)) return y;
    return height;
  });
  const least = Math.min(...tops);
  return tops.filter((top, x) => top <= least + 6 && !(tops[x - 1] <= least + 6)).length;
})()`;

test('draws equal peaks equally, wherever they are between two points of a chart', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'peaks', name: 'Peaks' });
  const startMs = Math.floor(Date.now() / MINUTE_MS - 1_440) * MINUTE_MS;
  // Several packets a point of the chart, and the peaks at different ones of these.
  const packets = Array.from({ length: 7_200 }, (_, index) => ({
    time: startMs + index * 12_000,
    level: index > 0 && index % 803 === 0 ? 100 : 0,
  }));
  for (let at = 0; at < packets.length; at += 1_000)
    await service.admin('POST', 'objects/peaks/packets', packets.slice(at, at + 1_000));
  const page = await browser.openAs(`/objects/${body._id}/history`);
  await page.getByRole('img', { name: /^level/ }).waitFor();
  await until(async () => (await page.evaluate(HIGHEST_PEAKS)) === 8, 'eight equal peaks');
});

test('explains how to zoom where that works: not to fingers, which scroll', async () => {
  const id = await addDriven('explained', 3);
  const hintOn = async (options?: typeof browser.phone) => {
    const page = await browser.openAs(`/objects/${id}/history`, ADMIN, options);
    await page.locator('.uplot').first().waitFor();
    const hint = page.getByText('Drag over a chart to zoom');
    await hint.waitFor({ state: 'attached' });
    return hint.isVisible();
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
    await eventually(async () => expect(await page.getByText('Move the map with two fingers.').count()).toBe(1));
  });
});

test('draws charts in a browser whose system names no language', async () => {
  const id = await addDriven('nowhere', 30);
  // As Chromium does where LANG is C.
  const page = await browser.openAs(`/objects/${id}/history`, ADMIN, { locale: 'en-US@posix' });
  await page.locator('.u-over').first().waitFor();
});
