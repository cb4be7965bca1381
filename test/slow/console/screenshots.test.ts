/**
 * The pictures of the documents, taken from a running service. With SCREENSHOTS=docs/images they replace those of the documents
 * (docs/development.md); otherwise they only have to be possible.
 */
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service);
/** English, with the units of the packets. */
const METRIC = { locale: 'en-IE' };
const folder = process.env.SCREENSHOTS || mkdtempSync(join(tmpdir(), 'vigil-screenshots-'));
const WIDE = { viewport: { width: 1280, height: 760 } };
const PEOPLE = ['Ada', 'Grace', 'Linus', 'Edsger', 'Barbara', 'Ken', 'Radia', 'Dennis'];
const TOWNS: readonly (readonly [string, number, number])[] = [
  ...([
    ['Berlin', 52.52, 13.4],
    ['Munich', 48.14, 11.58],
    ['Hamburg', 53.55, 9.99],
    ['Vienna', 48.2, 16.37],
  ] as const),
  ...([
    ['Prague', 50.08, 14.43],
    ['Zurich', 47.37, 8.54],
    ['Lyon', 45.76, 4.83],
    ['Milan', 45.46, 9.19],
  ] as const),
  ...([
    ['Warsaw', 52.23, 21.0],
    ['Brussels', 50.85, 4.35],
    ['Paris', 48.85, 2.35],
    ['Cologne', 50.94, 6.96],
  ] as const),
];
const MINUTES = 180;
let first: string;

/** One vehicle's way of three hours, the same in every run. */
function drive(number: number, lat: number, lon: number): object[] {
  const endMs = Date.now();
  return Array.from({ length: MINUTES }, (_, minute) => ({
    time: endMs - (MINUTES - minute) * 60_000 - number * 700,
    lat: lat + 0.3 * Math.sin(number * 1.7 + minute / 70),
    lon: lon + 0.4 * Math.cos(number * 2.3 + minute / 55),
    speed: number % 6 === 4 ? 0 : Math.round(62 + 24 * Math.sin(minute / 9 + number) + 7 * Math.sin(minute * 1.9)),
    angle: (number * 47 + minute * 2) % 360,
    fuel: Math.round(82 - minute / 6 - number),
    temperature: Math.round((4.2 + 0.8 * Math.sin(minute / 25 + number)) * 10) / 10,
  }));
}

beforeAll(async () => {
  // Otherwise an administrator is asked for the map.
  await service.admin('PATCH', 'settings', { map: { kind: 'none' } });
  for (let number = 0; number < 36; number++) {
    const [, lat, lon] = TOWNS[number % TOWNS.length] as (typeof TOWNS)[number];
    const id = `truck-${number + 1}`;
    const name = `Truck ${number + 1} · ${PEOPLE[number % PEOPLE.length]}`;
    const { body } = await service.admin('POST', 'objects', { id, name });
    if (number === 1) first = body._id;
    await service.admin('POST', `objects/${id}/packets`, drive(number, lat, lon));
    if (number % 9 === 8) await service.admin('POST', `objects/${id}/packets`, { online: false });
  }
});

/** Waits until the map has drawn everything. */
const settleMap = (page: Page): Promise<void> => page.locator('[data-drawn]').first().waitFor();

async function take(page: Page, name: string): Promise<void> {
  const path = join(folder, `${name}.png`);
  // Nothing is under the pointer.
  await page.mouse.move(1, 1);
  await page.screenshot({ path });
  expect(existsSync(path)).toBe(true);
  // A page without content is a small file.
  expect(readFileSync(path).length).toBeGreaterThan(30_000);
}

test.each<[string, BrowserContextOptions]>([
  ['console', WIDE],
  ['console-dark', { ...WIDE, colorScheme: 'dark' }],
  ['console-phone', { ...browser.phone, deviceScaleFactor: 2 }],
])('takes %s.png', async (name, options) => {
  const page = await browser.openAs('/', ADMIN, { ...METRIC, ...options });
  await page.locator('.row', { hasText: 'Truck 2 ·' }).waitFor();
  await settleMap(page);
  if (name !== 'console-phone') {
    // Selected without moving the map there.
    await page.locator('.row', { hasText: 'Truck 2 ·' }).getByRole('button').click();
    await page.getByRole('button', { name: 'Show all objects' }).click();
    await settleMap(page);
  }
  await take(page, name);
});

test('takes console-history.png', async () => {
  const page = await browser.openAs(`/objects/${first}/history`, ADMIN, {
    ...METRIC,
    viewport: { width: 1280, height: 1180 },
  });
  await page.locator('.uplot').nth(1).waitFor();
  await page.getByRole('button', { name: '6 hours' }).click();
  await settleMap(page);
  await take(page, 'console-history');
});
