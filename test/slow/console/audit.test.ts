/** The page of security events says what was changed, from what to what, and shows no secret. */
import { expect, test } from '@jest/globals';
import { entityOf } from '../../support/answers.js';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);

test('shows groups by their names', async () => {
  const group = entityOf(await service.admin('POST', 'groups', { name: 'North' }));
  const { _id } = entityOf(await service.admin('POST', 'objects', { id: 'moved', name: 'Moved' }));
  await service.admin('POST', `objects/${_id}/move`, { group: group._id });
  await until(async () => (await service.admin('GET', `audit?where.entity=${_id}`)).body.length === 1, 'the event');
  const page = await browser.openAs('/access/audit');
  const row = page.getByRole('row', { name: `/objects/${_id}/move` });
  await row.getByRole('button', { name: 'Changes' }).click();
  await page.getByRole('dialog').getByRole('cell', { name: 'North' }).waitFor();
});

test('shows the former and the new value of each changed field, and of a password that it was changed', async () => {
  const config = { plate: 'M-1', auth: { password: 'canary' } };
  const object = { id: 'van', name: 'Van', config };
  const { _id } = entityOf(await service.admin('POST', 'objects', object));
  const change = { name: 'Van 7', active: false, config: { plate: 'M-2' } };
  await service.admin('PATCH', `objects/${_id}`, change);
  await service.admin('PATCH', `objects/${_id}`, { config: { auth: { password: 'canary of another' } } });
  await until(
    async () => (await service.admin('GET', `audit?where.entity=${_id}`)).body.length === 2,
    'both events to be stored',
  );
  const page = await browser.openAs('/access/audit');
  const rowOf = (fields: string) => page.getByRole('row', { name: new RegExp(`PATCH /objects/${_id} ${fields}`) });
  const dialog = page.getByRole('dialog', { name: 'Changes' });
  const cells = () => dialog.getByRole('row').allInnerTexts();
  await rowOf('name active config').getByRole('button', { name: 'Changes' }).click();
  await eventually(async () =>
    expect(await cells()).toEqual([
      'Field\tBefore\tAfter',
      'name\tVan\tVan 7',
      'active\tYes\tNo',
      'config.plate\tM-1\tM-2',
    ]),
  );
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await rowOf('config').first().getByRole('button', { name: 'Changes' }).click();
  await eventually(async () => expect(await cells()).toEqual(['Field\tBefore\tAfter', 'config\tnot shown\tnot shown']));
  expect(await page.content()).not.toContain('canary');
});
