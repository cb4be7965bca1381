/** Copying from the console over plain HTTP, where browsers have no clipboard for scripts. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { useService } from '../../support/fixture.js';

const service = useService();
const HOST = 'vigil.test';
const plain = {
  get url() {
    return service.url.replace('127.0.0.1', HOST);
  },
};
const browser = useBrowser(plain, [`--host-resolver-rules=MAP ${HOST} 127.0.0.1`]);

async function openPlain(path: string): Promise<Page> {
  browser.expectErrors(/Cross-Origin-Opener-Policy/);
  const page = await browser.openAs(path, await createUser(service, 'administrator'));
  expect(await page.evaluate('[isSecureContext, typeof navigator.clipboard]')).toEqual([false, 'undefined']);
  return page;
}

/** What is in the clipboard, on one line. */
async function paste(page: Page): Promise<string> {
  await page.goto(`${plain.url}/account/profile`);
  const field = page.getByLabel('Name', { exact: true });
  await field.fill('');
  await field.press('Control+V');
  return field.inputValue();
}

test('copies a packet from the log', async () => {
  const page = await openPlain('/log');
  await page.getByText('Live', { exact: true }).waitFor();
  await service.admin('POST', 'objects', { id: 'logged', name: 'Logged' });
  await service.admin('POST', 'objects/logged/packets', { level: 71, note: 'a  b "c"' });
  await page.locator('.log-row', { hasText: 'packet' }).getByRole('button').click();
  await effectsRun(page);
  expect(JSON.parse(await paste(page))).toMatchObject({ id: 'logged', level: 71, note: 'a  b "c"' });
});

test('copies a token and the command that uses it from a dialog', async () => {
  const page = await openPlain('/account/tokens');
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByRole('radio', { name: 'Read only' }).check();
  await page.getByLabel('Name').fill('Copied token');
  await page.getByRole('button', { name: 'Create token' }).click();
  const shown = await page.getByLabel('Token', { exact: true }).textContent();
  await page.getByRole('button', { name: 'Copy' }).first().click();
  await effectsRun(page);
  expect(await paste(page)).toBe(shown);
});

test('copies a command that connects a device', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'connected', name: 'Connected' });
  const page = await openPlain(`/objects/${object._id}/settings`);
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByRole('button', { name: 'Copy' }).click();
  await effectsRun(page);
  expect(await paste(page)).toContain(`curl '${plain.url}/api/v1/objects/connected/packets'`);
});
