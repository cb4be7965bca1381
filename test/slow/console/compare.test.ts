/** The page that compares numbers of objects: its address, values at the pointer, zoom, live packets, rights that are lost. */
import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { animationsEnd, findAxe } from '../../support/browser/axe.js';
import { boxOf } from '../../support/browser/box.js';
import { useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
const MINUTE_MS = 60_000;
const MINUTES = 120;
const endMs = Math.floor(Date.now() / MINUTE_MS - 1) * MINUTE_MS;
let model: string;

const create = async (store: string, fields: object): Promise<string> =>
  (await service.admin('POST', store, fields)).body._id;

/** Two hours, a packet a minute: the temperature begins at `from` and rises by 0.1 a minute. */
async function addSensor(id: string, from: number): Promise<string> {
  const _id = await create('objects', { id, name: `Sensor ${id}`, model });
  const packets = Array.from({ length: MINUTES }, (_, minute) => ({
    time: endMs - (MINUTES - 1 - minute) * MINUTE_MS,
    temperature: Math.round((from + minute / 10) * 10) / 10,
    humidity: 40 + (minute % 7),
    power: 100 * minute,
  }));
  await service.admin('POST', `objects/${id}/packets`, packets);
  return _id;
}

beforeAll(async () => {
  const argument = (id: string, unit: string) => ({ type: 'argument', id, name: id, dataType: 'number', unit });
  const children = [argument('temperature', '°C'), argument('humidity', '%'), argument('power', 'W')];
  model = await create('models', { name: 'Sensor', data: { children } });
  for (const [nth, id] of ['north', 'south', 'west'].entries()) await addSensor(id, nth * 10);
});

const open = (series: string, more = ''): Promise<Page> => browser.openAs(`/compare?series=${series}${more}`);
const rows = (page: Page) => page.locator('.compare-legend tbody tr');
/** The texts of the legend, one line for each series. */
const legendOf = (page: Page): Promise<string[][]> =>
  rows(page).evaluateAll((all: { children: Iterable<{ textContent: string | null }> }[]) =>
    all.map(({ children }) => [...children].slice(0, -1).map(({ textContent }) => (textContent ?? '').trim())),
  );
const shows = (page: Page, expected: readonly (readonly string[])[]): Promise<void> =>
  eventually(async () => expect(await legendOf(page)).toEqual(expected));
const queryOf = (page: Page): Record<string, string> => Object.fromEntries(new URL(page.url()).searchParams);

test('leads from the history to the same numbers, and adds those of another object with the keyboard', async () => {
  const page = await browser.openAs('/objects/north/history?charts=temperature');
  await page.locator('.uplot').waitFor();
  await page.getByRole('link', { name: 'Compare' }).click();
  await shows(page, [['Sensor north temperature °C', '11.9', '0', '5.95', '11.9']]);
  const search = page.getByRole('combobox', { name: 'Add numbers of an object' });
  await search.focus();
  await page.keyboard.type('sou');
  await page.getByRole('option', { name: 'Sensor south' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'temperature', exact: true }).press('Enter');
  const both = [
    ['Sensor north temperature °C', '11.9', '0', '5.95', '11.9'],
    ['Sensor south temperature °C', '21.9', '10', '15.95', '21.9'],
  ];
  await shows(page, both);
  await page.reload();
  await shows(page, both);
  await page.goBack();
  await shows(page, both.slice(0, 1));
  await page.goForward();
  await page.getByRole('button', { name: 'Remove Sensor north · temperature' }).click();
  await shows(page, both.slice(1));
});

test('opens from Ctrl-K, and says what to do without a series', async () => {
  const page = await browser.openAs('/account/profile');
  await page.getByRole('heading').first().waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('compare');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: /Find an object/ }).waitFor();
  await page.waitForURL(/\/compare$/);
});

test('says what all series were at the moment of the pointer', async () => {
  const from = new Date(endMs - 60 * MINUTE_MS).toISOString();
  const page = await open('north:temperature,south:temperature', `&from=${from}&to=${new Date(endMs).toISOString()}`);
  const moment = page.getByRole('slider', { name: 'Moment' });
  await shows(page, [
    ['Sensor north temperature °C', '11.9', '5.9', '8.9', '11.9'],
    ['Sensor south temperature °C', '21.9', '15.9', '18.9', '21.9'],
  ]);
  await moment.press('Home');
  const valuesAt = async () => (await legendOf(page)).map((row) => row[1]);
  await eventually(async () => expect(await valuesAt()).toEqual(['5.9', '15.9']));
  await eventually(async () =>
    expect(await moment.getAttribute('aria-valuetext')).toMatch(
      /, Sensor north temperature 5.9 °C, Sensor south temperature 15.9 °C$/,
    ),
  );
  const box = await boxOf(page.locator('.u-over'));
  await page.mouse.move(box.x + box.width / 2, box.y + 50);
  await eventually(async () => expect(await valuesAt()).toEqual(['8.9', '18.9']));
});

