/** Roles as boxes: what they permit is chosen, said in words before it is saved, and holds for requests. */
import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { entityOf } from '../../support/answers.js';
import { useBrowser } from '../../support/browser/browser.js';
import { createPerson, type Person } from '../../support/callers.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

/** A box that cannot be changed takes presses, and says why. */
const PRESSED = { force: true };

const uniqueName = (): string => `role-${randomBytes(4).toString('hex')}`;
const dialog = (page: Page) => page.getByRole('dialog');
const box = (page: Page, name: string) => dialog(page).getByRole('checkbox', { name, exact: true });
const effect = (page: Page) => dialog(page).locator('.permission-effect');
const save = (page: Page) => dialog(page).getByRole('button', { name: 'Save', exact: true });

async function addRole(credentials: readonly string[], name = uniqueName()): Promise<{ id: string; name: string }> {
  return { id: entityOf(await service.admin('POST', 'roles', { name, credentials }))._id as string, name };
}

const linesOf = async (id: string) => (await service.admin('GET', `roles/${id}`)).body.credentials;

async function openRole(name: string, person: Person | typeof ADMIN = ADMIN): Promise<Page> {
  const page = await browser.openAs('/access/roles', person);
  await page.locator('tr', { hasText: name }).getByRole('button', { name: 'Edit' }).click();
  await box(page, 'read everything').waitFor();
  return page;
}

/** What it says of a box that cannot be changed. */
const reasonOf = async (page: Page, name: string): Promise<string | null> =>
  box(page, name).locator('xpath=..').getAttribute('title');

test('makes a role of boxes, which permits its users what they say and nothing else', async () => {
  await service.admin('POST', 'objects', { id: 'truck', name: 'Truck' });
  const name = uniqueName();
  const page = await browser.openAs('/access/roles');
  await page.getByRole('button', { name: 'New' }).click();
  await dialog(page).getByLabel('Name').fill(name);
  await effect(page).getByText('Permits nothing yet.').waitFor();
  await box(page, 'read objects').check();
  await box(page, 'send commands').check();
  await effect(page).getByText('May: read objects; send commands').waitFor();
  await save(page).click();
  await page.locator('tr', { hasText: name }).waitFor();
  const { body: roles } = await service.admin('GET', `roles?search=${name}`);
  expect(roles[0].credentials).toEqual(['GET /objects/*', 'POST /objects/*/commands/*']);
  const { call } = await createPerson(service, { role: roles[0]._id });
  const statusOf = async (...request: Parameters<typeof call>) => (await call(...request)).status;
  expect(await statusOf('GET', 'objects/truck/packets')).toBe(200);
  expect(await statusOf('POST', 'objects/truck/commands/stop', {})).toBe(200);
  expect(await statusOf('POST', 'objects/truck/packets', { speed: 1 })).toBe(403);
  expect(await statusOf('PATCH', 'objects/truck', { status: 'x' })).toBe(403);
  expect(await statusOf('GET', 'models')).toBe(403);
});

test('says for how many users a change permits and ends what, and then it does', async () => {
  const { id, name } = await addRole(['GET /*', 'PATCH /objects/*']);
  const people = await Promise.all([createPerson(service, { role: id }), createPerson(service, { role: id })]);
  const page = await openRole(name);
  await effect(page).getByText('2 users have this role. Nothing changes.').waitFor();
  await box(page, 'send packets').check();
  await effect(page).getByText('2 users may now: send packets').waitFor();
  await box(page, 'change objects').uncheck();
  await effect(page).getByText('2 users may no longer: change objects').waitFor();
  await box(page, 'read everything').uncheck();
  await effect(page).getByText('may no longer: read everything').waitFor();
  await box(page, 'read everything').check();
  await save(page).click();
  await dialog(page).waitFor({ state: 'detached' });
  expect(await linesOf(id)).toEqual(['GET /*', 'POST /objects/*/packets']);
  await service.admin('POST', 'objects', { id: 'van', name: 'Van' });
  for (const { call } of people) {
    expect((await call('POST', 'objects/van/packets', { speed: 1 })).status).toBe(200);
    expect((await call('PATCH', 'objects/van', { status: 'x' })).status).toBe(403);
  }
});

