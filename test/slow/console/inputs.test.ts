/** What pages make of what is typed, of what is left as it is, and of what is long. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

test('sends parameters of a command with the types that the model declares', async () => {
  const params = { pin: '1234', code: '7', speed: 5, on: true, list: [1, 2], none: null, any: '' };
  const children = [{ type: 'action', id: 'start', name: 'Start engine', params }];
  const { body: model } = await service.admin('POST', 'models', { name: 'Typed', data: { children } });
  const { body: object } = await service.admin('POST', 'objects', { id: 'typed', name: 'Typed', model: model._id });
  const page = await browser.openAs(`/objects/${object._id}/commands`);
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
  expect(await own.getByLabel('Email').inputValue()).toBe('again@example.com');
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
  const [from, to] = [page.getByLabel('From', { exact: true }), page.getByLabel('To', { exact: true })];
  const error = page.getByText('“From” must be before “To”.');
  await from.fill('2026-02-05T00:00');
  await to.focus();
  await error.waitFor();
  const noteId = await error.getAttribute('id');
  for (const field of [from, to]) {
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    expect(await field.getAttribute('aria-describedby')).toBe(noteId);
  }
  expect(await from.inputValue()).toBe('2026-02-05T00:00');
  expect(page.url()).toBe(service.url + path);
  await to.fill('2026-02-06T00:00');
  await from.focus();
  await page.waitForURL(
    (url) => Number(url.searchParams.get('to')) - Number(url.searchParams.get('from')) === 86_400_000,
  );
  await error.waitFor({ state: 'detached' });
  expect(await from.getAttribute('aria-invalid')).toBeNull();
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
  expect(await page.getByLabel('Offline after').getAttribute('aria-invalid')).toBe('true');
  await apply('10 min');
  await until(async () => (await configOf()).offlineAfter === '10 min', 'the time is set');
  await page.reload();
  expect(await page.getByLabel('Offline after').inputValue()).toBe('10 min');
  await apply('');
  await until(async () => (await configOf()).offlineAfter === null, 'the time is removed');
  expect(await configOf()).toEqual({ ...config, offlineAfter: null });
});
