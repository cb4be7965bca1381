/** Forms: what they make of what is typed, where they say what is wrong with it, and where the focus goes. */
import { expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { logIn } from '../../../scripts/bench/console-pages.js';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { typeId } from '../../support/browser/object-form.js';
import { createUser } from '../../support/browser/users.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

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
  await typeId(page, 'a/b');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('[aria-invalid=true]').waitFor();
  expect(await describe(id)).toBe('May not contain #, / or control characters.');
  await eventually(async () => expect([await hasFocus(id), await page.locator('.problem').count()]).toEqual([true, 0]));
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
  const old = page.getByLabel('Bisheriges Passwort');
  const fresh = page.getByLabel('Neues Passwort');
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
  await eventually(async () => expect([await hasFocus(old), await dialog.count()]).toEqual([true, 0]));
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
  await page.getByText('As text').click();
  await page.getByRole('textbox', { name: 'Permitted requests' }).fill('read everything');
  await page.getByRole('button', { name: 'Create token' }).click();
  browser.expectErrors(/400/);
  await page.getByText('Expected a method and a path in each line').waitFor();
});

test.each([
  ['by its name in small letters', 'zürich van'],
  ['by its name without accents', 'ZURICH VAN'],
  ['by its id in capitals', 'VAN-ZH'],
  ['by its name between blanks', '  Zürich Van '],
])('finds the object of a new token %s', async (about, text) => {
  for (const [id, name] of [
    ['van-zh', 'Zürich Van'],
    ['van-2', 'Twin'],
    ['VAN-2', 'twin'],
  ] as const)
    await service.admin('POST', 'objects', { id, name });
  const page = await browser.openAs('/account/tokens');
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByRole('radio', { name: 'One device' }).check();
  await page.getByLabel('Name').fill(about);
  const object = page.getByLabel('Object', { exact: true });
  await page.locator('datalist option[value="van-zh"]').waitFor({ state: 'attached' });
  // Two objects differ in case alone.
  await object.fill('Van-2');
  await page.getByRole('button', { name: 'Create token' }).click();
  await page.getByText('Choose an object from the list.').waitFor();
  await object.fill(text);
  await page.getByRole('button', { name: 'Create token' }).click();
  await page.getByRole('button', { name: 'I have stored it' }).waitFor();
  const { body: tokens } = await service.admin('GET', 'account/tokens');
  const made = (tokens as { name: string; scopes: string[] }[]).find(({ name }) => name === about);
  expect(made?.scopes).toContain('POST /objects/van-zh/packets');
});

test('chooses neither a command nor a user before somebody does', async () => {
  const children = [
    { type: 'action', id: 'stop', name: 'Stop the press' },
    { type: 'action', id: 'light', name: 'Switch the light', params: { on: true } },
  ];
  const { body: model } = await service.admin('POST', 'models', { name: 'Press', data: { children } });
  const { body: object } = await service.admin('POST', 'objects', { id: 'press', name: 'Press', model: model._id });
  await createUser(service, 'viewer');
  const page = await browser.openAs(`/objects/${object._id}/commands`);
  const command = page.getByLabel('Command', { exact: true });
  await command.locator('option', { hasText: 'Stop the press' }).waitFor({ state: 'attached' });
  await eventually(async () => expect(await command.inputValue()).toBe(''));
  await page.getByRole('button', { name: 'Send …' }).click();
  await page.getByText('Choose a command.').waitFor();
  await eventually(async () =>
    expect([await hasFocus(command), await page.getByRole('dialog').count()]).toEqual([true, 0]),
  );
  await page.goto(`${service.url}/objects/${object._id}/settings`);
  await page.locator('.section').getByRole('button', { name: 'Share', exact: true }).click();
  await page.getByText('Choose a user.').waitFor();
  const { body } = await service.admin('GET', 'objects/press');
  expect(body.access).toEqual([]);
  expect((await service.admin('GET', 'objects/press/commands')).body).toEqual([]);
});

