/** Many objects are changed together in the table of the first page: chosen, tried, then changed; and single ones are moved. */
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ADMINISTRATOR_ROLE_ID, OPERATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../../src/core/builtin.js';
import { entityOf } from '../../support/answers.js';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { untilNotice } from '../../support/browser/notices.js';
import { createPerson, type Person } from '../../support/callers.js';
import { useService } from '../../support/fixture.js';
import { storeFleet } from '../../support/fleet.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

const groups = {} as Record<'north' | 'team' | 'south', string>;
const people = {} as Record<'admin' | 'operator' | 'viewer', Person>;
const ids = new Map<string, string>();

const fieldOf = async (name: string, field: string) =>
  (await service.admin('GET', `objects/${ids.get(name)}`)).body[field];
const box = (page: Page, name: string) => page.getByRole('checkbox', { name: `Choose ${name}`, exact: true });
const dialog = (page: Page) => page.getByRole('dialog');
const chosen = (page: Page, text: string) => page.locator('.choice-count', { hasText: text }).waitFor();
const open = (person: Person, path: string) => browser.openAs(path, person);

beforeAll(async () => {
  groups.north = await create('groups', { name: 'North' });
  groups.team = await create('groups', { name: 'Team', parent: groups.north });
  groups.south = await create('groups', { name: 'South' });
  const of = (role: string) => createPerson(service, { role, group: groups.north });
  people.admin = await of(ADMINISTRATOR_ROLE_ID);
  people.operator = await of(OPERATOR_ROLE_ID);
  people.viewer = await of(VIEWER_ROLE_ID);
  for (const name of ['Alpha', 'Beta', 'Gamma', 'Delta'])
    ids.set(name, await create('objects', { id: name, name, group: groups.north, labels: ['van'] }));
  ids.set('Guest', await create('objects', { id: 'Guest', name: 'Guest', group: groups.south, labels: ['van'] }));
  await service.admin('POST', `objects/${ids.get('Guest')}/access`, { user: people.admin.id });
  await service.admin('POST', `objects/${ids.get('Delta')}/move`, { group: groups.team });
});

test('moves the chosen objects, after a dry run has said what would change', async () => {
  const page = await open(people.admin, '/?view=table&sort=name&columns=name,group,labels');
  await box(page, 'Alpha').check();
  await chosen(page, '1 chosen');
  await page.getByRole('checkbox', { name: 'Choose all' }).check();
  await chosen(page, '5 chosen');
  await page.getByRole('button', { name: 'Change …' }).click();
  await dialog(page).getByRole('heading', { name: 'Change 5 objects' }).waitFor();
  await dialog(page).getByLabel('Group').selectOption({ label: 'Team' });
  await dialog(page).getByRole('button', { name: 'Check' }).click();
  await dialog(page).getByText('3 of 5 would change. 1 is so already.').waitFor();
  await dialog(page).getByText('Guest: Belongs to a group that is not yours.').waitFor();
  expect(await fieldOf('Alpha', 'group')).toBe(groups.north);
  // Another wish is not what was tried.
  await dialog(page).getByLabel('Group').selectOption({ label: 'North' });
  await dialog(page).getByRole('button', { name: 'Check' }).waitFor();
  await dialog(page).getByLabel('Group').selectOption({ label: 'Team' });
  await dialog(page).getByRole('button', { name: 'Check' }).click();
  await dialog(page).getByRole('button', { name: 'Change 3 objects' }).click();
  // The refused one is still told; the others are moved, in the table, too.
  await dialog(page).getByText('0 of 5 would change. 4 are so already.').waitFor();
  await page.keyboard.press('Escape');
  await eventually(async () =>
    expect(await page.locator('.object-rows td:nth-child(3)').allTextContents()).toEqual([
      'Team',
      'Team',
      'Team',
      'Team',
      groups.south,
    ]),
  );
  expect([await fieldOf('Gamma', 'group'), await fieldOf('Guest', 'group')]).toEqual([groups.team, groups.south]);
});