test('keeps lines that have no box, in their order and as they were written', async () => {
  const lines = [
    'get-nothing:x',
    'GET objects/:id',
    'GET /objects/:object',
    'PATCH api/v1/Objects/*',
    '* /nowhere/*',
  ].slice(1);
  const { id, name } = await addRole(lines);
  const page = await openRole(name);
  const others = dialog(page).locator('.permission-others li');
  await eventually(async () =>
    expect(await others.allTextContents()).toEqual(['GET objects/:id', 'GET /objects/:object', '* /nowhere/*']),
  );
  await eventually(async () => expect(await box(page, 'change objects').isChecked()).toBe(true));
  // Pressed twice, it is as it was.
  await box(page, 'change objects').uncheck();
  await box(page, 'change objects').check();
  await box(page, 'send commands').check();
  await save(page).click();
  await dialog(page).waitFor({ state: 'detached' });
  expect(await linesOf(id)).toEqual([...lines, 'POST /objects/*/commands/*']);
  await page.locator('tr', { hasText: name }).getByRole('button', { name: 'Edit' }).click();
  await dialog(page).getByRole('button', { name: 'Remove the line * /nowhere/*' }).click();
  await effect(page).getByText('may no longer: * /nowhere/*').waitFor();
  await dialog(page).getByText('As text').click();
  await eventually(async () =>
    expect(await dialog(page).getByRole('textbox', { name: 'Permitted requests' }).inputValue()).toBe(
      [...lines.slice(0, 3), 'POST /objects/*/commands/*'].join('\n'),
    ),
  );
});

test('keeps the form open until the list shows what was saved, so that it never opens with former lines', async () => {
  const { id, name } = await addRole(['GET /objects/*', 'GET /models/*']);
  const page = await openRole(name);
  const [held, release] = createDeferred<void>();
  await page.route(/\/api\/v1\/roles\?/, async (route) => {
    await held;
    await route.fallback();
  });
  await box(page, 'read models').uncheck();
  await save(page).click();
  await eventually(async () => expect(await linesOf(id)).toEqual(['GET /objects/*']));
  await dialog(page).waitFor();
  release();
  await dialog(page).waitFor({ state: 'detached' });
  await page.locator('tr', { hasText: name }).getByText('GET /models/*').waitFor({ state: 'detached' });
});

test('shows the box that a wider line covers as checked, and says by which', async () => {
  const { name } = await addRole(['* /objects/*', 'GET /objects/truck-7']);
  const page = await openRole(name);
  await eventually(async () => expect(await box(page, 'send commands').isChecked()).toBe(true));
  await eventually(async () => expect(await box(page, 'send commands').getAttribute('aria-disabled')).toBe('true'));
  await box(page, 'send commands').click(PRESSED);
  await dialog(page).getByText('send commands: Already permitted by the line * /objects/*').waitFor();
  await eventually(async () => expect(await box(page, 'send commands').isChecked()).toBe(true));
  // With the keyboard, too.
  await box(page, 'read objects').press('Space');
  await dialog(page).getByText('read objects: Already permitted by the line * /objects/*').waitFor();
  await box(page, 'do everything with objects').uncheck();
  await eventually(async () => expect(await box(page, 'send commands').isChecked()).toBe(false));
  // The line of a single object remains.
  await box(page, 'read objects').and(page.locator(':indeterminate')).waitFor();
});

test('permits to choose only what the user may do', async () => {
  const group = entityOf(await service.admin('POST', 'groups', { name: uniqueName() }))._id;
  const { id: managers } = await addRole(['GET /*', '* /roles/*', 'PATCH /objects/*']);
  const manager = await createPerson(service, { role: managers, group });
  const own = async (credentials: readonly string[]) => {
    const name = uniqueName();
    await service.admin('POST', 'roles', { name, credentials, group });
    return name;
  };
  const narrow = await own(['GET /objects/*']);
  const wide = await own(['DELETE /objects/*']);
  const page = await openRole(narrow, manager);
  await eventually(async () =>
    expect(await reasonOf(page, 'send commands')).toBe('You may not do this yourself, so you cannot permit it.'),
  );
  await box(page, 'send commands').click(PRESSED);
  await eventually(async () => expect(await box(page, 'send commands').isChecked()).toBe(false));
  await effect(page).getByText('None of the users whom you see has this role.').waitFor();
  await box(page, 'change objects').check();
  await save(page).click();
  await dialog(page).waitFor({ state: 'detached' });
  await page.locator('tr', { hasText: wide }).getByRole('button', { name: 'Edit' }).click();
  await dialog(page).locator('.hint', { hasText: 'This role permits more than you may do yourself' }).waitFor();
});

