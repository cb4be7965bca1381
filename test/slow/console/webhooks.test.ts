/** Webhooks in the console. */
import { expect, test } from '@jest/globals';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { OK, useReceiver } from '../../support/receiver.js';
import { until } from '../../support/until.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8', OPS_PORT: '0' } });
const browser = useBrowser(service);
const receiver = useReceiver();

test('makes a webhook, shows its secret once, tests it, and sends a message again', async () => {
  browser.expectErrors(/400/);
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
  const second = await dialog.getByLabel('Secret', { exact: true }).textContent();
  expect(second).toMatch(/^whsec_/);
  expect(second).not.toBe(secret);

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
  await dialog.getByRole('button', { name: 'Send again' }).click();
  await isStored('delivered', 1);
  await dialog.getByLabel('Messages').selectOption('Delivered');
  await dialog.getByRole('listitem').getByText('object-packet').waitFor();
});