test('asks for a number, then names the command as the model does and says that the device is offline', async () => {
  const children = [{ type: 'action', id: 'limit', name: 'Limit the speed', params: { speed: 5 } }];
  const { body: model } = await service.admin('POST', 'models', { name: 'Limited', data: { children } });
  const { body: object } = await service.admin('POST', 'objects', { id: 'limited', name: 'Limited', model: model._id });
  const page = await browser.openAs(`/objects/${object._id}/commands`);
  await page.getByLabel('Command', { exact: true }).selectOption('Limit the speed');
  const speed = page.getByLabel('speed');
  await speed.fill('');
  await page.getByRole('button', { name: 'Send …' }).click();
  await page.getByText('Expected a number.').waitFor();
  await eventually(async () =>
    expect([await hasFocus(speed), await page.getByRole('dialog').count()]).toEqual([true, 0]),
  );
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

test('sends parameters of a command with the types that the model declares', async () => {
  const params = { pin: '1234', code: '7', speed: 5, on: true, list: [1, 2], none: null, any: '' };
  const children = [{ type: 'action', id: 'start', name: 'Start engine', params }];
  const { body: model } = await service.admin('POST', 'models', { name: 'Typed', data: { children } });
  const { body: object } = await service.admin('POST', 'objects', { id: 'typed', name: 'Typed', model: model._id });
  const page = await browser.openAs(`/objects/${object._id}/commands`);
  await page.getByLabel('Command', { exact: true }).selectOption('Start engine');
  await page.getByLabel('code').fill('42');
  await page.getByLabel('speed').fill('6');
  await page.getByLabel('any').fill('8');
  await page.getByLabel('on', { exact: true }).selectOption('No');
  await page.getByRole('button', { name: 'Send …' }).click();
  await page.getByRole('button', { name: 'Send command' }).click();
  await page.locator('.command', { hasText: 'Start engine (start)' }).waitFor();
  const { body: commands } = await service.admin('GET', `objects/${object._id}/commands`);
  expect(commands[0].params).toEqual({ ...params, code: '42', speed: 6, on: false, any: 8 });
});

test('removes an emptied email, in the form of a user and in the own profile', async () => {
  const someone = { login: 'mailed', password: 'a password of eight' };
  const { body: user } = await service.admin('POST', 'users', { ...someone, email: 'mailed@example.com' });
  const emailOf = async () => (await service.admin('GET', `users/${user._id}`)).body.email;
  const empty = async (page: Page) => {
    await page.getByLabel('Email').fill('');
    await page.getByRole('button', { name: 'Save' }).click();
    await until(async () => (await emailOf()) === undefined, 'the email is removed');
  };
  const page = await browser.openAs('/access/users');
  await page.getByRole('row', { name: 'mailed' }).getByRole('button', { name: 'Edit' }).click();
  await empty(page);
  await service.admin('PATCH', `users/${user._id}`, { email: 'again@example.com' });
  const own = await browser.openAs('/account/profile', someone);
  await until(async () => (await own.getByLabel('Email').inputValue()) === 'again@example.com', 'the new email');
  await empty(own);
});

test('shows the last day for an address with a time that no date can have', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'beyond', name: 'Beyond' });
  const page = await browser.openAs(`/objects/${object._id}/history?from=0&to=10000000000000000`);
  await page.getByRole('button', { name: '24 hours', pressed: true }).waitFor();
});

test('keeps an interval of seconds when somebody passes through its fields', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'zoomed', name: 'Zoomed' });
  const path = `/objects/${object._id}/history?from=1770000030500&to=1770000150500`;
  const page = await browser.openAs(path);
  const fields = page.locator('input[type=datetime-local]');
  await fields.nth(0).focus();
  await fields.nth(1).focus();
  await page.getByRole('link', { name: 'Live' }).focus();
  expect(page.url()).toBe(service.url + path);
  await fields.nth(1).fill('2026-02-03T00:00');
  await page.getByRole('link', { name: 'Live' }).focus();
  await page.waitForURL((url) => url.searchParams.get('to') !== '1770000150500');
});

test('says that an interval ends before it begins, and keeps what was typed', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'turned', name: 'Turned' });
  const path = `/objects/${object._id}/history?from=1770000000000&to=1770000060000`;
  const page = await browser.openAs(path);
  const from = page.getByLabel('From', { exact: true });
  const to = page.getByLabel('To', { exact: true });
  const error = page.getByText('“From” must be before “To”.');
  await from.fill('2026-02-05T00:00');
  await to.focus();
  await error.waitFor();
  const noteId = await error.getAttribute('id');
  for (const field of [from, to]) {
    await eventually(async () => expect(await field.getAttribute('aria-invalid')).toBe('true'));
    await eventually(async () => expect(await field.getAttribute('aria-describedby')).toBe(noteId));
  }
  await eventually(async () => expect(await from.inputValue()).toBe('2026-02-05T00:00'));
  expect(page.url()).toBe(service.url + path);
  await to.fill('2026-02-06T00:00');
  await from.focus();
  await page.waitForURL(
    (url) => Number(url.searchParams.get('to')) - Number(url.searchParams.get('from')) === 86_400_000,
  );
  await error.waitFor({ state: 'detached' });
  await eventually(async () => expect(await from.getAttribute('aria-invalid')).toBeNull());
});

