/** The first page: what narrows its list and its map is in its address. */
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { entityOf } from '../../support/answers.js';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);
const browserWithMaps = useBrowser(service);
let north: string = '';
let pump: string = '';

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

beforeAll(async () => {
  north = await create('groups', { name: 'North' });
  const harbour = await create('groups', { name: 'Harbour', parent: north });
  pump = await create('models', { name: 'Pump' });
  const place = (index: number) => ({ lat: 50 + index, lon: 10 + index, speed: index });
  const objects = [
    { id: 'a', name: 'In the north', group: north, labels: ['cold', 'wet'] },
    { id: 'b', name: 'In the harbour', group: harbour, model: pump },
    { id: 'c', name: 'Elsewhere', labels: ['cold'] },
  ];
  for (const [index, fields] of objects.entries()) {
    await create('objects', fields);
    await service.admin('POST', `objects/${fields.id}/packets`, { ...place(index), online: index !== 2 });
  }
});

async function expectRows(page: Page, names: readonly string[]): Promise<void> {
  const rows = page.locator('.row-name');
  await until(async () => (await rows.allTextContents()).join() === names.join(), `the rows ${names.join()}`);
}

test('says nothing of the number of objects until they are loaded', async () => {
  const page = await browser.openAs('/account/profile');
  const [held, release] = createDeferred<void>();
  await page.route(/\/api\/v1\/objects\?/, async (route) => {
    await held;
    await route.continue();
  });
  await page.goto(`${service.url}/welcome`);
  await page.getByRole('heading', { name: 'Add an object' }).waitFor();
  await page.goto(service.url);
  await page.getByText('Loading objects').waitFor();
  expect(await page.locator('.side-head').textContent()).not.toMatch(/\d/);
  release();
  await page.getByText('3 objects', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'All 3' }).waitFor();
});

test('says nothing of the number of objects when they cannot be loaded', async () => {
  const page = await browser.openAs('/account/profile');
  browser.expectErrors(/500/);
  await page.route(/\/api\/v1\/objects\?/, (route) => route.fulfill({ status: 500, json: { success: false } }));
  await page.goto(service.url);
  await page.getByRole('button', { name: 'Try again' }).waitFor();
  expect(await page.locator('.side-head').textContent()).not.toMatch(/\d|Loading/);
});

test('narrows to a group with all groups below it, to a model and to a label', async () => {
  const page = await browser.openAs('/');
  await page.locator('.row', { hasText: 'Elsewhere' }).waitFor();
  await page.getByText('Filter', { exact: true }).click();
  const choose = async (label: string, option: string, gone: string): Promise<void> => {
    await page.getByLabel(label, { exact: true }).selectOption(option);
    await page.locator('.row', { hasText: gone }).waitFor({ state: 'detached' });
  };
  await choose('Group', 'North', 'Elsewhere');
  await expectRows(page, ['In the harbour', 'In the north']);
  await page.waitForURL(new RegExp(`group=${north}`));
  await choose('Model', 'Pump', 'In the north');
  await expectRows(page, ['In the harbour']);
  await page.getByLabel('Model', { exact: true }).selectOption('All');
  await page.locator('.row', { hasText: 'In the north' }).waitFor();
  await choose('Label', 'wet', 'In the harbour');
  await expectRows(page, ['In the north']);
});

test('shows what an address says, also when it is opened by somebody else', async () => {
  const page = await browser.openAs(`/?group=${north}&show=online&search=in`);
  await page.locator('.row', { hasText: 'In the harbour' }).waitFor();
  await expectRows(page, ['In the harbour', 'In the north']);
  await page.goto(`${service.url}/?label=cold&show=offline`);
  await page.locator('.row', { hasText: 'Elsewhere' }).waitFor();
  await expectRows(page, ['Elsewhere']);
  await page.goto(`${service.url}/?model=${pump}`);
  await page.locator('.row', { hasText: 'In the harbour' }).waitFor();
  await expectRows(page, ['In the harbour']);
});

