/** The console in a real browser, from the login to the own packet, and what it shows of a service that changes. */
import { describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { logIn } from '../../../scripts/bench/console-pages.js';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { untilNotice } from '../../support/browser/notices.js';
import { typeId } from '../../support/browser/object-form.js';
import { createUser } from '../../support/browser/users.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const add = async (id: string, name: string, packet?: object): Promise<string> => {
  const { body } = await service.admin('POST', 'objects', { id, name });
  if (packet !== undefined) await service.admin('POST', `objects/${id}/packets`, packet);
  return body._id;
};

test('leads from the login to the own packet on the map in few clicks', async () => {
  const page = await browser.open('/');
  let clicks = 0;
  const click = async (name: string | RegExp): Promise<void> => {
    clicks++;
    await page.getByRole(/map|Connect your/.test(String(name)) ? 'link' : 'button', { name }).click();
  };
  await page.getByLabel('Login').fill(ADMIN.login);
  await page.getByLabel('Password').fill(ADMIN.password);
  await click('Log in');
  await click('Connect your first object');
  await page.getByLabel('Name').fill('My truck');
  await click('Create');
  await click('Simulate a drive');
  await page.getByText('The first packet is here').waitFor();
  await click('Show it on the map');
  await page.locator('.card').getByRole('heading', { name: 'My truck' }).waitFor();
  await page.locator('.card').getByText('km/h', { exact: true }).waitFor();
  await page.locator('canvas.maplibregl-canvas').waitFor();
  expect(clicks).toBeLessThanOrEqual(8);
  const { body } = await service.admin('GET', 'objects/device-1/packets');
  expect(body.length).toBeGreaterThan(0);
});

test('gives a command with a token that works as it is pasted', async () => {
  const page = await browser.openAs('/welcome');
  await typeId(page, 'pasted');
  await page.getByRole('button', { name: 'Create' }).click();
  const text = await page.getByRole('region', { name: 'curl' }).textContent();
  // From then on the page notices a first packet.
  await effectsRun(page);
  const [, address, token, body] = /curl '([^']+)'.*Bearer ([^']+)'.*-d '([^']+)'/s.exec(
    text ?? '',
  ) as unknown as string[];
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  expect((await fetch(address as string, { method: 'POST', headers, body: body as string })).status).toBe(200);
  await page.getByText('The first packet is here').waitFor();
});

test('makes a token, shows it once, and revokes it', async () => {
  await add('tokened', 'Tokened');
  const page = await browser.openAs('/account/tokens');
  await page.getByRole('button', { name: 'New token' }).first().click();
  await page.getByLabel('Name').fill('For the pump');
  await page.getByText('Read only').click();
  await page.getByRole('button', { name: 'Create token' }).click();
  const token = (await page.getByRole('region', { name: 'Token', exact: true }).textContent()) ?? '';
  await page.getByRole('button', { name: 'I have stored it' }).click();
  expect((await service.as(token)('GET', 'objects/tokened')).status).toBe(200);
  expect((await service.as(token)('PATCH', 'objects/tokened', { status: 'x' })).status).toBe(403);
  expect(await page.content()).not.toContain(token);
  const item = page.locator('.item', { hasText: 'For the pump' });
  await item.getByText('GET /*').waitFor();
  await item.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await item.waitFor({ state: 'detached' });
  expect((await service.as(token)('GET', 'objects/tokened')).status).toBe(401);
});

test('asks before a new password revokes tokens, and says which ones', async () => {
  const login = 'renewed';
  const passwords = ['a first password', 'a second password', 'a third password'] as const;
  await service.admin('POST', 'users', { login, password: passwords[0] });
  const page = await browser.openAs('/account/profile', { login, password: passwords[0] });
  const change = async (index: 0 | 1): Promise<void> => {
    await page.getByLabel('Current password').fill(passwords[index]);
    await page.getByLabel('New password').fill(passwords[index + 1] as string);
    await page.getByRole('button', { name: 'Change password' }).click();
  };
  await change(0);
  await untilNotice(page, 'Password changed');
  const own = service.as(await service.tokenOf(login, passwords[1]));
  for (const name of ['Pump 1', 'Pump 2', 'Pump 3']) await own('POST', 'account/tokens', { name, expiresIn: '1 day' });
  await change(1);
  const dialog = page.getByRole('dialog', { name: 'Change password' });
  await dialog.getByText('revokes all your other tokens (4): login, Pump 1, Pump 2 and 1 more. Devices').waitFor();
  expect((await own('GET', 'account')).status).toBe(200);
  await dialog.getByRole('button', { name: 'Change password' }).click();
  await untilNotice(page, 'Password changed. Revoked: login, Pump 1, Pump 2 and 1 more');
  expect((await own('GET', 'account')).status).toBe(401);
});

