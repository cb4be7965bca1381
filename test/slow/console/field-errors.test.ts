/** What is wrong with a field stands at that field, in the user's language, until the field is edited; and where the focus goes. */
import { expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service);

/** Whether it has the focus when all that its page shows has taken effect. */
async function hasFocus(field: Locator): Promise<boolean> {
  await effectsRun(field.page());
  return field.evaluate((one) => one.matches(':focus'));
}

async function speakGerman(page: Page): Promise<void> {
  await page.evaluate('localStorage.setItem("vigil.language", "de")');
  await page.reload();
}

/** The text that the field names as its description. */
async function describe(field: Locator): Promise<string | null> {
  const id = await field.getAttribute('aria-describedby');
  return id === null ? null : field.page().locator(`[id="${id}"]`).textContent();
}

test('shows the refusal of an id at its field, with the focus, until it is edited', async () => {
  browser.expectErrors(/400|409/);
  await service.admin('POST', 'objects', { id: 'taken', name: 'Taken' });
  const page = await browser.openAs('/welcome');
  const id = page.getByLabel('Id', { exact: true });
  await id.fill('a/b');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('[aria-invalid=true]').waitFor();
  expect(await describe(id)).toBe('May not contain #, / or control characters.');
  expect([await hasFocus(id), await page.locator('.problem').count()]).toEqual([true, 0]);
  await id.fill('taken');
  expect(await page.locator('[aria-invalid=true], .note.error').count()).toBe(0);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('This is already taken.').waitFor();
});

test('says in German which password is wrong, and which is too short', async () => {
  browser.expectErrors(/400/);
  const person = await createUser(service, 'viewer');
  const page = await browser.openAs('/account/profile', person);
  await speakGerman(page);
  const [old, fresh] = [page.getByLabel('Bisheriges Passwort'), page.getByLabel('Neues Passwort')];
  await old.fill(person.password);
  await fresh.fill('short');
  await page.getByRole('button', { name: 'Passwort ändern' }).click();
  await page.locator('[aria-invalid=true]').waitFor();
  expect(await describe(fresh)).toBe('Erwartet werden mindestens 8 Zeichen.');
  await old.fill('not the password');
  await fresh.fill('a password of eight');
  await page.getByRole('button', { name: 'Passwort ändern' }).click();
  await page.getByText('Das Passwort ist falsch.').waitFor();
  expect([await hasFocus(old), await describe(old)]).toEqual([true, 'Das Passwort ist falsch.']);
  // Also where the loss of tokens has to be confirmed first.
  const name = 'Own';
  await service.as(await service.tokenOf(person.login, person.password))('POST', 'account/tokens', { name });
  await old.fill('not this one either');
  await page.getByRole('button', { name: 'Passwort ändern' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(name).waitFor();
  await dialog.getByRole('button', { name: 'Passwort ändern' }).click();
  await page.getByText('Das Passwort ist falsch.').waitFor();
  expect([await hasFocus(old), await dialog.count()]).toEqual([true, 0]);
});

test('asks for the object of a token only while it is for a device', async () => {
  await service.admin('POST', 'objects', { id: 'tokened', name: 'Tokened' });
  const page = await browser.openAs('/account/tokens');
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByRole('radio', { name: 'One device' }).check();
  await page.getByLabel('Name').fill('Mine');
  await page.getByLabel('Object', { exact: true }).fill('nothing of this name');
  await page.getByRole('button', { name: 'Create token' }).click();
  await page.getByText('Choose an object from the list.').waitFor();
  expect(await hasFocus(page.getByLabel('Object', { exact: true }))).toBe(true);
  await page.getByRole('radio', { name: 'Custom' }).check();
  expect(await page.getByText('Choose an object from the list.').count()).toBe(0);
  await page.getByLabel('Permitted requests').fill('read everything');
  await page.getByRole('button', { name: 'Create token' }).click();
  browser.expectErrors(/400/);
  await page.getByText('Expected a method and a path in each line').waitFor();
});

test('asks for a number, then names the command as the model does and says that the device is offline', async () => {
  const children = [{ type: 'action', id: 'limit', name: 'Limit the speed', params: { speed: 5 } }];
  const { body: model } = await service.admin('POST', 'models', { name: 'Limited', data: { children } });
  const { body: object } = await service.admin('POST', 'objects', { id: 'limited', name: 'Limited', model: model._id });
  const page = await browser.openAs(`/objects/${object._id}/commands`);
  const speed = page.getByLabel('speed');
  await speed.fill('');
  await page.getByRole('button', { name: 'Send …' }).click();
  await page.getByText('Expected a number.').waitFor();
  expect([await hasFocus(speed), await page.getByRole('dialog').count()]).toEqual([true, 0]);
  await speed.fill('7');
  await page.getByRole('button', { name: 'Send …' }).click();
  await page.getByRole('heading', { name: 'Send “Limit the speed (limit)” to Limited?' }).waitFor();
  await page.getByText('The device is offline').waitFor();
});

test('marks the step of a failed command as bad', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'failing', name: 'Failing' });
  const { headers } = await service.admin('POST', 'objects/failing/commands/stop', {});
  const id = headers.location?.split('/').at(-1);
  await service.admin('POST', `objects/failing/commands/${id}/result`, { status: 'failed' });
  const page = await browser.openAs(`/objects/${object._id}/commands`);
  await page.locator('.line .reached.bad', { hasText: 'Failed' }).waitFor();
});

test('offers a viewer no token for a device, and says why', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'viewed', name: 'Viewed' });
  const page = await browser.openAs(`/objects/${object._id}/settings`, await createUser(service, 'viewer'));
  await page.getByText('does not permit tokens for devices').waitFor();
  expect(await page.getByRole('button', { name: 'New token' }).count()).toBe(0);
});

test('begins with the field that is empty: a name, or the password of a known login', async () => {
  const person = await createUser(service, 'viewer');
  browser.expectErrors(/401/);
  const page = await browser.openAs('/account/profile');
  await page.getByRole('link', { name: 'Map' }).click();
  await page.getByRole('link', { name: 'Add' }).click();
  await page.getByRole('heading', { name: 'Name the object' }).waitFor();
  expect(await hasFocus(page.getByLabel('Name', { exact: true }))).toBe(true);
  const other = await browser.openAs('/account/profile', person);
  await other.context().clearCookies();
  // What the page asks for in the background may have brought the dialog already.
  await other.locator('a[href="/account/sessions"]').evaluate((link) => link.click());
  await other.getByRole('dialog').waitFor();
  expect(await hasFocus(other.getByRole('dialog').getByLabel('Password'))).toBe(true);
});