test('says what the service refuses beside the text of the lines', async () => {
  browser.expectErrors(/400/);
  const { name } = await addRole(['GET /objects/*']);
  const page = await openRole(name);
  await dialog(page).getByText('As text').click();
  await dialog(page).getByRole('textbox', { name: 'Permitted requests' }).fill('GET /objects/*\nnonsense');
  await dialog(page).getByText('As text').click();
  await save(page).click();
  await dialog(page).locator('.note.error').waitFor();
});

test('warns of the own role, and names the boxes of own stores', async () => {
  await service.admin('POST', 'stores', { name: 'drivers', schema: {} });
  const { id, name } = await addRole(['* /*']);
  const own = await createPerson(service, { role: id });
  const page = await openRole(name, own);
  await dialog(page).locator('.hint', { hasText: 'This is your own role' }).waitFor();
  await box(page, 'read drivers').waitFor();
  await box(page, 'do everything, also audit and settings').uncheck();
  const lost = 'read everything; read settings, security events; create and send everything; change everything;';
  await effect(page).getByText(`1 user may no longer: ${lost} change settings; remove everything`).waitFor();
  await box(page, 'do everything with models').check();
  await effect(page)
    .getByText(/share objects, [^;]*sources, webhooks/)
    .waitFor();
});

test('offers the same boxes for the scopes of a token', async () => {
  const page = await browser.openAs('/account/tokens');
  await page.getByRole('button', { name: 'New token' }).first().click();
  await dialog(page).getByLabel('Name').fill('Pump');
  await dialog(page)
    .getByRole('radio', { name: /Custom/ })
    .check();
  await box(page, 'read objects').uncheck();
  await box(page, 'send packets').check();
  await effect(page).getByText('May: send packets').waitFor();
  await dialog(page).getByRole('button', { name: 'Create token' }).click();
  await dialog(page).getByText('Copy').first().waitFor();
  const { body: tokens } = await service.admin('GET', 'tokens?search=Pump');
  expect(tokens[0].scopes).toEqual(['POST /objects/*/packets']);
});

test('leads from box to box with the arrows', async () => {
  const { name } = await addRole([]);
  const page = await openRole(name);
  await box(page, 'read everything').focus();
  const focused = async (expected: string) =>
    eventually(async () => expect(await page.evaluate('document.activeElement.ariaLabel')).toBe(expected));
  await page.keyboard.press('ArrowDown');
  await focused('read objects');
  await page.keyboard.press('ArrowRight');
  await focused('create objects');
  // Past rows that have no box in this column.
  await page.keyboard.press('ArrowDown');
  await focused('send packets');
  await page.keyboard.press('Space');
  await effect(page).getByText('Users with this role may now: send packets').waitFor();
  await page.keyboard.press('ArrowUp');
  await focused('create objects');
});

test('changes a role as text while the boxes cannot be loaded', async () => {
  browser.expectErrors(/ERR_FAILED/);
  const { id, name } = await addRole(['GET /objects/*']);
  const page = await browser.openAs('/access/roles');
  await page.route('**/openapi.json', (route) => route.abort());
  await page.locator('tr', { hasText: name }).getByRole('button', { name: 'Edit' }).click();
  await dialog(page).getByRole('textbox', { name: 'Permitted requests' }).fill('GET /models/*');
  await save(page).click();
  await dialog(page).waitFor({ state: 'detached' });
  expect(await linesOf(id)).toEqual(['GET /models/*']);
});

test('shows hostile names and lines as text, in the list and in the form', async () => {
  const name = `<img src=x onerror="window.hacked=1">\u202e${uniqueName()}`;
  const lines = [
    'GET /<script>window.hacked=1</script>',
    `GET /${'x'.repeat(250)}`,
    'GET /__proto__/*',
    '* /constructor/:id',
  ];
  const { id } = await addRole(lines, name);
  const page = await browser.openAs('/access/roles');
  await page.locator('tr', { hasText: name }).getByRole('button', { name: 'Edit' }).click();
  const others = dialog(page).locator('.permission-others li');
  await eventually(async () => expect(await others.allTextContents()).toEqual(lines));
  await effect(page).getByText('None of the users').waitFor();
  // A long line makes the dialog no wider than it is.
  expect(
    await page.evaluate(`document.querySelector('dialog').scrollWidth <= document.querySelector('dialog').offsetWidth`),
  ).toBe(true);
  await box(page, 'read models').check();
  await save(page).click();
  await dialog(page).waitFor({ state: 'detached' });
  expect(await linesOf(id)).toEqual([...lines, 'GET /models/*']);
  expect(await page.evaluate('window.hacked')).toBeUndefined();
});
