/** The trips and stops of an object: intervals of whole days, the list, and the replay of a trip. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { midnight, ZONE, ZONE_MS } from '../../support/browser/zone.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Packets of every minute: driven ones are 1 km apart. */
function drive(startMs: number, minutes: number, km: { at: number }, isMoving: boolean): object[] {
  return Array.from({ length: minutes }, (_, minute) => {
    if (isMoving) km.at++;
    return { time: startMs + minute * MINUTE_MS, lat: 48 + km.at / 111.195, lon: 11, speed: isMoving ? 60 : 0 };
  });
}

/** Two trips of 20 and 40 minutes yesterday, and one of 10 the day before. */
async function addVan(id: string): Promise<string> {
  const { body } = await service.admin('POST', 'objects', { id, name: id });
  const km = { at: 0 };
  const day = (daysAgo: number, hour: number): number => midnight(daysAgo) + hour * HOUR_MS;
  const packets = [
    ...drive(day(2, 8), 10, km, true),
    ...drive(day(2, 8) + 10 * MINUTE_MS, 20, km, false),
    ...drive(day(1, 8), 20, km, true),
    ...drive(day(1, 8) + 20 * MINUTE_MS, 40, km, false),
    ...drive(day(1, 9), 40, km, true),
    ...drive(day(1, 9) + 40 * MINUTE_MS, 10, km, false),
  ];
  await service.admin('POST', `objects/${id}/packets`, packets);
  return body._id;
}

const options = { timezoneId: ZONE, locale: 'en-IE' };
const slider = (page: Page) => page.getByRole('slider', { name: 'Moment' });
const boundsOf = async (page: Page): Promise<number[]> =>
  Promise.all(['min', 'max'].map(async (name) => Number(await slider(page).getAttribute(name))));

test('replays the second trip of yesterday with two clicks on the page of history', async () => {
  const id = await addVan('twice');
  const page = await browser.openAs(`/objects/${id}/history`, ADMIN, options);
  await page.getByRole('button', { name: 'Yesterday' }).click();
  await page.getByRole('button', { name: /Play trip 2, 0?8:59/ }).click();
  const startMs = midnight(1) + 9 * HOUR_MS;
  await until(async () => (await boundsOf(page))[0] === startMs - MINUTE_MS, 'the second trip');
  expect((await boundsOf(page))[1]).toBe(startMs + 39 * MINUTE_MS);
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  await page.locator('.trips [aria-current]', { hasText: 'Trip 2' }).waitFor();
  await page.getByRole('button', { name: 'Whole route' }).click();
  await until(async () => (await boundsOf(page))[0] === midnight(1) + 8 * HOUR_MS, 'the whole route');
});

test('keeps days in the address, in the time zone of the reader, and weeks that begin as the reader is used to', async () => {
  const id = await addVan('days');
  const page = await browser.openAs(`/objects/${id}/history`, ADMIN, options);
  const shown = (): number[] =>
    ['from', 'to'].map((name) => {
      const text = new URL(page.url()).searchParams.get(name) ?? '';
      return /^\d+$/.test(text) ? Number(text) : Date.parse(text);
    });
  const expectDays = async (name: string, fromMs: number, days: number): Promise<void> => {
    await page.getByRole('button', { name, exact: true }).click();
    await until(() => shown()[0] === fromMs, name);
    expect(shown()[1]).toBe(fromMs + days * DAY_MS - 1);
    await page.reload();
    await page.locator('[aria-pressed=true]', { hasText: name }).waitFor();
  };
  await expectDays('Yesterday', midnight(1), 1);
  await until(async () => (await page.locator('.trips .trip').count()) === 2, 'its trips');
  await expectDays('Today', midnight(0), 1);
  // In Ireland, on Mondays.
  const sinceMonday = (new Date(midnight(0) + ZONE_MS).getUTCDay() + 6) % 7;
  await expectDays('This week', midnight(sinceMonday), 7);
  // Not a week in which nothing has been sent yet.
  await page.getByRole('button', { name: '1 hour' }).click();
  await until(() => (shown()[1] ?? 0) < midnight(-1), 'an hour that is over');
});

test('skips stops in the replay of a whole day, shows a stop on request, and zooms to a trip', async () => {
  const id = await addVan('skips');
  const interval = `from=${midnight(1)}&to=${midnight(0) - 1}`;
  const page = await browser.openAs(`/objects/${id}/history?${interval}`, ADMIN, options);
  await page.getByRole('button', { name: /^Show the stop of 0?8:19/ }).click();
  const momentMs = async (): Promise<number> => Number(await slider(page).inputValue());
  await until(async () => (await momentMs()) === midnight(1) + 8 * HOUR_MS + 19 * MINUTE_MS, 'the stop');
  await page.locator('.trips [aria-current]', { hasText: 'Stop' }).waitFor();
  await page.getByRole('button', { name: 'Replay' }).click();
  await until(async () => (await momentMs()) >= midnight(1) + 9 * HOUR_MS - MINUTE_MS, 'the next trip');
  await page.locator('.trips .trip', { hasText: 'Trip 2' }).getByRole('link').click();
  await page.waitForURL((url) => url.searchParams.get('from') === String(midnight(1) + 9 * HOUR_MS - MINUTE_MS));
  await until(async () => (await page.locator('.trips li').count()) === 1, 'the trip alone');
});

test('sums up trips, and exports them as CSV', async () => {
  const id = await addVan('summed');
  const interval = `from=${midnight(1)}&to=${midnight(0) - 1}`;
  const page = await browser.openAs(`/objects/${id}/history?${interval}`, ADMIN, options);
  await page.getByText('2 trips · 59 km · 59 min moving · at most 60 km/h').waitFor();
  await page.locator('.trips .trip', { hasText: '40 km · 40 min · avg 60 km/h' }).waitFor();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Trips as CSV' }).click();
  expect((await download).suggestedFilename()).toBe('summed-trips.csv');
  const [head, ...lines] = readFileSync(await (await download).path(), 'utf8')
    .trim()
    .split('\r\n');
  expect(head).toContain('kind,from,to,seconds,metres');
  expect(lines.map((line) => line.split(',').slice(0, 5))).toEqual(
    expect.arrayContaining([
      [
        'trip',
        new Date(midnight(1) + 9 * HOUR_MS - MINUTE_MS).toISOString(),
        new Date(midnight(1) + 9 * HOUR_MS + 39 * MINUTE_MS).toISOString(),
        '2400',
        expect.stringMatching(/^(39|40)\d{3}$/),
      ],
    ]),
  );
});

test('shows the route without trips to a user who may not read tracks', async () => {
  const id = await addVan('untracked');
  await service.admin('POST', 'roles', {
    name: 'trackless',
    credentials: ['', '/:id', '/:id/packets', '/:id/model', '/:id/series'].map((path) => `GET /objects${path}`),
  });
  const login = await createUser(service, 'trackless');
  const interval = `from=${midnight(1)}&to=${midnight(0) - 1}`;
  const page = await browser.openAs(`/objects/${id}/history?${interval}`, login, options);
  await slider(page).waitFor();
  await page.locator('.track-map .map[data-drawn]').waitFor();
  expect(await page.locator('.trips').count()).toBe(0);
  expect(await page.getByRole('alert').count()).toBe(0);
});
