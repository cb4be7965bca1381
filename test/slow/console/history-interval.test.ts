/** The interval of a history is typed as in every other form: fields keep the focus and what is in them, and Enter applies. */
import { expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const MINUTE_MS = 60_000;

async function openHistory(id: string, query: string, lastMs = Date.now()): Promise<Page> {
  const { body } = await service.admin('POST', 'objects', { id, name: id });
  await service.admin(
    'POST',
    `objects/${id}/packets`,
    [1, 2].map((speed) => ({ time: lastMs - 2 + speed, speed })),
  );
  const page = await browser.openAs(`/objects/${body._id}/history${query}`);
  await page.locator('.bounds').waitFor();
  return page;
}

const fieldsOf = (page: Page) => ({
  from: page.getByLabel('From', { exact: true }),
  to: page.getByLabel('To', { exact: true }),
});
const isFocused = (field: Locator): Promise<boolean> => field.and(field.page().locator(':focus')).isVisible();
const waitForQuery = (page: Page, name: 'from' | 'to', text: string): Promise<void> =>
  page.waitForURL((url) => {
    const given = url.searchParams.get(name) ?? '';
    return new Date(/^\d+$/.test(given) ? Number(given) : given).getTime() === new Date(text).getTime();
  });

test('keeps the focus and the text of a field while the other one is applied', async () => {
  const page = await openHistory('typed', '');
  const { from, to } = fieldsOf(page);
  await from.fill('2026-02-03T10:15');
  await to.focus();
  await to.fill('2026-02-04T11:30');
  await waitForQuery(page, 'from', '2026-02-03T10:15');
  expect(await isFocused(to)).toBe(true);
  await eventually(async () => expect(await to.inputValue()).toBe('2026-02-04T11:30'));
  await eventually(async () => expect(await from.inputValue()).toBe('2026-02-03T10:15'));
  await page.keyboard.press('Enter');
  await waitForQuery(page, 'to', '2026-02-04T11:30');
  await waitForQuery(page, 'from', '2026-02-03T10:15');
  expect(await isFocused(to)).toBe(true);
});

test('applies the keys of one field, one after the other, at Enter alone', async () => {
  const page = await openHistory('keyed', '?from=1770000000000&to=1770864000000');
  const { from } = fieldsOf(page);
  const before = page.url();
  await from.focus();
  await page.keyboard.press('ArrowDown');
  expect(page.url()).toBe(before);
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.href !== before);
  expect(await isFocused(from)).toBe(true);
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.href === before);
});

test('keeps what is typed when newer packets move the interval meanwhile', async () => {
  const page = await openHistory('moving', '', Date.now() - 30 * MINUTE_MS);
  const { from, to } = fieldsOf(page);
  const toBefore = await to.inputValue();
  await from.fill('2026-02-03T10:15');
  await service.admin('POST', 'objects/moving/packets', { speed: 3 });
  await service.admin('PATCH', 'objects/moving', { status: 'moved' });
  await until(async () => (await to.inputValue()) !== toBefore, 'the interval moves with the last packet');
  await eventually(async () => expect(await from.inputValue()).toBe('2026-02-03T10:15'));
  expect(await isFocused(from)).toBe(true);
});

test('leaves the seconds of a bound that nobody typed', async () => {
  const page = await openHistory('exact', '?from=1770000030500&to=1770000150500');
  const { to } = fieldsOf(page);
  await to.fill('2026-02-03T00:00');
  await page.keyboard.press('Enter');
  await waitForQuery(page, 'to', '2026-02-03T00:00');
  expect(new URL(page.url()).searchParams.get('from')).toBe('1770000030500');
});

test.each(['1970-01-02T00:00', '1972-12-31T23:59', '1969-07-20T20:17', '2001-09-09T01:46'])(
  'shows the interval from %s, whose number alone is no time of an address',
  async (text) => {
    const page = await openHistory(`from-${text}`.replace(':', '-'), '');
    const { from } = fieldsOf(page);
    await from.fill(text);
    await page.keyboard.press('Enter');
    await waitForQuery(page, 'from', text);
    await page.reload();
    await eventually(async () => expect(await from.inputValue()).toBe(text));
  },
);

const DAY_BEFORE = '2026-02-03T23:59';
test.each([
  ['?from=2026-02-02', '2026-02-02T00:00', '2026-02-04T10:15'],
  ['?to=2026-02-03', '2026-02-02T23:59', DAY_BEFORE],
  ['?from=2026-02-02&to=2026-02-03', '2026-02-02T00:00', DAY_BEFORE],
  ['?from=20260202&to=2026-02-03', '2026-02-02T23:59', DAY_BEFORE],
  ['?from=2026-02-05', '2026-02-03T10:15', '2026-02-04T10:15'],
  ['?from=1770000000&to=tomorrow', '2026-02-03T10:15', '2026-02-04T10:15'],
])('shows the interval of an address that names one bound, or a day: %s', async (query, fromText, toText) => {
  const page = await openHistory(`bounds-${query.replace(/\W/g, '-')}`, query, Date.UTC(2026, 1, 4, 10, 14, 30));
  const { from, to } = fieldsOf(page);
  const utc = async (field: Locator): Promise<string> => new Date(await field.inputValue()).toISOString().slice(0, 16);
  await eventually(async () => expect([await utc(from), await utc(to)]).toEqual([fromText, toText]));
});

test('shows an interval that is chosen elsewhere in place of one that was wrong', async () => {
  const page = await openHistory('wrong', '?from=1770000000000&to=1770000060000', 1770000060000);
  const { from } = fieldsOf(page);
  const before = await from.inputValue();
  await from.fill('2031-01-01T00:00');
  await page.keyboard.press('Enter');
  await page.getByText('“From” must be before “To”.').waitFor();
  await page.getByRole('button', { name: '1 hour' }).click();
  await page.getByText('“From” must be before “To”.').waitFor({ state: 'detached' });
  await eventually(async () =>
    expect(new Date(before).getTime() - new Date(await from.inputValue()).getTime()).toBe(59 * MINUTE_MS),
  );
});

test('leads to the interval before, the one after and a longer one with the keyboard', async () => {
  const fromMs = 1770000000000;
  const toMs = 1770086399999;
  const page = await openHistory('shifted', `?from=${fromMs}&to=${toMs}&charts=speed`, toMs);
  const press = async (name: string, from: number, to: number): Promise<void> => {
    await page.getByRole('button', { name, exact: true }).press('Enter');
    await page.waitForURL((url) => url.search === `?from=${from}&to=${to}&charts=speed`);
  };
  await press('Earlier', fromMs - 86_400_000, toMs - 86_400_000);
  await press('Later', fromMs, toMs);
  await press('Longer interval', fromMs - 86_399_999, toMs + 86_399_999);
  await page.getByRole('button', { name: 'Today' }).click();
  await page.getByRole('button', { name: 'Later', exact: true }).and(page.locator(':disabled')).waitFor();
});
