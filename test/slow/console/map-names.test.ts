/** Names beside the markers of the map: of which objects, where there is room, and how many share a place. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { boxOf } from '../../support/browser/box.js';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
const HOUR_MS = 3_600_000;
const created: string[] = [];

async function add(id: string, lat: number, lon: number, packet: object = {}): Promise<void> {
  created.push(id);
  await service.admin('POST', 'objects', { id, name: id });
  await service.admin('POST', `objects/${id}/packets`, { lat, lon, speed: 0, ...packet });
}

/** What screen readers are told of the canvas with the names. */
async function names(page: Page): Promise<string[]> {
  const texts = await page.locator('canvas.map-points').allTextContents();
  return texts.join('').split(', ').filter(Boolean).sort();
}

/** Pixels of the canvas with the names that are not transparent. */
const inked = (page: Page): Promise<number> =>
  page.evaluate(`(() => {
    const canvas = [...document.querySelectorAll('canvas.map-points')].at(-1);
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((value, index) => index % 4 === 3 && value > 0).length;
  })()`);

test('has the names of a few objects, with the age of those that are gone, and the count of a place', async () => {
  await add('Van 1', 30, -40);
  await add('Van 2', 30.1, -40.1, { online: false, time: Date.now() - 3 * HOUR_MS });
  await add('Van 3', 30.1, -39.9, { speed: 50, time: Date.now() - HOUR_MS });
  for (let index = 1; index < 6; index++) await add(`Sensor ${index}`, 29.9, -40);
  const page = await browser.openAs('/?at=30,-40,11');
  await eventually(async () =>
    expect(await names(page)).toEqual(['5', 'Van 1', 'Van 2 · 3 hr ago', 'Van 3 · 1 hr ago']),
  );
  expect(await inked(page)).toBeGreaterThan(500);
});

test('opens the five objects of one building as a list', async () => {
  const page = await browser.openAs('/?at=29.9,-40,11');
  await eventually(async () => expect(await names(page)).toContain('5'));
  const { x, y, width, height } = await boxOf(page.locator('.map'));
  await page.mouse.click(x + width / 2, y + height / 2);
  const choice = page.getByRole('dialog', { name: '5 objects here' });
  await eventually(async () =>
    expect(await choice.getByRole('button').allTextContents()).toEqual([1, 2, 3, 4, 5].map((n) => `Sensor ${n}`)),
  );
});

test('lists the objects with the worst alarms of a place first, and gives the focus back', async () => {
  await service.admin('POST', 'rules', {
    name: 'Wet',
    severity: 'warning',
    when: { param: 'water', op: '>', value: 5 },
  });
  await service.admin('POST', 'rules', {
    name: 'Fire',
    severity: 'critical',
    when: { param: 'smoke', op: '>', value: 5 },
  });
  for (const [id, packet] of [
    ['Room 1', {}],
    ['Room 2', { water: 9 }],
    ['Room 3', { water: 9, smoke: 9 }],
  ] as const)
    await add(id, 10, -40, packet);
  const page = await browser.openAs('/?at=10,-40,11');
  await eventually(async () => expect(await names(page)).toContain('3'));
  await page.locator('.row', { hasText: 'Room 3' }).locator('.worst.critical').waitFor();
  await page.locator('.row', { hasText: 'Room 2' }).locator('.worst.warning').waitFor();
  const { x, y, width, height } = await boxOf(page.locator('.map'));
  await page.mouse.click(x + width / 2, y + height / 2);
  const choice = page.getByRole('dialog', { name: '3 objects here' });
  const buttons = choice.getByRole('button');
  await eventually(async () =>
    expect(await buttons.allTextContents()).toEqual([
      expect.stringMatching(/^Room 3 Fire/),
      expect.stringMatching(/^Room 2 Wet/),
      'Room 1',
    ]),
  );
  await eventually(async () =>
    expect(await buttons.first().getByRole('img').getAttribute('aria-label')).toBe('Critical'),
  );
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/pile.png` });
  await buttons.first().and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Escape');
  await choice.waitFor({ state: 'detached' });
  await eventually(async () => expect(await page.evaluate('document.activeElement.tagName')).toBe('CANVAS'));
  for (const id of [1, 2, 3]) await service.admin('DELETE', `objects/Room ${id}`);
});

test('has only the names of alarms and of the selected object when there are many, until the map is close', async () => {
  await service.admin('POST', 'rules', {
    name: 'Hot',
    severity: 'critical',
    when: { param: 'heat', op: '>', value: 5 },
  });
  for (let index = 0; index < 70; index++)
    await add(`Unit ${index}`, -20 + Math.floor(index / 10) / 10, (index % 10) / 10);
  await service.admin('POST', 'objects/Unit 33/packets', { lat: -19.7, lon: 0.3, heat: 9 });
  const { body } = await service.admin('GET', 'objects/Unit 44');
  const page = await browser.openAs('/?at=-19.7,0.45,9');
  await eventually(async () => expect(await names(page)).toEqual(['Unit 33']));
  await page.goto(`${service.url}/?at=-19.7,0.45,9&object=${body._id}`);
  await eventually(async () => expect(await names(page)).toEqual(['Unit 33', 'Unit 44']));
  await page.goto(`${service.url}/?at=-19.6,0.4,13`);
  await eventually(async () => expect(await names(page)).toEqual(['Unit 44']));
});

test('goes close enough to a selected object to tell it from its neighbours', async () => {
  const { body } = await service.admin('GET', 'objects/Van 1');
  const page = await browser.openAs('/?at=20,-30,4');
  await page.getByRole('searchbox').fill('Van 1');
  await page.locator('.row', { hasText: 'Van 1' }).click();
  await page.waitForURL(new RegExp(`object=${body._id}`));
  await eventually(async () => expect(await names(page)).toContain('Van 1'));
  await page.getByRole('button', { name: 'Zoom out' }).click();
  // The middle of the map is right of the object, which is in the middle of what the card leaves.
  await page.waitForURL(/at=30\.0\d*%2C-39\.9\d*%2C10\./);
});
