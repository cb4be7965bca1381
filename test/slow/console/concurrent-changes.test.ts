/** What others do meanwhile: other users, devices, and packets by the thousands. */
import { expect, test } from '@jest/globals';
import { logIn } from '../../../scripts/bench/console-pages.js';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { connectDevice, createObject } from '../../support/mqtt-device.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

test('shows two users what each of them does', async () => {
  const operator = await createUser(service, 'operator');
  const { body } = await service.admin('POST', 'objects', { id: 'shared', name: 'Shared pump' });
  const one = await browser.openAs('/');
  const two = await browser.openAs(`/objects/${body._id}/commands`, operator);
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
});

test('keeps what happens while the list of objects is loaded', async () => {
  const create = async (name: string) => (await service.admin('POST', 'objects', { id: name, name })).body._id;
  const renamed = await create('Earlier');
  const removed = await create('Removed');
  const [isRead, reportRead] = createDeferred<void>();
  const [held, release] = createDeferred<void>();
  const page = await browser.open();
  await page.route(/\/api\/v1\/objects\?/, async (route) => {
    const response = await route.fetch();
    reportRead();
    await held;
    await route.fulfill({ response });
  });
  await logIn(page, ADMIN);
  await page.locator('.status.live').waitFor();
  await isRead;
  await service.admin('PATCH', `objects/${renamed}`, { name: 'Later' });
  await service.admin('DELETE', `objects/${removed}`);
  await create('Meanwhile');
  const row = (name: string) => page.locator('.row', { hasText: name });
  await row('Meanwhile').waitFor();
  release();
  await row('Later').waitFor();
  const names = await page.locator('.row').allInnerTexts();
  expect(names).toEqual([expect.stringContaining('Later'), expect.stringContaining('Meanwhile')]);
});

test('shows what happens between the first page and the first live event', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'between', name: 'Before' });
  const page = await browser.open();
  const [isChanged, reportChange] = createDeferred<void>();
  let isRead = false;
  page.on('response', (response) => {
    isRead ||= /\/api\/v1\/objects\?/.test(response.url());
  });
  await page.routeWebSocket(/\/socket\.io\//, async (socket) => {
    // Whoever reads the objects first misses this change.
    await givePlentyOfTime();
    await service.admin('PATCH', `objects/${body._id}`, { name: 'After' });
    reportChange();
    socket.connectToServer();
  });
  // Only pages that are loaded from now on.
  await page.reload();
  const givePlentyOfTime = async (): Promise<void> => {
    for (let nth = 0; nth < 50 && !isRead; nth++) await service.admin('GET', 'objects?count=1');
  };
  await logIn(page, ADMIN);
  await isChanged;
  await page.locator('.row', { hasText: 'After' }).waitFor();
});

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
});

test('keeps in the log what its filter shows while thousands of other packets arrive, also when paused', async () => {
  await service.admin('POST', 'objects', { id: 'quiet', name: 'Quiet' });
  await service.admin('POST', 'objects', { id: 'noisy', name: 'Noisy' });
  const sendNoise = async (): Promise<void> => {
    for (let part = 0; part < 7; part++) {
      const packets = Array.from({ length: 1_000 }, (_, speed) => ({ speed }));
      await service.admin('POST', 'objects/noisy/packets', packets);
    }
  };
  const page = await browser.openAs('/log');
  await page.getByRole('searchbox').fill('quiet');
  const send = (step: number) => service.admin('POST', 'objects/quiet/packets', { step });
  const row = (step: number) => page.locator('.log-row', { hasText: `"step":${step}` });
  const isReceiving = async (): Promise<boolean> => {
    await send(0);
    return (await row(0).count()) > 0;
  };
  await until(isReceiving, 'the page to receive live events');
  await send(1);
  await row(1).waitFor();
  await sendNoise();
  await send(2);
  await row(2).waitFor();
  await eventually(async () => expect(await row(1).count()).toBe(1));
  await page.getByRole('button', { name: 'Pause' }).click();
  await send(3);
  await sendNoise();
  await send(4);
  await service.settled();
  await page.getByRole('button', { name: 'Resume' }).click();
  await row(4).waitFor();
  await eventually(async () => expect(await row(3).count()).toBe(1));
});
