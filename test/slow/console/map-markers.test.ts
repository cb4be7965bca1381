/** The markers of the map: what an object does and its worst alarm, each as a shape with a color. */
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { boxOf } from '../../support/browser/box.js';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
const HOUR_MS = 3_600_000;

/** A color as the page draws it. */
type Color = readonly number[];
const ONLINE: Color = [13, 153, 97];
const GREY: Color = [117, 128, 143];
const WHITE: Color = [255, 255, 255];
const WATER: Color = [219, 230, 238];
const CRITICAL: Color = [201, 38, 28];
const WARNING: Color = [194, 115, 0];

/** In the ocean, where nothing else is drawn, and each where the others are not in view. */
const PLACES = ['standing', 'north', 'offline', 'silent', 'critical', 'warning'] as const;
type Name = (typeof PLACES)[number];
const lonOf = (name: Name): number => -40 - PLACES.indexOf(name);

async function add(name: Name, packet: object): Promise<void> {
  await service.admin('POST', 'objects', { id: name, name });
  await service.admin('POST', `objects/${name}/packets`, { lat: 30, lon: lonOf(name), ...packet });
}

beforeAll(async () => {
  for (const [name, param, severity] of [
    ['Too warm', 'heat', 'critical'],
    ['Too cold', 'cold', 'warning'],
  ] as const)
    await service.admin('POST', 'rules', { name, severity, when: { param, op: '>', value: 5 } });
  await add('standing', { speed: 0 });
  await add('north', { speed: 50, angle: 0 });
  await add('offline', { speed: 0, online: false });
  await add('silent', { speed: 50, angle: 0, time: Date.now() - HOUR_MS });
  await add('critical', { speed: 0, heat: 9 });
  await add('warning', { speed: 0, cold: 9 });
});

/** The pixels around the object in the middle of the map. */
async function pixels(page: Page): Promise<Color[][]> {
  const { x, y, width, height } = await boxOf(page.locator('.stage'));
  const clip = { x: Math.round(x + width / 2) - 20, y: Math.round(y + height / 2) - 20, width: 41, height: 41 };
  const png = await page.screenshot({ clip });
  return page.evaluate(`(async () => {
    const image = new Image();
    image.src = 'data:image/png;base64,${png.toString('base64')}';
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const at = (x, y) => [...context.getImageData(x, y, 1, 1).data].slice(0, 3);
    return Array.from({ length: 41 }, (_, y) => Array.from({ length: 41 }, (_, x) => at(x, y)));
  })()`);
}

const isLike = (one: Color, other: Color): boolean =>
  one.every((value, index) => Math.abs(value - (other[index] ?? 0)) < 12);
const countOf = (all: Color[][], color: Color): number => all.flat().filter((one) => isLike(one, color)).length;

/** Returns what reads the pixels around the object. */
async function lookAt(page: Page, name: Name): Promise<() => Promise<Color[][]>> {
  await page.goto(`${service.url}/?at=30,${lonOf(name)},12`);
  await page.locator('.map[data-drawn]').waitFor();
  await page.locator('.row-name').getByText(name, { exact: true }).waitFor();
  return () => pixels(page);
}

const middle = (all: Color[][], above = 0): Color => all[20 - above]?.[20] ?? [];

test('draws a disc of what stands, and a drop in the direction of what moves', async () => {
  const page = await browser.openAs('/');
  const standing = await lookAt(page, 'standing');
  await eventually(async () => {
    const all = await standing();
    expect(isLike(middle(all), ONLINE)).toBe(true);
    expect(isLike(middle(all, 9), WATER)).toBe(true);
    expect(isLike(middle(all, -9), WATER)).toBe(true);
  });
  const north = await lookAt(page, 'north');
  await eventually(async () => {
    const all = await north();
    expect(isLike(middle(all), ONLINE)).toBe(true);
    expect(isLike(middle(all, 9), WATER)).toBe(false);
    expect(isLike(middle(all, -9), WATER)).toBe(true);
  });
});

test('draws a gray ring of what is offline, and hatches what is silent', async () => {
  const page = await browser.openAs('/');
  const offline = await lookAt(page, 'offline');
  await eventually(async () => {
    const all = await offline();
    expect(isLike(middle(all), WHITE)).toBe(true);
    expect(countOf(all, GREY)).toBeGreaterThan(12);
    expect(countOf(all, ONLINE)).toBe(0);
  });
  const silent = await lookAt(page, 'silent');
  await eventually(async () => {
    const all = await silent();
    // Along a diagonal, across the hatching, gray and white take turns.
    const diagonal = Array.from({ length: 9 }, (_, step) => all[24 - step]?.[16 + step] ?? []);
    const bright = diagonal.map(([red = 0]) => red > 180);
    expect(bright.filter((one, index) => index > 0 && one !== bright[index - 1]).length).toBeGreaterThan(1);
    expect(countOf(all, ONLINE)).toBe(0);
  });
});

test('draws the worst alarm as a plate with its color and shape, until it is over', async () => {
  const page = await browser.openAs('/');
  const warning = await lookAt(page, 'warning');
  await eventually(async () => {
    const all = await warning();
    expect(isLike(middle(all), ONLINE)).toBe(true);
    // A triangle: wide below, narrow above.
    const widthOf = (row: number): number => (all[row] ?? []).filter((one) => isLike(one, WARNING)).length;
    expect(widthOf(25)).toBeGreaterThan(widthOf(9) + 4);
  });
  const critical = await lookAt(page, 'critical');
  await eventually(async () => {
    const all = await critical();
    expect(isLike(middle(all), ONLINE)).toBe(true);
    expect(countOf(all, CRITICAL)).toBeGreaterThan(100);
    expect(countOf(all, WARNING)).toBe(0);
  });
  await service.admin('POST', 'objects/critical/packets', { lat: 30, lon: lonOf('critical'), speed: 0, heat: 1 });
  await eventually(async () => expect(countOf(await critical(), CRITICAL)).toBe(0));
});

test('makes all of them gray when the page has no connection', async () => {
  browser.expectErrors(/ERR_INTERNET_DISCONNECTED|WebSocket/);
  const page = await browser.openAs('/');
  const standing = await lookAt(page, 'standing');
  await eventually(async () => expect(isLike(middle(await standing()), ONLINE)).toBe(true));
  await page.context().setOffline(true);
  await page.locator('.lost-note').waitFor();
  await eventually(async () => expect(isLike(middle(await standing()), GREY)).toBe(true));
});