test('says in the address where its map is, and begins there again', async () => {
  const page = await browserWithMaps.openAs('/', ADMIN);
  await page.locator('.map[data-drawn]').waitFor();
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await page.waitForURL(/at=/);
  const at = new URL(page.url()).searchParams.get('at') ?? '';
  expect(at).toMatch(/^-?\d+\.\d{5},-?\d+\.\d{5},\d+\.\d{2}$/);
  await page.reload();
  await page.locator('.map[data-drawn]').waitFor();
  await page.getByRole('button', { name: 'Zoom out' }).click();
  await page.waitForURL((url) => !url.searchParams.get('at')?.endsWith(at.split(',')[2] as string));
  const [lat = 0, lon = 0, zoom = 0] = (new URL(page.url()).searchParams.get('at') ?? '').split(',').map(Number);
  const [lat0 = 0, lon0 = 0, zoom0 = 0] = at.split(',').map(Number);
  expect([Math.abs(lat - lat0) < 0.01, Math.abs(lon - lon0) < 0.01]).toEqual([true, true]);
  expect(zoom).toBeCloseTo(zoom0 - 1, 1);
});

/** A text and the age of what was sent then: minutes if the page took longer than one to show it. */
function agoOf(text: string, sentMs: number): RegExp {
  const minutes = Math.round((Date.now() - sentMs) / 60_000);
  const age = Date.now() - sentMs < 60_000 ? '(now|\\d+ sec\\. ago|\\d+ sec ago)' : `${minutes} min\\.? ago`;
  return new RegExp(`^${text} · ${age}$`);
}

test('counts what objects do, filters by it, and says it in a sentence', async () => {
  const agoMs = Date.now() - 3 * 3_600_000;
  const packets = {
    'Act drives': { speed: 51.4, course: 44, fuel: 30 },
    'Act stands': { speed: 0, course: 10 },
    'Act sleeps': { speed: 0, time: agoMs },
    'Act warms': { temperature: 4, time: agoMs },
    'Act left': { speed: 8, online: false },
  };
  const sentMs = Date.now();
  for (const [name, packet] of Object.entries(packets)) {
    await create('objects', { id: name, name, labels: ['act'] });
    await service.admin('POST', `objects/${name}/packets`, { time: sentMs, ...packet });
  }
  await service.admin('PATCH', 'objects/Act warms', { config: { offlineAfter: '1 day' } });
  const page = await browser.openAs('/?label=act');
  const chip = (name: string) => page.locator('.chips').getByRole('button', { name, exact: true });
  for (const name of [
    'All 5',
    'Moving 1',
    'Standing 1',
    'Silent 1',
    'Offline 1',
    'Online 4',
    'Critical 0',
    'Warning 0',
  ])
    await chip(name).waitFor();
  const note = (name: string) => page.locator('.row', { hasText: name }).locator('.row-note');
  await note('Act drives').getByText('Moving 51 km/h north-east').waitFor();
  // Its speed is in the sentence.
  await eventually(async () =>
    expect(await page.locator('.row', { hasText: 'Act drives' }).locator('.row-value').textContent()).toBe('30 fuel'),
  );
  await eventually(async () => expect(await note('Act stands').textContent()).toMatch(agoOf('Standing', sentMs)));
  await note('Act sleeps').getByText('Silent · 3 hr ago').waitFor();
  await note('Act left')
    .getByText(/^Offline · /)
    .waitFor();
  await eventually(async () => expect(await note('Act warms').textContent()).toMatch(/^Online\s+3 hr ago$/));
  for (const [name, rows] of [
    ['Moving 1', ['Act drives']],
    ['Silent 1', ['Act sleeps']],
    ['Offline 1', ['Act left']],
    ['Online 4', ['Act drives', 'Act sleeps', 'Act stands', 'Act warms']],
    ['Standing 1', ['Act stands']],
  ] as const) {
    await chip(name).click();
    await expectRows(page, rows);
  }
  await page.waitForURL(/show=standing/);
  // It stays what it is while it is shown: what begins to move leaves.
  await service.admin('POST', 'objects/Act stands/packets', { speed: 20, course: 360 });
  await chip('Standing 0').waitFor();
  await page.getByText('No objects match.').waitFor();
  await chip('Moving 2').click();
  await note('Act stands').getByText('Moving 20 km/h', { exact: true }).waitFor();
  await service.admin('POST', 'objects/Act stands/packets', { speed: 0 });
  await chip('All 5').click();
  await note('Act stands').getByText('Standing for 1 min').waitFor();
  await page.reload();
  await note('Act drives').getByText('Moving 51 km/h north-east').waitFor();
  expect(new URL(page.url()).searchParams.get('show')).toBeNull();
});

