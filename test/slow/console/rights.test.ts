/** What a user may do: what the console explains of it, and what it leaves out. */
import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

/** A user whose role permits only these requests. */
async function createUserWith(credentials: readonly string[]): Promise<{ login: string; password: string }> {
  const name = `role-${randomBytes(4).toString('hex')}`;
  await service.admin('POST', 'roles', { name, credentials });
  return createUser(service, name);
}

test('explains which line of the role permits a request, and why the user sees the object', async () => {
  await service.admin('POST', 'objects', { id: 'asked', name: 'Asked about' });
  const { login } = await createUser(service, 'viewer');
  const page = await browser.openAs('/access/rights');
  await page.getByLabel('User', { exact: true }).selectOption(login);
  await page.getByLabel('Path').fill('/objects/asked');
  await page.getByRole('button', { name: 'Explain' }).click();
  await page.getByRole('heading', { name: 'Yes, permitted' }).waitFor();
  await page.getByText('The role viewer permits it: GET /*').waitFor();
  await page.getByText('It belongs to the group').waitFor();
  await page.getByLabel('Method').selectOption('DELETE');
  await page.getByRole('button', { name: 'Explain' }).click();
  await page.getByRole('heading', { name: 'No: the role does not permit it' }).waitFor();
  await page.getByText('No line of the role viewer permits it.').waitFor();
  await page.waitForURL(/method=DELETE/);
});

test('says what may be wrong with a path that nothing has', async () => {
  browser.expectErrors(/404/);
  const page = await browser.openAs('/access/rights');
  await page.getByLabel('User', { exact: true }).selectOption({ index: 1 });
  await page.getByLabel('Path').fill('/nowhere/at-all');
  await page.getByRole('button', { name: 'Explain' }).click();
  await page.getByText('No such path, or you do not see it.').waitFor();
});

test('shows a viewer nothing that writes', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'viewed', name: 'Viewed' });
  await service.admin('POST', 'objects/viewed/packets', { speed: 1 });
  const viewer = await createUser(service, 'viewer');
  const page = await browser.openAs('/', viewer);
  await page.locator('.row', { hasText: 'Viewed' }).waitFor();
  expect(await page.getByRole('link', { name: 'Add' }).count()).toBe(0);
  const shown = async (tab: string): Promise<string | null> => {
    await page.goto(`${service.url}/objects/${object._id}/${tab}`);
    await page.locator('.object-head').waitFor();
    return page.locator('main').textContent();
  };
  expect(await shown('settings')).not.toMatch(/Save|Remove|Share/);
  expect(await shown('commands')).not.toContain('Send');
});

test.each([
  ['/access/users', 'GET /users'],
  ['/access/audit', '* /audit'],
  ['/access/rights', 'GET /users/*/permissions'],
  ['/objects/lacked/history', 'GET /objects/*/packets'],
  ['/objects/lacked/commands', 'GET /objects/*/commands'],
  ['/geofences', 'GET /geofences/*'],
  ['/models', 'GET /models/*'],
  ['/data/handlers', 'GET /handlers/*'],
])('says at %s which permission the role lacks', async (path, line) => {
  const credentials = ['GET /objects', 'GET /objects/:id', 'GET /groups'];
  if (path.startsWith('/objects')) await service.admin('POST', 'objects', { id: 'lacked', name: 'Lacked' });
  const page = await browser.openAs(path, await createUserWith(credentials));
  await page.getByText('You do not have permission to do this.').waitFor();
  await page.locator('main code', { hasText: line }).waitFor();
  expect(new URL(page.url()).pathname).toBe(path);
});

test('says in the log that the role lacks the permission to read objects', async () => {
  const page = await browser.openAs('/log', await createUserWith(['GET /models/*']));
  await page.locator('main code', { hasText: 'GET /objects/*' }).waitFor();
});

test('offers the commands that the role permits, and no others', async () => {
  const children = ['lock', 'stop'].map((id) => ({ type: 'action', id, name: id }));
  const { body: model } = await service.admin('POST', 'models', { name: 'Door', data: { children } });
  const { body: object } = await service.admin('POST', 'objects', { id: 'door', name: 'Door', model: model._id });
  const page = await browser.openAs(
    `/objects/${object._id}/commands`,
    await createUserWith(['GET /*', 'POST /objects/:id/commands/lock']),
  );
  const command = page.getByLabel('Command', { exact: true });
  await command.locator('option', { hasText: 'lock' }).waitFor({ state: 'attached' });
  await eventually(async () => expect(await command.locator('option').allTextContents()).toEqual(['–', 'lock']));
});

test('says in the journal who sent a command, as far as the reader may know', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'commanded', name: 'Commanded' });
  // Its role permits no users, so no name of another one.
  const operator = await createUserWith(['GET /objects/*', 'GET /models/*', 'POST /objects/:id/commands/*']);
  await service.admin('POST', 'objects/commanded/commands/start', {});
  const page = await browser.openAs(`/objects/${object._id}/commands`, operator);
  await page.locator('.command', { hasText: 'start' }).getByText('by another user').waitFor();
  await page.getByLabel('Command', { exact: true }).fill('stop');
  await page.getByRole('button', { name: 'Send …' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Send command' }).click();
  await page.locator('.command', { hasText: 'stop' }).getByText(`by ${operator.login}`).waitFor();
  const other = await browser.openAs(`/objects/${object._id}/commands`);
  await other.locator('.command', { hasText: 'stop' }).getByText(`by ${operator.login}`).waitFor();
  await other.locator('.command', { hasText: 'start' }).getByText(`by ${ADMIN.login}`).waitFor();
});

test('shows a user below root the commands of a model of another group, and no way to change what is above', async () => {
  const post = async (store: string, fields: object): Promise<string> =>
    (await service.admin('POST', store, fields)).body._id;
  const beside = await post('groups', { name: 'Beside' });
  const group = await post('groups', { name: 'Below' });
  const data = { children: [{ id: 'unlock', name: 'Unlock the doors', type: 'action' }] };
  const model = await post('models', { name: 'Van model', data, group: beside });
  const object = await post('objects', { id: 'below', name: 'Van below', group, model });
  await post('labels', { name: 'Label above' });
  await post('labels', { name: 'Label below', group });
  const page = await browser.openAs(
    `/objects/${object}/commands`,
    await createUser(service, 'administrator', { group }),
  );
  await page.getByLabel('Command', { exact: true }).selectOption({ label: 'Unlock the doors' });
  expect(await page.locator('main').textContent()).not.toContain('declares');
  await page.goto(`${service.url}/data/labels`);
  const row = (name: string) => page.locator('tr', { hasText: name });
  await row('Label below').getByRole('button', { name: 'Edit' }).waitFor();
  await row('Label above').waitFor();
  expect(await row('Label above').getByRole('button').count()).toBe(0);
  await page.goto(`${service.url}/models/${model}`);
  await page.getByText('Unlock the doors').first().waitFor();
  await eventually(async () => expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true));
});
