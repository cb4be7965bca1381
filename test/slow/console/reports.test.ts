/** The page of reports: mileage of a group and last week in four clicks, its address, totals, order, CSV, phone and paper. */
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { animationsEnd, findAxe } from '../../support/browser/axe.js';
import { useBrowser } from '../../support/browser/browser.js';
import { midnight, ZONE, ZONE_MS } from '../../support/browser/zone.js';
import { useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const HOURS_LATER_MS = 5 * HOUR_MS;
let vans: string;

/** In last week, whatever the day with which weeks begin: on a Sunday, only the Sunday before is in it with both of them. */
const lastWeekMs = (): number => {
  const weekday = new Date(midnight(0) + ZONE_MS).getUTCDay();
  return midnight(weekday === 0 ? 7 : weekday + 4) + 10 * HOUR_MS;
};

const drive = (startMs: number, minutes: number): object[] =>
  Array.from({ length: minutes + 11 }, (_, minute) => ({
    time: startMs + minute * MINUTE_MS,
    lat: 48,
    lon: 11 + Math.min(minute, minutes) / 100,
    speed: minute < minutes ? 45 : 0,
    ignition: minute < minutes,
  }));

beforeAll(async () => {
  vans = (await service.admin('POST', 'groups', { name: 'Vans' })).body._id;
  const create = async (id: string, packets: readonly object[]): Promise<void> => {
    await service.admin('POST', 'objects', { id, name: id, group: vans });
    if (packets.length > 0) await service.admin('POST', `objects/${id}/packets`, packets);
  };
  await create('van 2', drive(lastWeekMs(), 20));
  await create('van 10', [...drive(lastWeekMs(), 40), ...drive(lastWeekMs() + HOURS_LATER_MS, 10)]);
  await create('van 11', []);
  await service.admin('POST', 'objects', { id: 'other', name: 'other' });
});

/** From a time to today, as the address of the page has it. */
const daysOf = (fromMs: number): string => {
  const dayOf = (timeMs: number): string => new Date(timeMs).toLocaleDateString('sv', { timeZone: ZONE });
  return `from=${dayOf(fromMs)}&to=${dayOf(Date.now())}`;
};

/** Weeks and days are those of the reader. */
const open = (path: string, options: object = {}): Promise<Page> =>
  browser.openAs(path, undefined, { timezoneId: ZONE, ...options });

const namesIn = (page: Page): Promise<string[]> => page.locator('.report tbody td:first-child').allTextContents();
const shows = (page: Page, names: readonly string[]): Promise<void> =>
  eventually(async () => expect(await namesIn(page)).toEqual(names));

test('shows the mileage of a group for last week in four clicks, and the same at its address', async () => {
  const page = await open('/');
  await page.getByRole('link', { name: 'Reports' }).click();
  await page.getByRole('button', { name: 'Last week' }).click();
  // A click opens the list, another one chooses.
  await page.getByLabel('Group').selectOption({ label: 'Vans' });
  await shows(page, ['van 2', 'van 10', 'van 11']);
  const foot = page.locator('.report tfoot');
  await eventually(async () => expect(await foot.textContent()).toContain('3 objects, 3 rows'));
  const address = new URL(page.url());
  expect(Object.fromEntries(address.searchParams)).toEqual({ range: 'lastWeek', group: vans });
  await page.reload();
  await shows(page, ['van 2', 'van 10', 'van 11']);
  await page.getByRole('button', { name: 'Distance' }).click();
  await shows(page, ['van 10', 'van 2', 'van 11']);
  await eventually(async () =>
    expect(await page.locator('th[aria-sort=descending]').textContent()).toContain('Distance'),
  );
});

test('has a row for each day, trips that lead to the history, and the whole report as CSV', async () => {
  const page = await open(`/reports?range=lastWeek&group=${vans}&every=1+day`);
  await eventually(async () => expect((await namesIn(page)).length).toBe(21));
  await page.getByRole('button', { name: 'Trips' }).first().click();
  await shows(page, ['van 2', 'van 10', 'van 10']);
  const link = page.locator('.report tbody a').first();
  await eventually(async () =>
    expect(await link.getAttribute('href')).toMatch(/^\/objects\/[0-9a-f]{24}\/history\?from=\d+&to=\d+$/),
  );
  const csv = (await page.getByRole('link', { name: 'CSV' }).getAttribute('href')) as string;
  const { text, headers } = await service.admin('GET', csv);
  expect(headers['content-disposition']).toMatch(/filename="trips-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv"/);
  expect(text.trimEnd().split('\r\n')).toHaveLength(1 + 3);
});

test('applies days that are typed at Enter, and leaves those of no year that there is', async () => {
  const page = await open('/reports');
  const field = (name: string) => page.getByLabel(name, { exact: true });
  const enter = async (name: string, day: string): Promise<void> => {
    await field(name).fill(day);
    await field(name).press('Enter');
  };
  const asks = (days: object) =>
    page.waitForURL(({ searchParams }) => Object.entries(days).every(([name, day]) => searchParams.get(name) === day));
  await enter('From', '2026-02-03');
  await asks({ from: '2026-02-03' });
  await enter('To', '2026-02-25');
  await asks({ from: '2026-02-03', to: '2026-02-25' });
  await enter('From', '12026-02-01');
  await eventually(async () => expect(await field('From').inputValue()).toBe('2026-02-03'));
  await asks({ from: '2026-02-03', to: '2026-02-25' });
});

test('says the day, the place and the id in words, and one thing as one', async () => {
  await service.admin('POST', 'objects', { id: 'lone', name: 'Lone van' });
  await service.admin('POST', 'objects/lone/packets', drive(lastWeekMs(), 20));
  const page = await open('/reports?range=lastWeek&objects=lone&kind=trips');
  const heads = page.locator('.report thead th');
  const foot = page.locator('.report tfoot');
  await eventually(async () =>
    expect(await heads.allTextContents()).toEqual(expect.arrayContaining(['Object', 'Id', 'Start', 'End'])),
  );
  await eventually(async () => expect(await foot.textContent()).toContain('1 object, 1 trip'));
  const place = page.getByRole('link', { name: '48.00000, 11.00000' });
  await eventually(async () => expect(await place.getAttribute('href')).toBe('/?at=48.00000,11.00000,15'));
  await page.getByRole('button', { name: 'Mileage' }).click();
  await page.getByLabel('One row for each').selectOption({ label: 'Day' });
  await eventually(async () => expect((await heads.allTextContents()).slice(0, 3)).toEqual(['Object', 'Id', 'Day']));
  const day = new Date(lastWeekMs()).toLocaleDateString('en-GB', {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    timeZone: ZONE,
  });
  await page.locator('.report tbody td', { hasText: day }).waitFor();
  await service.admin('DELETE', 'objects/lone');
});

test('keeps the object in view on a phone, and the totals on paper to the end', async () => {
  const page = await open(`/reports?range=lastWeek&group=${vans}`, browser.phone);
  await shows(page, ['van 2', 'van 10', 'van 11']);
  const first = page.locator('.report tbody td').first();
  const leftOf = async (): Promise<number> => (await first.boundingBox())?.x ?? -1;
  const before = await leftOf();
  await page.evaluate('document.querySelector(".report .table").scrollLeft = 100');
  await eventually(async () =>
    expect(await page.evaluate('document.querySelector(".report .table").scrollLeft')).toBe(100),
  );
  await eventually(async () => expect(await leftOf()).toBe(before));
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/reports-phone-scrolled.png` });
  await page.emulateMedia({ media: 'print' });
  const display = (element: string) => page.evaluate(`getComputedStyle(document.querySelector("${element}")).display`);
  await eventually(async () => expect(await display('.report tfoot')).toBe('table-row-group'));
  await eventually(async () => expect(await display('.report .sort')).toBe('contents'));
  await page.getByText('Distance').waitFor();
});

test('asks for a parameter, and shows how long it had each value', async () => {
  const page = await open(`/reports?range=lastWeek&group=${vans}&kind=utilization`);
  await page.getByText('Name the parameter').waitFor();
  await page.getByLabel('Parameter').fill('ignition');
  await page.keyboard.press('Enter');
  await eventually(async () => expect(await page.locator('.report tbody tr').count()).toBe(4));
  await eventually(async () => expect(await page.locator('.report tbody').textContent()).toContain('Yes'));
  // A sum for each value; the sum of all says nothing.
  await eventually(async () =>
    expect(await page.locator('.report tfoot tr').allTextContents()).toEqual([
      expect.stringMatching(/^Total: 3 objects, 4 rows(Yes|No)/),
      expect.stringMatching(/^(Yes|No)\d/),
    ]),
  );
});

test('hands over a shift: when an object was offline, who wrote and sent what', async () => {
  const id = 'handed over';
  await service.admin('POST', 'objects', { id, name: id });
  const sinceMs = Date.now() - MINUTE_MS;
  await service.admin('POST', `objects/${id}/packets`, [{ time: sinceMs, online: false }]);
  expect(
    (await service.admin('POST', `objects/${id}/notes`, { text: `Check the door${' again'.repeat(60)}` })).status,
  ).toBe(200);
  expect((await service.admin('POST', `objects/${id}/commands/stop`, {})).status).toBe(200);
  const days = daysOf(sinceMs);
  const page = await open(`/reports?kind=shift&objects=${encodeURIComponent(id)}&${days}`);
  const rows = page.locator('.report tbody tr');
  await eventually(async () => {
    const texts = (await rows.allTextContents()).sort();
    expect(texts).toHaveLength(3);
    expect(texts.find((text) => text.includes('Offline'))).toBeDefined();
    expect(texts.find((text) => text.includes('Note'))).toMatch(/admin.*Check the door/);
    expect(texts.find((text) => text.includes('Command'))).toMatch(/Queued.*admin.*stop/);
  });
  // A long note takes several lines, so that nothing beside it is pushed out of the page.
  const table = page.locator('.report .table');
  await eventually(async () => {
    expect(await table.evaluate((one) => one.scrollWidth <= one.clientWidth)).toBe(true);
  });
  expect(await page.getByLabel('One row for each').count()).toBe(0);
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/reports-shift.png` });
});

test('has no fault of accessibility in either theme, on a phone, and nothing wider than it', async () => {
  const axe = await findAxe();
  const page = await open(`/reports?range=lastWeek&group=${vans}`);
  for (const [theme, width] of [
    ['light', 1_280],
    ['dark', 1_280],
    ['light', 360],
    ['dark', 360],
  ] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height: 800 });
    await page.locator(`html[data-theme=${theme}]`).waitFor();
    await animationsEnd(page);
    await shows(page, ['van 2', 'van 10', 'van 11']);
    await page.evaluate(axe);
    const found = (await page.evaluate(
      'axe.run().then(({ violations }) => violations.map(({ id }) => id))',
    )) as string[];
    expect([theme, width, found]).toEqual([theme, width, []]);
    const scrolls = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
    expect([theme, width, scrolls]).toEqual([theme, width, false]);
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/reports-${theme}-${width}.png` });
  }
  await page.setViewportSize({ width: 1_280, height: 800 });
  await page.emulateMedia({ media: 'print', colorScheme: 'light' });
  await eventually(async () => expect(await page.locator('.report-choices').isVisible()).toBe(false));
  await eventually(async () => expect(await page.getByText('Distance').isVisible()).toBe(true));
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/reports-print.png` });
});