test('says how fast an object is in the unit of its model', async () => {
  const data = { children: [{ id: 'speed', name: 'Speed', type: 'argument', unit: 'kn' }] };
  const { body: model } = await service.admin('POST', 'models', { name: 'Ship', data });
  const { body: object } = await service.admin('POST', 'objects', { id: 'ship', name: 'Ship', model: model._id });
  const send = () => service.admin('POST', 'objects/ship/packets', { speed: 12 });
  await send();
  const page = await browser.openAs('/');
  const says = async (place: string): Promise<void> => {
    await page.locator(place).getByText('Moving 12 kn').waitFor();
    // After a minute it would say how old it is.
    await send();
    await page.locator(place).getByText('Moving 12 kn', { exact: true }).waitFor();
  };
  await says('.row');
  await page.goto(`${service.url}/?object=${object._id}`);
  await says('.card-sentence');
});

test('says in the card since when an object stands, also from before the page was opened', async () => {
  const fromMs = Date.now() - 50 * 60_000;
  const drive = [50, 40, 0, 0, 0].map((speed, index) => ({ speed, time: fromMs + index * 600_000 }));
  const { body: object } = await service.admin('POST', 'objects', { id: 'stopped', name: 'Stopped' });
  await service.admin('POST', 'objects/stopped/packets', drive);
  const page = await browser.openAs(`/?object=${object._id}`);
  const standing = (): string => `Standing for ${Math.floor((Date.now() - fromMs) / 60_000) - 20} min`;
  const row = page.locator('.row', { hasText: 'Stopped' });
  await eventually(async () => expect(await page.locator('.card-sentence').textContent()).toBe(standing()));
  await eventually(async () => expect(await row.textContent()).toContain(standing()));
  await service.admin('POST', 'objects/stopped/packets', { speed: 30 });
  await page.locator('.card-sentence').getByText('Moving 30 km/h').waitFor();
});

test('orders by the worst open alarm, or as chosen, and keeps the order in the address', async () => {
  const add = async (name: string, fields: object, packet: object): Promise<void> => {
    await create('objects', { id: name, name, labels: ['ordered'], ...fields });
    await service.admin('POST', `objects/${name}/packets`, packet);
  };
  const rule = (severity: string, value: number) =>
    create('rules', {
      name: severity,
      severity,
      select: { labels: ['ordered'] },
      when: { param: 'heat', op: '>', value },
    });
  await rule('warning', 10);
  await rule('critical', 20);
  const from = Date.now() - 60_000;
  await add('Row 10', { group: north }, { heat: 0, time: from + 1_000 });
  await add('Row 2', { model: pump }, { heat: 15, time: from + 3_000 });
  await add('Row 3', {}, { heat: 25, time: from });
  await add('Row 1', {}, { heat: 0, time: from + 2_000 });
  const page = await browser.openAs('/?label=ordered');
  await expectRows(page, ['Row 3', 'Row 2', 'Row 1', 'Row 10']);
  await page.locator('.chips').getByRole('button', { name: 'Critical 1' }).click();
  await expectRows(page, ['Row 3']);
  await page.locator('.chips').getByRole('button', { name: 'Warning 1' }).click();
  await expectRows(page, ['Row 2']);
  await page.locator('.chips').getByRole('button', { name: 'All 4' }).click();
  const choose = (label: string) => page.getByLabel('Order').selectOption(label);
  await choose('By name');
  await expectRows(page, ['Row 1', 'Row 2', 'Row 3', 'Row 10']);
  await page.waitForURL(/sort=name/);
  await choose('Last seen first');
  await expectRows(page, ['Row 2', 'Row 1', 'Row 10', 'Row 3']);
  await service.admin('POST', 'objects/Row 3/packets', { heat: 0 });
  await expectRows(page, ['Row 3', 'Row 2', 'Row 1', 'Row 10']);
  await choose('By group');
  await expectRows(page, ['Row 10', 'Row 1', 'Row 2', 'Row 3']);
  await page.reload();
  await expectRows(page, ['Row 10', 'Row 1', 'Row 2', 'Row 3']);
  await choose('By model');
  await page.waitForURL(/sort=model/);
  await expectRows(page, ['Row 1', 'Row 3', 'Row 10', 'Row 2']);
  await choose('Alarms first');
  await expectRows(page, ['Row 2', 'Row 1', 'Row 3', 'Row 10']);
  await page.waitForURL((url) => !url.search.includes('sort'));
});

