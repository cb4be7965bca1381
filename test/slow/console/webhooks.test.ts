/** Webhooks in the console. */
import { expect, test } from '@jest/globals';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { OK, useReceiver } from '../../support/receiver.js';
import { eventually, until } from '../../support/until.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8', OPS_PORT: '0' } });
const browser = useBrowser(service);
const receiver = useReceiver();

test('makes a webhook, shows its secret once, tests it, and sends a message again', async () => {
  // Also of a message that was sent meanwhile.
  browser.expectErrors(/400|409/);
  const page = await browser.openAs('/data/handlers');
  await page.getByRole('button', { name: 'New' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('CRM');
  await dialog.getByLabel('Address').fill('example.com');
  await dialog.getByLabel('object-packet').check();
  await dialog.getByLabel('Objects').fill('pump-1');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText('an address such as https://example.com/webhook').waitFor();
  await dialog.getByLabel('Address').fill(receiver.url);
  await dialog.getByRole('button', { name: 'Save' }).click();
  const secret = await dialog.getByLabel('Secret', { exact: true }).textContent();
  expect(secret).toMatch(/^whsec_/);
  // No key closes it before.
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await dialog.getByRole('button', { name: 'I have stored it' }).click();
  const [handler] = (await service.admin('GET', 'handlers')).body;
  expect(handler).toMatchObject({ name: 'CRM', url: receiver.url, events: ['object-packet'], objects: ['pump-1'] });
  expect(handler).not.toHaveProperty('mode');

  await page.getByRole('row', { name: 'CRM' }).getByRole('button', { name: 'Messages' }).click();
  await dialog.getByText('No messages').waitFor();
  await dialog.getByRole('button', { name: 'Send a test' }).click();
  await dialog.getByText('Result: 200').waitFor();
  expect(receiver.received.map(({ body }) => body.type)).toEqual(['webhook-test']);
  await dialog.getByRole('button', { name: 'New secret' }).click();
  await page.getByRole('dialog', { name: 'New secret' }).getByRole('button', { name: 'Make it' }).click();
  await eventually(async () => {
    const second = await dialog.getByLabel('Secret', { exact: true }).textContent();
    expect(second).toMatch(/^whsec_/);
    expect(second).not.toBe(secret);
  });

  receiver.answer = (_received, res) => void res.writeHead(500).end();
  await service.admin('POST', 'objects', { id: 'pump-1', name: 'Pump' });
  await service.admin('POST', 'objects/pump-1/packets', { pressure: 5 });
  await receiver.got(2);
  const isStored = (state: string, attempts: number) =>
    until(async () => {
      const [message] = (await service.admin('GET', `handlers/${handler._id}/deliveries`)).body;
      return message?.state === state && message.attempts >= attempts;
    }, `the message is ${state}`);
  await isStored('pending', 1);
  await dialog.getByLabel('Messages').selectOption('Waiting');
  await dialog.getByText(/attempts: \d · 500/).waitFor();
  receiver.answer = OK;
  // Its next attempt may deliver it first, and take the button away.
  await Promise.race([dialog.getByRole('button', { name: 'Send again' }).click(), isStored('delivered', 1)]);
  await isStored('delivered', 1);
  await dialog.getByLabel('Messages').selectOption('Delivered');
  await dialog.getByRole('listitem').getByText('object-packet').waitFor();
});

test('says since when messages wait and why, and sends all of them at once although the receiver was paused', async () => {
  // Messages that were sent meanwhile.
  browser.expectErrors(/409/);
  receiver.answer = (_received, res) => void res.writeHead(503).end('closed for repair');
  const { body: handler } = await service.admin('POST', 'handlers', {
    name: 'ERP',
    url: receiver.url,
    events: ['object-packet'],
    objects: ['tank-1', 'tank-2'],
  });
  const deliveries = async (): Promise<{ state: string; attempts: number }[]> =>
    (await service.admin('GET', `handlers/${handler._id}/deliveries`)).body;
  for (const id of ['tank-1', 'tank-2']) await service.admin('POST', 'objects', { id, name: `Tank ${id.at(-1)}` });
  const page = await browser.openAs('/data/handlers');
  await page.getByRole('row', { name: 'ERP' }).getByRole('button', { name: 'Messages' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('0 messages wait.').waitFor();
  for (const id of ['tank-1', 'tank-2'])
    for (let level = 0; level < 30; level++) await service.admin('POST', `objects/${id}/packets`, { level });
  await until(async () => (await deliveries()).filter(({ attempts }) => attempts >= 3).length > 0, 'it has failed');
  await dialog.getByText(/60 messages wait\. The receiver has accepted none of them since/).waitFor();
  // The oldest one is reached, and the others by asking for more.
  await dialog.getByLabel('Order').selectOption('Oldest first');
  const first = dialog.getByRole('listitem').first();
  await first.getByText('Tank 1').waitFor();
  await first.getByText('Answer').click();
  await first.getByText('closed for repair').waitFor();
  await eventually(async () => expect(await dialog.getByRole('listitem').count()).toBe(50));
  await dialog.getByRole('button', { name: 'Show more' }).click();
  await until(async () => (await dialog.getByRole('listitem').count()) === 60, '60 messages');
  receiver.answer = OK;
  await dialog.getByRole('button', { name: 'Send all now' }).click();
  await until(async () => (await deliveries()).every(({ state }) => state === 'delivered'), 'all are delivered');
  await dialog.getByText('0 messages wait.').waitFor();
  await dialog.getByLabel('Messages').selectOption('Waiting');
  await dialog.getByText('No messages').waitFor();
});

test('says that a webhook that is not active is paused, and that what waits does not go', async () => {
  receiver.answer = OK;
  const { body: handler } = await service.admin('POST', 'handlers', {
    name: 'Paused',
    url: receiver.url,
    events: ['object-packet'],
    objects: ['tank-3'],
  });
  await service.admin('PATCH', `handlers/${handler._id}`, { active: false });
  const page = await browser.openAs('/data/handlers');
  await page.getByRole('row', { name: 'Paused' }).getByRole('button', { name: 'Messages' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/Paused: the webhook is not active since its change/).waitFor();
  expect(await dialog.getByRole('button', { name: 'Send all now' }).count()).toBe(0);
});
