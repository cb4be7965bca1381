/** The live page of an object whose packets contain one value each, as devices with a topic for each parameter send them. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { ZONE } from '../../support/browser/zone.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const HOUR_MS = 3_600_000;

test('shows the last value of every parameter, and how old it is', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'tank', name: 'Tank' });
  const send = (fields: object) => service.admin('POST', 'objects/tank/packets', fields);
  const nowMs = Date.now();
  await send({ time: nowMs - 2 * HOUR_MS, level: 81 });
  await send({ time: nowMs - 2 * HOUR_MS + 1, pressure: 3 });
  // Values of one minute have no age: those that are sent now are of one moment, however long the page takes.
  await send({ time: nowMs, temperature: 7 });
  const page = await browser.openAs(`/objects/${object._id}/live`);
  const read = () => page.locator('.value-cards > div').allInnerTexts();
  const expectValues = (...values: string[]) =>
    until(async () => (await read()).map((text) => text.split('\n').join(' ')).join() === values.join(), values.join());
  await expectValues('Temperature 7 °C', 'Level 81 2 hr ago', 'Pressure 3 2 hr ago');
  await send({ time: nowMs + 1, level: 80 });
  await expectValues('Temperature 7 °C', 'Level 80', 'Pressure 3 2 hr ago');
  // A packet that comes late changes nothing.
  await send({ time: nowMs - HOUR_MS, level: 99 });
  await send({ time: nowMs + 2, humidity: 40 });
  await expectValues('Temperature 7 °C', 'Level 80', 'Pressure 3 2 hr ago', 'Humidity 40');
  await eventually(async () =>
    expect(await page.locator('.value-cards time').getAttribute('datetime')).toMatch(/^\d{4}-/),
  );
});

test('shows the last position and its age, also when the newest packet has none', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'cart', name: 'Cart' });
  await service.admin('POST', 'objects/cart/packets', [
    { time: Date.now() - 3 * HOUR_MS, lat: 48.1, lon: 11.5 },
    { time: Date.now() - 1_000, fuel: 60 },
  ]);
  const page = await browser.openAs(`/objects/${object._id}/live`);
  await page.locator('.value-cards .place', { hasText: '48.10000, 11.50000' }).getByText('3 hr ago').waitFor();
});

test('says since when the clock of a device is wrong, until it is right again', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'reset', name: 'Reset' });
  const send = (fields: object) => service.admin('POST', 'objects/reset/packets', fields);
  await send({ time: 1_000, level: 1 });
  const page = await browser.openAs(`/objects/${object._id}/live`);
  await page.locator('.object-head').getByText('clock wrong since').waitFor();
  await page.goto(`${service.url}/?object=${object._id}`);
  await page.locator('.card').getByText('clock wrong since').waitFor();
  await send({ time: Date.now(), level: 2 });
  await page.locator('.card').getByText('clock wrong since').waitFor({ state: 'detached' });
});

test('follows on open pages when packets are removed', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'ferry', name: 'Ferry' });
  const nowMs = Date.now();
  await service.admin('POST', 'objects/ferry/packets', [
    { time: nowMs - HOUR_MS, speed: 4, lat: 48.1, lon: 11.5 },
    { time: nowMs - 1_000, speed: 50, lat: 49, lon: 12 },
  ]);
  const page = await browser.openAs(`/objects/${object._id}/live`);
  const home = await browser.openAs(`/?object=${object._id}`);
  await page.locator('.value-cards').getByText('49.00000, 12.00000').waitFor();
  await home.locator('.card').getByText('49.00000, 12.00000').waitFor();
  await service.admin('DELETE', `objects/ferry/packets?from=${nowMs - 2_000}`);
  await home.locator('.card').getByText('48.10000, 11.50000').waitFor();
  await page.locator('.value-cards').getByText('48.10000, 11.50000').waitFor();
  await page.locator('.object-head').getByText('1 hr ago', { exact: true }).waitFor();
});

test('lists the last packets in the order of their times, with the day and every kind of value', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'meter', name: 'Meter' });
  const send = (fields: object) => service.admin('POST', 'objects/meter/packets', fields);
  const DAY_MS = 24 * HOUR_MS;
  const nowMs = Date.now();
  // The newest packet is of this day, so that it shows the time alone.
  await send({ time: nowMs - 2 * DAY_MS, sum: 0.1 + 0.2, nested: { a: 1 }, list: [1, { b: 2 }], none: null, on: true });
  await send({ time: nowMs, sum: 3 });
  const page = await browser.openAs(`/objects/${object._id}/live`, undefined, { timezoneId: ZONE });
  const rows = page.locator('tbody tr');
  await rows.nth(1).waitFor();
  // It comes late.
  await send({ time: nowMs - DAY_MS, sum: 2 });
  await rows.nth(2).waitFor();
  const cells = await Promise.all((await rows.all()).map((row) => row.locator('td').allInnerTexts()));
  expect(cells.map(([, sum]) => sum)).toEqual(['3', '2', '0.3']);
  expect(cells[2]).toEqual([expect.stringMatching(/20\d\d/), '0.3', '{"a":1}', '[1,{"b":2}]', '–', 'Yes']);
  expect(cells[0]?.[0]).toMatch(/^\d{2}:\d{2}:\d{2}$/);
});

test('shows the values of every packet beside the replay', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'boat', name: 'Boat' });
  const startMs = Date.now() - HOUR_MS;
  const packets = [
    { time: startMs, lat: 48, lon: 11 },
    { time: startMs + 1_000, fuel: 60 },
    { time: startMs + 2_000, wind: 7 },
    { time: startMs + 60_000, lat: 48.1, lon: 11 },
    { time: startMs + 61_000, fuel: 50 },
    { time: startMs + 120_000, lat: 48.2, lon: 11 },
  ];
  await service.admin('POST', 'objects/boat/packets', packets);
  const page = await browser.openAs(`/objects/${object._id}/history`);
  const slider = page.getByRole('slider');
  const shows = async (timeMs: number, values: string) => {
    await slider.fill(String(timeMs));
    const read = async () => (await page.locator('.value-cards').allInnerTexts()).join().replace(/\s+/g, ' ').trim();
    await until(async () => (await read()) === values, values);
  };
  await slider.waitFor();
  await shows(startMs + 60_000, 'Fuel 60 Wind 7 Position 48.10000, 11.00000');
  await shows(startMs, 'Position 48.00000, 11.00000');
  await shows(startMs + 120_000, 'Fuel 50 Wind 7 Position 48.20000, 11.00000');
});

test('charts nested numbers and parameters of every name, with the names of the model', async () => {
  const data = { children: [{ id: 'engine.rpm', name: 'Revolutions', type: 'argument', unit: '1/min' }] };
  const { body: model } = await service.admin('POST', 'models', { name: 'Ship', data });
  const { body: object } = await service.admin('POST', 'objects', { id: 'ship', name: 'Ship', model: model._id });
  const NAMES = ['Öldruck', '3303/0/5601', 'air, outside', '!lock'];
  const packets = [1, 2, 3].map((value) => ({
    time: Date.now() - value * 60_000,
    engine: { rpm: 900 + value, oil: { heat: 80 } },
    ...Object.fromEntries(NAMES.map((name, index) => [name, index + value])),
  }));
  await service.admin('POST', 'objects/ship/packets', packets);
  const page = await browser.openAs(`/objects/${object._id}/history`);
  for (const name of [...NAMES, 'engine.oil.heat', 'Revolutions']) {
    const chip = page.locator('.chips').getByRole('button', { name, exact: true });
    if ((await chip.getAttribute('aria-pressed')) !== 'true') await chip.click();
    await page.getByRole('img', { name: new RegExp(`^${name}: \\d`) }).waitFor();
  }
  await page.getByRole('img', { name: /^Revolutions: .* 1\/min$/ }).waitFor();
  await page.goto(`${service.url}/objects/${object._id}/live`);
  await page.locator('.chips').getByRole('button', { name: 'Revolutions' }).click();
  await page.getByRole('img', { name: 'Revolutions: 901 – 903 1/min' }).waitFor();
});

test('offers files of positions only for packets that have some', async () => {
  for (const [id, packet, files] of [
    ['scale', { weight: 5 }, ['CSV']],
    ['lorry', { weight: 5, lat: 48, lon: 11 }, ['CSV', 'GeoJSON', 'GPX']],
  ] as const) {
    const { body: object } = await service.admin('POST', 'objects', { id, name: id });
    await service.admin('POST', `objects/${id}/packets`, packet);
    const page = await browser.openAs(`/objects/${object._id}/history`);
    await page.locator('.uplot').waitFor();
    await page.locator('a[download]', { hasText: files.at(-1) as string }).waitFor();
    await eventually(async () =>
      expect(await page.locator('a[download]').allInnerTexts()).toEqual(
        files.map((file) => expect.stringContaining(file)),
      ),
    );
  }
});

test('charts the parameters of another interval in which the shown ones do not occur', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'refit', name: 'Refit' });
  const nowMs = Date.now();
  const packets = [...['before', 'before', 'after', 'after'].entries()].map(([index, name]) => ({
    time: nowMs - (index < 2 ? 48 * HOUR_MS : 0) + index,
    [name]: index,
  }));
  await service.admin('POST', 'objects/refit/packets', packets);
  const interval = `from=${nowMs - 50 * HOUR_MS}&to=${nowMs - 40 * HOUR_MS}`;
  const page = await browser.openAs(`/objects/${object._id}/history?${interval}`);
  await page.getByRole('img', { name: /^before/ }).waitFor();
  await page.getByRole('button', { name: '1 hour' }).click();
  await page.getByRole('img', { name: /^after/ }).waitFor();
  await eventually(async () =>
    expect(await page.locator('figcaption').allInnerTexts()).toEqual([expect.stringMatching(/^after/i)]),
  );
});

test('says that an interval has no numbers, and keeps long texts short', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'texts', name: 'Texts' });
  await service.admin('POST', 'objects/texts/packets', { message: 'word '.repeat(200), mileage: '1,234,567.89' });
  const page = await browser.openAs(`/objects/${object._id}/history`);
  await page.getByText('contain no numbers to chart').waitFor();
  expect(await page.getByText('Drag over a chart').count()).toBe(0);
  await page.goto(`${service.url}/objects/${object._id}/live`);
  const value = page.locator('.value-cards dd').first();
  await value.waitFor();
  expect((await value.boundingBox())?.height).toBeLessThan(150);
});

test('says since when an object is offline, and since when it is online again', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'pump', name: 'Pump' });
  const send = (fields: object) => service.admin('POST', 'objects/pump/packets', fields);
  const dayMs = new Date(2025, 0, 7, 12).getTime();
  await send({ time: dayMs, flow: 1 });
  await send({ time: dayMs + HOUR_MS, online: false });
  const page = await browser.openAs(`/objects/${object._id}/live`);
  await page.getByText(/^Offline since .*2025.*13:00/).waitFor();
  await page.locator('tbody td', { hasText: 'Offline' }).waitFor();
  await send({ time: dayMs + 2 * HOUR_MS, flow: 2 });
  await send({ time: dayMs + 3 * HOUR_MS, flow: 2 });
  await page.getByText(/^Online since .*2025.*14:00/).waitFor();
});

test('shows the packets that come before its events do', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'silo', name: 'Silo' });
  const send = (weight: number) => service.admin('POST', 'objects/silo/packets', { weight });
  await send(1);
  const page = await browser.openAs('/account/profile');
  const [held, release] = createDeferred<void>();
  await page.routeWebSocket(/\/socket\.io\//, async (socket) => {
    await held;
    socket.connectToServer();
  });
  await page.goto(`${service.url}/objects/${object._id}/live`);
  const weights = async () => (await page.locator('tbody tr td:nth-child(2)').allInnerTexts()).join();
  await until(async () => (await weights()) === '1', 'the first packet is shown');
  await send(2);
  await send(3);
  release();
  await until(async () => (await weights()) === '3,2,1', 'the packets between are shown');
  await send(4);
  await until(async () => (await weights()) === '4,3,2,1', 'and those that follow');
});

test.each([
  [10_000, false],
  [10_081, true],
])('shows the whole route of %d packets, and says what is not there', async (count, isCut) => {
  const id = `week-${count}`;
  const { body: object } = await service.admin('POST', 'objects', { id, name: id });
  const endMs = Date.now() - HOUR_MS;
  // A packet a minute: of a week there are more than the page reads.
  const packets = Array.from({ length: count }, (_, index) => ({
    time: endMs - (count - 1 - index) * 60_000,
    lat: 48 + Math.sin(index / 100) / 10,
    lon: 11 + index / 10_000,
    fuel: index === 0 ? 77 : 50,
  }));
  const firstMs = packets[0]?.time ?? 0;
  for (let from = 0; from < count; from += 10_000)
    await service.admin('POST', `objects/${id}/packets`, packets.slice(from, from + 10_000));
  const page = await browser.openAs(`/objects/${object._id}/history?from=${firstMs}&to=${endMs}`);
  const slider = page.getByRole('slider');
  await slider.waitFor();
  const bounds = async () => `${await slider.getAttribute('min')} ${await slider.getAttribute('max')}`;
  await until(async () => (await bounds()) === `${firstMs} ${endMs}`, 'the whole route');
  const note = page.getByText('Only parameters of the newest 10,000 packets');
  if (isCut) await note.waitFor();
  else expect(await note.count()).toBe(0);
  expect(await page.getByText('The route and the replay show the newest').count()).toBe(0);
  await slider.fill(String(firstMs));
  await page.locator('.value-cards', { hasText: /fuel\s*77/i }).waitFor();
});

test('says what the route lacks when the role does not permit the track of many packets', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'untracked', name: 'Untracked' });
  const endMs = Date.now() - HOUR_MS;
  for (const part of [0, 1]) {
    const packets = Array.from({ length: 6_000 }, (_, index) => ({
      time: endMs - (12_000 - 6_000 * part - index) * 1_000,
      lat: 48,
      lon: 11 + index / 10_000,
    }));
    await service.admin('POST', 'objects/untracked/packets', packets);
  }
  await service.admin('POST', 'roles', {
    name: 'untracking',
    credentials: ['GET /objects', 'GET /objects/:id', 'GET /objects/:id/packets', 'GET /objects/:id/model'],
  });
  const page = await browser.openAs(`/objects/${object._id}/history`, await createUser(service, 'untracking'));
  await page.getByText('The route and the replay show the newest 10,000 packets').waitFor();
});

test('keeps the choice of charts in the address', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'chosen', name: 'Chosen' });
  const values = { first: 1, second: 2, 'air, outside': 3, 'ö%': 4 };
  await service.admin('POST', 'objects/chosen/packets', [values, { ...values, time: Date.now() - 60_000 }]);
  const page = await browser.openAs(`/objects/${object._id}/history`);
  const captionsOf = async (shown: Page) =>
    (await shown.locator('figcaption').allTextContents())
      .map((text) => text.trim())
      .sort()
      .join('|');
  const chip = (name: string) => page.locator('.chips').getByRole('button', { name, exact: true });
  await page.locator('.uplot').first().waitFor();
  for (const name of ['first', 'air, outside', 'ö%']) await chip(name).click();
  const expected = 'air, outside|second|ö%';
  await until(async () => (await captionsOf(page)) === expected, expected);
  await page.getByRole('button', { name: '7 days' }).click();
  await page.waitForURL(/from=.*charts=/);
  const other = await browser.openAs(new URL(page.url()).pathname + new URL(page.url()).search);
  await other.locator('.uplot').first().waitFor();
  await until(async () => (await captionsOf(other)) === expected, 'the same charts');
  await page.goto(`${service.url}/objects/${object._id}/live`);
  await chip('air, outside').click();
  await page.waitForURL(/chart=air/);
  await page.reload();
  await page.getByRole('heading', { name: 'air, outside' }).waitFor();
});
