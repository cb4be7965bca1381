/** The console answers what a user may do, and why. */
import { test } from '@jest/globals';
import { useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service);

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