test('shows long parameters of a command on a narrow phone without scrolling', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'long', name: 'Long' });
  await service.admin('POST', 'objects/long/commands/show', { text: 'x'.repeat(300) });
  const page = await browser.openAs(`/objects/${object._id}/commands`, undefined, browser.phone);
  await page.locator('.command').waitFor();
  const box = await page.locator('.command code').boundingBox();
  expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThan(page.viewportSize()?.width ?? 0);
});

test('has room for German words in a choice on a phone', async () => {
  const { body: model } = await service.admin('POST', 'models', { name: 'Narrow', data: { children: [] } });
  const page = await browser.openAs(`/models/${model._id}`, undefined, browser.phone);
  await page.evaluate('localStorage.setItem("vigil.language", "de")');
  await page.reload();
  const button = page.getByRole('button', { name: 'Formular' });
  await button.waitFor();
  const [needed, available] = await button.evaluate((one) => [one.scrollWidth, one.clientWidth] as const);
  expect(needed).toBeLessThanOrEqual(available);
});

test('sets and removes the time after which a silent object is offline, and nothing else', async () => {
  const config = { auth: { username: 'pump' }, note: 'kept' };
  const { body: object } = await service.admin('POST', 'objects', { id: 'silent', name: 'Silent', config });
  const configOf = async () => (await service.admin('GET', `objects/${object._id}`)).body.config;
  const page = await browser.openAs(`/objects/${object._id}/settings`);
  const apply = async (duration: string): Promise<void> => {
    await page.getByLabel('Offline after').fill(duration);
    await page.getByRole('button', { name: 'Apply' }).click();
  };
  browser.expectErrors(/400/);
  await apply('soon');
  await page.getByText('Expected a duration from 1 s to 366 days, such as 10 min.').waitFor();
  await eventually(async () =>
    expect(await page.getByLabel('Offline after').getAttribute('aria-invalid')).toBe('true'),
  );
  await apply('10 min');
  await until(async () => (await configOf()).offlineAfter === '10 min', 'the time is set');
  await page.reload();
  await eventually(async () => expect(await page.getByLabel('Offline after').inputValue()).toBe('10 min'));
  await apply('');
  await until(async () => (await configOf()).offlineAfter === null, 'the time is removed');
  expect(await configOf()).toEqual({ ...config, offlineAfter: null });
});

test('says that a session could not be ended, and ends it on request', async () => {
  const person = await createUser(service, 'viewer');
  // The other page is told that its session has ended.
  browser.expectErrors(/503|401/);
  const other = await browser.open('/');
  await logIn(other, person);
  const page = await browser.open('/');
  await logIn(page, person);
  await page.goto(`${service.url}/account/sessions`);
  const end = page.getByRole('button', { name: 'End', exact: true });
  await end.waitFor();
  await page.route(/\/account\/sessions\/./, (route) => route.fulfill({ status: 503, json: { success: false } }), {
    times: 1,
  });
  await end.click();
  await page.getByRole('alert').waitFor();
  await end.click();
  await end.waitFor({ state: 'detached' });
  await page.getByRole('alert').waitFor({ state: 'detached' });
});

test('ends the access of a second user before the answer for the first one has come', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'given', name: 'Given' });
  for (const { login } of [await createUser(service, 'viewer'), await createUser(service, 'viewer')]) {
    const { body } = await service.admin('GET', `users?where.login=${login}`);
    await service.admin('POST', `objects/${object._id}/access`, { user: body[0]._id });
  }
  const page = await browser.openAs(`/objects/${object._id}/settings`);
  const [held, release] = createDeferred<void>();
  await page.route(/\/access\/./, async (route) => {
    await held;
    await route.continue();
  });
  const ends = page.getByRole('button', { name: 'Stop sharing' });
  await ends.nth(1).waitFor();
  await ends.nth(0).click();
  await ends.nth(1).click();
  release();
  await ends.first().waitFor({ state: 'detached' });
  expect((await service.admin('GET', 'objects/given')).body.access).toEqual([]);
});