describe('what happens elsewhere', () => {
  test('shows new objects, values, names and removals as they happen', async () => {
    await add('seen', 'Seen');
    const page = await browser.openAs('/');
    const row = (name: string) => page.locator('.row', { hasText: name });
    await row('Seen').waitFor();
    await add('later', 'Later', { temperature: 21.5 });
    await row('Later').getByText('21.5').waitFor();
    await service.admin('POST', 'objects/later/packets', { temperature: 33 });
    await row('Later').getByText('33').waitFor();
    await service.admin('PATCH', 'objects/later', { name: 'Renamed' });
    await row('Renamed').waitFor();
    await service.admin('DELETE', 'objects/later');
    await row('Renamed').waitFor({ state: 'detached' });
  });

  test('asks for the login in place when a session was ended, and goes on', async () => {
    const id = await add('typing', 'Typing');
    browser.expectErrors(/401/);
    const page = await browser.openAs(`/objects/${id}/settings`);
    await page.getByLabel('Status').fill('half written');
    await service.client.db().collection('sessions').deleteMany({});
    // What the page asks for in the background may have brought the dialog already, which covers the button.
    await page.getByRole('button', { name: 'Save', includeHidden: true }).evaluate((button) => button.click());
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Password').fill(ADMIN.password);
    await dialog.getByRole('button', { name: 'Log in' }).click();
    await untilNotice(page, 'Saved');
    expect((await service.admin('GET', 'objects/typing')).body.status).toBe('half written');
  });

  test('shows nothing of the person before after a login that follows an ended session', async () => {
    await add('theirs', 'Theirs alone');
    const { body: group } = await service.admin('POST', 'groups', { name: 'Elsewhere' });
    const other = await createUser(service, 'viewer', { group: group._id });
    browser.expectErrors(/401/);
    const page = await browser.openAs('/');
    await page.locator('.row', { hasText: 'Theirs alone' }).waitFor();
    await service.client.db().collection('sessions').deleteMany({});
    // What the page asks for in the background may have brought the dialog already.
    await page.locator('.nav a[href="/account"]').evaluate((link) => link.click());
    await page.getByRole('dialog').getByLabel('Password').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await logIn(page, other);
    await page.getByRole('link', { name: 'Map' }).click();
    await page.getByText('Ask your administrator').waitFor();
    expect(await page.locator('.row').count()).toBe(0);
  });
});

test('shows the description of an object where it is edited', async () => {
  const id = await add('described', 'Described');
  await service.admin('PATCH', `objects/${id}`, { description: 'a red one' });
  const page = await browser.openAs(`/objects/${id}/settings`);
  await page.getByLabel('Description').waitFor();
  await eventually(async () => expect(await page.getByLabel('Description').inputValue()).toBe('a red one'));
});

test('shows the steps of a command as its device takes them', async () => {
  const id = await add('commanded', 'Commanded');
  const page = await browser.openAs(`/objects/${id}/commands`);
  await page.getByLabel('Command', { exact: true }).fill('lock');
  await page.getByRole('button', { name: 'Send …' }).click();
  await page
    .getByRole('dialog', { name: 'Send “lock” to Commanded?' })
    .getByRole('button', { name: 'Send command' })
    .click();
  const item = page.locator('.command', { hasText: 'lock' });
  await item.locator('.tag', { hasText: 'Queued' }).waitFor();
  const { body } = await service.admin('GET', 'objects/commanded/commands?status=queued');
  await service.admin('POST', `objects/commanded/commands/${body[0]._id}/result`, { status: 'done', result: 'locked' });
  await item.locator('.tag', { hasText: 'Done' }).waitFor();
  await item.getByText('"locked"').waitFor();
});

test('zooms the history, and keeps the interval in the address', async () => {
  const id = await add('past', 'Past');
  const startMs = Date.now() - 3_600_000;
  const packets = Array.from({ length: 60 }, (_, minute) => ({
    time: startMs + minute * 60_000,
    lat: 48 + minute / 1_000,
    lon: 11,
    speed: minute,
  }));
  await service.admin('POST', `objects/${id}/packets`, packets);
  const page = await browser.openAs(`/objects/${id}/history`);
  const chart = page.locator('.uplot').first();
  await chart.waitFor();
  // A chart that is drawn again, or moved by what is loaded above it, forgets a drag.
  await until(async () => {
    await dragOver(page, await chart.boundingBox());
    await effectsRun(page);
    return /from=\d+&to=\d+/.test(page.url());
  }, 'the interval in the address');
  const [from, to] = ['from', 'to'].map((name) => Number(new URL(page.url()).searchParams.get(name)));
  expect((to as number) - (from as number)).toBeLessThan(3_600_000);
  await page.getByRole('button', { name: 'Replay' }).click();
  await page.locator('.value-cards').getByText('speed').waitFor();
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'CSV' }).click();
  expect((await download).suggestedFilename()).toBe('past.csv');
});

async function dragOver(
  page: Page,
  box: { x: number; y: number; width: number; height: number } | null,
): Promise<void> {
  if (box === null) throw new Error('no chart');
  await page.mouse.move(box.x + box.width * 0.4, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2, { steps: 5 });
  await page.mouse.up();
}

test('logs in, searches and selects with the keyboard alone', async () => {
  await add('keyed', 'Keyed object', { speed: 5 });
  const page = await browser.open('/');
  await page.getByLabel('Login').and(page.locator(':focus')).waitFor();
  await page.keyboard.type(ADMIN.login);
  await page.keyboard.press('Tab');
  await page.keyboard.type(ADMIN.password);
  await page.keyboard.press('Enter');
  await page.locator('.row', { hasText: 'Keyed object' }).waitFor();
  // From then on the page follows keys.
  await effectsRun(page);
  await page.keyboard.press('/');
  await page.keyboard.type('keyed');
  await page.waitForURL(/search=keyed/);
  for (let presses = 0; !(await page.evaluate('document.activeElement.closest(".row") !== null')); presses++) {
    expect(presses).toBeLessThan(10);
    await page.keyboard.press('Tab');
  }
  await page.keyboard.press('Enter');
  await page.locator('.card').getByRole('heading', { name: 'Keyed object' }).waitFor();
});

test('opens an object from the list of a phone with a finger', async () => {
  const id = await add('pocket', 'Pocket', { speed: 5, lat: 48, lon: 11 });
  const page = await browser.openAs('/', ADMIN, browser.phone);
  await page.locator('.row', { hasText: 'Pocket' }).getByRole('button').tap();
  await page.locator('.card').getByRole('link', { name: 'Open' }).tap();
  await page.waitForURL(new RegExp(`/objects/${id}/live`));
});