test('adds a label and sets when objects are offline, and keeps what else they have', async () => {
  await service.admin('PATCH', 'objects/Beta', { labels: ['van', 'cold'] });
  const page = await open(people.operator, '/?view=table&sort=name&columns=name,labels');
  await box(page, 'Alpha').check();
  await box(page, 'Beta').check();
  const change = async (what: string, label: string, value: string) => {
    await page.getByRole('button', { name: 'Change …' }).click();
    await dialog(page).getByLabel('What changes').selectOption({ label: what });
    await dialog(page).getByLabel(label, { exact: true }).fill(value);
    await dialog(page).getByRole('button', { name: 'Check' }).click();
    await dialog(page).getByRole('button', { name: 'Change 2 objects' }).click();
    await dialog(page).waitFor({ state: 'detached' });
  };
  await change('Add a label', 'Label', 'hired out');
  await change('Offline after', 'Offline after', '10 min');
  await untilNotice(page, '2 objects are changed');
  expect([await fieldOf('Alpha', 'labels'), await fieldOf('Beta', 'labels')]).toEqual([
    ['van', 'hired out'],
    ['van', 'cold', 'hired out'],
  ]);
  expect(await fieldOf('Beta', 'config')).toEqual({ offlineAfter: '10 min' });
  // Operators change objects, and move none.
  await page.getByRole('button', { name: 'Change …' }).click();
  const kinds = await dialog(page).getByLabel('What changes').locator('option').allTextContents();
  expect(kinds).toEqual(['Model', 'Add a label', 'Remove a label', 'Offline after']);
});

test('is used with the keyboard alone', async () => {
  const page = await open(people.operator, '/?view=table&sort=name&columns=name');
  await box(page, 'Alpha').waitFor();
  await page.getByRole('searchbox').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('x');
  await chosen(page, '1 chosen');
  await page.keyboard.press('Shift+ArrowDown');
  await chosen(page, '2 chosen');
  for (const name of ['Alpha', 'Beta']) {
    await eventually(async () => expect(await box(page, name).isChecked()).toBe(true));
  }
  await page.keyboard.press('x');
  await chosen(page, '1 chosen');
  await page.keyboard.press('Control+a');
  await chosen(page, '4 chosen');
  await page.keyboard.press('Escape');
  await eventually(async () => expect(await page.locator('.choice-count').textContent()).toBe(''));
  // The next one leads back to the search, as without a choice.
  await page.keyboard.press('Escape');
  await eventually(async () => expect(await page.locator('input[type=search]:focus').count()).toBe(1));
});

test('leaves alone what the filter no longer shows, and offers nothing to those who may change nothing', async () => {
  const page = await open(people.admin, '/?view=table&sort=name&columns=name');
  await box(page, 'Alpha').check();
  await box(page, 'Beta').check();
  await page.getByRole('searchbox').fill('alpha');
  await chosen(page, '1 chosen');
  await page.getByRole('button', { name: 'Change …' }).click();
  await dialog(page).getByRole('heading', { name: 'Change 1 object' }).waitFor();
  const viewer = await open(people.viewer, '/?view=table&sort=name&columns=name');
  await viewer.locator('.object-rows td button', { hasText: 'Alpha' }).waitFor();
  expect(await viewer.getByRole('checkbox').count()).toBe(0);
});

test('chooses at most 1,000 objects', async () => {
  await storeFleet(service.client.db(), 1_200, () => ({ labels: ['many'] }));
  const page = await browser.openAs('/?view=table&label=many&by=name');
  await page.getByText('1,200 objects').waitFor();
  await page.getByRole('checkbox', { name: 'Choose all' }).check();
  await chosen(page, '1,000 chosen (no more at once)');
  await page.getByRole('button', { name: 'None' }).click();
  await eventually(async () => expect(await page.locator('.choice-count').textContent()).toBe(''));
});

test('moves one object on its page, and a user in the administration', async () => {
  const page = await open(people.admin, `/objects/${ids.get('Delta')}/settings`);
  await page.getByLabel('Group').selectOption({ label: 'North' });
  await page.getByRole('button', { name: 'Save' }).first().click();
  await eventually(async () => expect(await fieldOf('Delta', 'group')).toBe(groups.north));
  await page.goto(`${service.url}/access/users`);
  const row = page.locator('tr', { hasText: people.viewer.login });
  await row.getByRole('button', { name: 'Edit' }).click();
  await dialog(page).getByLabel('Group').selectOption({ label: 'Team' });
  await dialog(page).getByRole('button', { name: 'Save' }).click();
  await row.getByText('Team').waitFor();
  expect((await service.admin('GET', `users/${people.viewer.id}`)).body.group).toBe(groups.team);
});