test('zooms by dragging, moves with Shift, and shows the whole interval again', async () => {
  const page = await open('north:temperature', '&hours=6');
  await page.locator('.chart[data-points="600"]').waitFor();
  const over = page.locator('.u-over');
  const drag = async (from: number, to: number): Promise<void> => {
    const box = await boxOf(over);
    await page.mouse.move(box.x + box.width * from, box.y + 100);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to, box.y + 100, { steps: 4 });
    await page.mouse.up();
  };
  const zoomOf = () => (queryOf(page).zoom ?? '').split(',').map(Number) as [number, number];
  await drag(0.7, 0.9);
  await eventually(async () => expect(zoomOf()[1] - zoomOf()[0]).toBeGreaterThan(60 * MINUTE_MS));
  const [from, to] = zoomOf();
  expect(to - from).toBeLessThan(84 * MINUTE_MS);
  await page.keyboard.down('Shift');
  await drag(0.2, 0.7);
  await page.keyboard.up('Shift');
  await eventually(async () => expect(zoomOf()[0]).toBeLessThan(from - 20 * MINUTE_MS));
  expect(zoomOf()[1] - zoomOf()[0]).toBe(to - from);
  await page.goBack();
  await eventually(async () => expect(zoomOf()).toEqual([from, to]));
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await eventually(async () => expect(zoomOf()[1] - zoomOf()[0]).toBeLessThan((to - from) / 2 + 2));
  await page.getByRole('button', { name: 'Reset zoom' }).click();
  await eventually(async () => expect(queryOf(page)).toEqual({ series: 'north:temperature', hours: '6' }));
  await page.getByRole('button', { name: '1 hour' }).click();
  await eventually(async () => expect(queryOf(page)).toEqual({ series: 'north:temperature', hours: '1' }));
});

test('has one chart for at most two units, one for each of more, and one for each series on request', async () => {
  const page = await open('north:temperature,south:temperature,north:humidity');
  const charts = page.locator('.u-over');
  await eventually(async () => expect(await charts.count()).toBe(1));
  await page.getByRole('button', { name: 'Below each other' }).click();
  await eventually(async () => expect(await charts.count()).toBe(3));
  await eventually(async () => expect(queryOf(page).as).toBe('below'));
  await page.goto(`${service.url}/compare?series=north:temperature,south:temperature,north:humidity,north:power`);
  await page.getByText('there is one for each unit').waitFor();
  await eventually(async () => expect(await charts.count()).toBe(3));
});

test('adds packets as they come', async () => {
  await addSensor('live', 0);
  const page = await open('live:temperature,north:temperature', '&hours=1');
  await eventually(async () => expect((await legendOf(page))[0]?.[1]).toBe('11.9'));
  await service.admin('POST', 'objects/live/packets', { temperature: 77 });
  await eventually(async () =>
    expect((await legendOf(page)).map((row) => [row[1], row[4]])).toEqual([
      ['77', '77'],
      ['11.9', '11.9'],
    ]),
  );
});

test('says which objects are gone, cannot be read or have no numbers, and shows the others', async () => {
  const gone = await addSensor('gone', 0);
  await service.admin('POST', 'roles', {
    name: 'one-series',
    credentials: [
      'GET /objects',
      'GET /objects/:id',
      'GET /objects/:id/model',
      'GET /objects/north/series',
      'GET /objects/gone/series',
    ],
  });
  const user = await createUser(service, 'one-series');
  browser.expectErrors(/status of 40[34]/);
  const page = await browser.openAs(
    '/compare?series=north:temperature,gone:temperature,north:nothing,south:temperature',
    user,
  );
  const seen = ['Sensor north temperature °C', '11.9', '0', '5.95', '11.9'];
  const none = ['Sensor north nothing', 'No numbers in this interval'];
  const forbidden = ['Sensor south temperature °C', 'Your role does not permit to read its history.'];
  await shows(page, [seen, ['Sensor gone temperature °C', '11.9', '0', '5.95', '11.9'], none, forbidden]);
  await service.admin('DELETE', `objects/${gone}`);
  const lost = ['gone temperature °C', 'The object is gone, or you do not see it any more.'];
  await eventually(async () => expect((await legendOf(page))[1]?.[1]).toBe(lost[1]));
  await page.reload();
  await eventually(async () =>
    expect((await legendOf(page)).map((row) => row[1])).toEqual([seen[1], lost[1], none[1], forbidden[1]]),
  );
});

test('saves what is shown as CSV', async () => {
  const page = await open('north:temperature,south:humidity', '&hours=6');
  await page.locator('.chart[data-points="600"]').waitFor();
  await eventually(async () => expect((await legendOf(page)).map((row) => row[1])).toEqual(['11.9', '40']));
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV' }).click(),
  ]);
  const lines = readFileSync(await download.path(), 'utf8')
    .trimEnd()
    .split('\r\n');
  expect(lines[0]).toBe('\uFEFFTime,Sensor north · temperature (°C),Sensor south · humidity (%)');
  expect(lines).toHaveLength(1 + MINUTES);
  expect(lines.at(-1)).toMatch(/^20\d\d-.*Z,11.9,40$/);
});

test('has no fault of accessibility in either theme, on a phone, and nothing wider than it', async () => {
  const axe = await findAxe();
  const series = ['north', 'south', 'west'].flatMap((id) => [`${id}:temperature`, `${id}:humidity`]).join();
  const page = await open(series, '&hours=6');
  for (const [theme, width] of [
    ['light', 1_280],
    ['dark', 1_280],
    ['light', 360],
    ['dark', 360],
  ] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height: 1_200 });
    await page.locator(`html[data-theme=${theme}]`).waitFor();
    await page.locator('.chart[data-points="600"]').waitFor();
    await animationsEnd(page);
    await page.evaluate(axe);
    const found = (await page.evaluate(
      'axe.run().then(({ violations }) => violations.map(({ id }) => id))',
    )) as string[];
    expect([theme, width, found]).toEqual([theme, width, []]);
    const scrolls = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
    expect([theme, width, scrolls]).toEqual([theme, width, false]);
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/compare-${theme}-${width}.png` });
  }
  await page.setViewportSize({ width: 1_280, height: 1_200 });
  await page.emulateMedia({ media: 'print', colorScheme: 'light' });
  await eventually(async () => expect(await page.locator('.compare-add').isVisible()).toBe(false));
  await eventually(async () => expect(await page.locator('.compare-legend').isVisible()).toBe(true));
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/compare-print.png` });
});