test('keeps the age and the state in the head of the card current', async () => {
  await create('objects', { id: 'aging', name: 'Aging' });
  const hourMs = 3_600_000;
  await service.admin('POST', 'objects/aging/packets', { time: Date.now() - 3 * hourMs, level: 1, online: false });
  const page = await browser.openAs('/?search=aging');
  await page.locator('.row', { hasText: 'Aging' }).click();
  const head = page.locator('.card-head');
  await head.getByText('3 hr ago').waitFor();
  await head.getByText('Offline').waitFor();
  await service.admin('POST', 'objects/aging/packets', { level: 2 });
  await head.getByText(/now|sec ago/).waitFor();
  await head.getByText('Online').waitFor();
});

test('names what is on or off in the list, and keeps a long name of the selected object short', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'alarmed', name: 'A'.repeat(200) });
  await service.admin('POST', 'objects/alarmed/packets', { alarm: true });
  const page = await browser.openAs(`/?object=${object._id}`);
  await page.locator('.row', { hasText: 'alarm: Yes' }).waitFor();
  const title = page.locator('.card h2');
  await title.waitFor();
  expect((await title.boundingBox())?.height).toBeLessThan(80);
});

test('gives an object labels, and filters by them', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'labelled', name: 'Labelled' });
  await service.admin('POST', 'objects', { id: 'other', name: 'Other', labels: ['South', 'rented'] });
  const labelsOf = async (id: string) => (await service.admin('GET', `objects/${id}`)).body.labels;
  const page = await browser.openAs(`/objects/${object._id}/settings`);
  await page.getByLabel('Labels').fill('North,  rented , North,');
  await page.getByRole('button', { name: 'Save' }).click();
  await until(async () => (await labelsOf('labelled'))?.join() === 'North,rented', 'the labels are stored');
  await page.goto(`${service.url}/?label=North`);
  await page.locator('.row', { hasText: 'Labelled' }).waitFor();
  await eventually(async () => expect(await page.locator('.row').count()).toBe(1));
  await page.goto(`${service.url}/objects/other/settings`);
  await eventually(async () => expect(await page.getByLabel('Labels').inputValue()).toBe('South, rented'));
});

test('shows the labels of an object in the colors that the store of labels gives them', async () => {
  await create('labels', { name: 'cold', color: 'rgb(0, 0, 255)' });
  await create('labels', { name: 'wet', color: 'url(javascript:x)' });
  const page = await browser.openAs('/?search=in the north');
  await page.locator('.row', { hasText: 'In the north' }).getByRole('button').click();
  const labels = page.locator('.card .label');
  await labels.locator('.swatch').waitFor();
  await eventually(async () => expect(await labels.allTextContents()).toEqual(['cold', 'wet']));
  const color = 'getComputedStyle(document.querySelector(".card .swatch")).backgroundColor';
  expect(await page.evaluate(color)).toBe('rgb(0, 0, 255)');
  await page.getByRole('link', { name: 'Open' }).click();
  await page.locator('.object-head .label', { hasText: 'cold' }).locator('.swatch').waitFor();
});
