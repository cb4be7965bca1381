/** Several at once: two users on the same objects, and a device that takes a command. */
import { expect, test } from '@jest/globals';
import { logIn } from '../../../scripts/bench/console-pages.js';
import { useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { connectDevice, createObject } from '../../support/mqtt-device.js';

const service = useService();
const browser = useBrowser(service);

function createGate(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}

test('shows two users what each of them does', async () => {
  const operator = await createUser(service, 'operator');
  const { body } = await service.admin('POST', 'objects', { id: 'shared', name: 'Shared pump' });
  const [one, two] = [await browser.openAs('/'), await browser.openAs(`/objects/${body._id}/commands`, operator)];
  await one.locator('.row', { hasText: 'Shared pump' }).waitFor();
  await one.goto(`${service.url}/objects/${body._id}/settings`);
  await one.getByLabel('Name').fill('Renamed by the first');
  await one.getByRole('button', { name: 'Save' }).click();
  await two.getByRole('heading', { name: 'Renamed by the first' }).waitFor();
  await two.getByLabel('Command', { exact: true }).fill('flush');
  await two.getByRole('button', { name: 'Send …' }).click();
  await two.getByRole('dialog').getByRole('button', { name: 'Send command' }).click();
  await one.goto(`${service.url}/objects/${body._id}/commands`);
  await one.locator('.command', { hasText: 'flush' }).waitFor();
  await two.goto(service.url);
  await two.locator('.row', { hasText: 'Renamed by the first' }).waitFor();
  await one.goto(`${service.url}/objects/${body._id}/settings`);
  await one.getByRole('button', { name: 'Remove' }).click();
  await one.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await two.locator('.row', { hasText: 'Renamed by the first' }).waitFor({ state: 'detached' });
}, 120_000);

test('keeps what happens while the list of objects is loaded', async () => {
  const create = async (name: string) => (await service.admin('POST', 'objects', { id: name, name })).body._id;
  const [renamed, removed] = [await create('Earlier'), await create('Removed')];
  const [isRead, held] = [createGate(), createGate()];
  const page = await browser.open();
  await page.route(/\/api\/v1\/objects\?/, async (route) => {
    const response = await route.fetch();
    isRead.resolve();
    await held.promise;
    await route.fulfill({ response });
  });
  await logIn(page, ADMIN);
  await page.locator('.status.live').waitFor();
  await isRead.promise;
  await service.admin('PATCH', `objects/${renamed}`, { name: 'Later' });
  await service.admin('DELETE', `objects/${removed}`);
  await create('Meanwhile');
  const row = (name: string) => page.locator('.row', { hasText: name });
  await row('Meanwhile').waitFor();
  held.resolve();
  await row('Later').waitFor();
  const names = await page.locator('.row').allInnerTexts();
  expect(names).toEqual([expect.stringContaining('Later'), expect.stringContaining('Meanwhile')]);
}, 120_000);

test('shows what happens between the first page and the first live event', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'between', name: 'Before' });
  const page = await browser.open();
  const held = createGate();
  let isRead = false;
  page.on('response', (response) => {
    isRead ||= /\/api\/v1\/objects\?/.test(response.url());
  });
  await page.route(/\/api\/v1\/events/, async (route) => {
    // Whoever reads the objects first misses this change.
    await givePlentyOfTime();
    await service.admin('PATCH', `objects/${body._id}`, { name: 'After' });
    held.resolve();
    await route.continue();
  });
  const givePlentyOfTime = async (): Promise<void> => {
    for (let nth = 0; nth < 50 && !isRead; nth++) await service.admin('GET', 'objects?count=1');
  };
  await logIn(page, ADMIN);
  await held.promise;
  await page.locator('.row', { hasText: 'After' }).waitFor();
}, 60_000);

test('shows the steps of a command as a device takes them over MQTT', async () => {
  const id = await createObject(service.admin, 'pump-7');
  const page = await browser.openAs(`/objects/${id}/commands`);
  await page.getByLabel('Command', { exact: true }).fill('start');
  await page.getByLabel('Parameters (JSON)').fill('{"level": 3}');
  await page.getByRole('button', { name: 'Send …' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Send command' }).click();
  const command = page.locator('.command', { hasText: 'start' });
  await command.locator('.tag', { hasText: 'Queued' }).waitFor();
  const device = await connectDevice(service.service.mqttUrl as string, 'pump-7');
  try {
    const received = new Promise<{ topic: string; text: string }>((resolve) =>
      device.once('message', (topic, payload) => resolve({ topic, text: payload.toString() })),
    );
    await device.subscribeAsync('base/commands/#', { qos: 1 });
    const { text } = await received;
    expect(text).toContain('3');
    await command.locator('.tag', { hasText: 'Delivered' }).waitFor();
    const [{ _id }] = (await service.admin('GET', `objects/${id}/commands`)).body;
    await device.publishAsync(`base/commands/${_id}/result`, JSON.stringify({ status: 'done', result: 'runs' }), {
      qos: 1,
    });
    await command.locator('.tag', { hasText: 'Done' }).waitFor();
    await command.getByText('"runs"').waitFor();
  } finally {
    await device.endAsync(true);
  }
}, 120_000);
