/** The server is killed under the page, which keeps what it shows, says so, and has everything when the server is back. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { findFreePort } from '../../support/ports.js';
import { type Process, startProcess } from '../../support/process.js';
import { eventually } from '../../support/until.js';

const SECRET = randomBytes(32).toString('hex');
// Another instance on the same database: what devices send to it is what the page must not miss.
const other = useService({ env: { SECRET } });
let killed: Process | undefined;
let env: Record<string, string> = {};
const browser = useBrowser({
  get url() {
    return killed?.url ?? '';
  },
} as typeof other);

beforeAll(async () => {
  env = {
    PORT: String(await findFreePort()),
    OPS_PORT: String(await findFreePort()),
    SECRET,
    MONGODB_URI: other.mongodbUri,
    STOP_DELAY: '0',
  };
  killed = await startProcess(env);
  // With an object that has a position, the first page is a map.
  await other.admin('POST', 'objects', { id: 'placed', name: 'Placed' });
  await other.admin('POST', 'objects/placed/packets', { lat: 48.1, lon: 11.5 });
});
afterAll(() => void killed?.child.kill('SIGKILL'));

/** As many as the window has room for. */
const PACKETS = 8;

test('shows every packet that came while its server was dead, and keeps the page meanwhile', async () => {
  await other.admin('POST', 'objects', { id: 'lasting', name: 'Lasting' });
  await other.admin('POST', 'objects/lasting/packets', { speed: 11 });
  browser.expectErrors(/Failed to load resource|ERR_|WebSocket|EventSource/);
  const page = await browser.openAs('/');
  const row = page.locator('.row', { hasText: 'Lasting' });
  await row.getByText('11').waitFor();
  // What loads the map would report that the server is gone.
  await page.locator('.map[data-drawn]').waitFor();
  await page.locator('.nav').getByRole('link', { name: 'Log' }).click();
  await page.locator('.log').waitFor();
  await page.locator('.status.live').waitFor();
  killed?.child.kill('SIGKILL');
  await page.locator('.status.lost').waitFor();
  for (let mark = 0; mark < PACKETS; mark++) await other.admin('POST', 'objects/lasting/packets', { mark: mark + 500 });
  await page.locator('.nav').getByRole('link', { name: 'Map' }).click();
  await row.waitFor();
  await page.locator('.nav').getByRole('link', { name: 'Log' }).click();
  killed = await startProcess(env);
  await page.locator('.status.live').waitFor();
  // The number alone may be a part of a time.
  await page.locator('.log-row', { hasText: `"mark":${PACKETS - 1 + 500}` }).waitFor();
  const texts = (await page.locator('.log-row').allTextContents()).join('\n');
  const seen = Array.from({ length: PACKETS }, (_, mark) => texts.split(`"mark":${mark + 500}`).length - 1);
  expect(seen).toEqual(Array.from({ length: PACKETS }, () => 1));
});

test('asks for no password again when the server is back', async () => {
  const page = await browser.openAs('/', ADMIN);
  await page.locator('.row', { hasText: 'Lasting' }).waitFor();
  // What loads the map would report that the server is gone.
  await page.locator('.map[data-drawn]').waitFor();
  browser.expectErrors(/Failed to load resource|ERR_|WebSocket|EventSource/);
  killed?.child.kill('SIGKILL');
  await page.locator('.status.lost').waitFor();
  killed = await startProcess(env);
  await page.locator('.status.live').waitFor();
  expect(await page.getByRole('dialog').count()).toBe(0);
});

test('shows a page that was opened while the server was away, and never before, when it is back', async () => {
  const page = await browser.openAs('/', ADMIN);
  await page.locator('.map[data-drawn]').waitFor();
  browser.expectErrors(/Failed to load resource|ERR_|WebSocket|EventSource/);
  killed?.child.kill('SIGKILL');
  await page.locator('.status.lost').waitFor();
  const asked = page.waitForEvent('requestfailed', (request) => /\/console\/.*\.js$/.test(request.url()));
  await page.locator('.nav').getByRole('link', { name: 'Log' }).click();
  await asked;
  killed = await startProcess(env);
  await page.locator('.log').waitFor();
});

test('loads the journal of commands that it could not reach again when the server is back', async () => {
  const { body: object } = await other.admin('POST', 'objects', { id: 'honking', name: 'Honking' });
  await other.admin('POST', 'objects/honking/commands/honk', {});
  const page = await browser.openAs(`/objects/${object._id}/live`, ADMIN);
  await page.locator('.status.live').waitFor();
  // The scripts of the page are there before the server goes.
  await page.getByRole('link', { name: 'Commands' }).click();
  await page.locator('.command').waitFor();
  await page.getByRole('link', { name: 'Live' }).click();
  browser.expectErrors(/Failed to load resource|ERR_|WebSocket|EventSource/);
  killed?.child.kill('SIGKILL');
  await page.locator('.status.lost').waitFor();
  await page.getByRole('link', { name: 'Commands' }).click();
  const problem = page.locator('main').getByText('The server cannot be reached');
  await problem.waitFor();
  killed = await startProcess(env);
  await page.locator('.command', { hasText: 'honk' }).waitFor();
  await problem.waitFor({ state: 'detached' });
});

test('keeps alarms that were seen, and loads them and geofences again when the server is back', async () => {
  await other.admin('POST', 'rules', { name: 'Fast', when: { param: 'speed', op: '>', value: 90 } });
  await other.admin('POST', 'objects', { id: 'fast', name: 'Fast' });
  await other.admin('POST', 'objects/fast/packets', { speed: 99 });
  const page = await browser.openAs('/log', ADMIN);
  // A link may have a count beside its name.
  const link = (name: string) => page.locator('.tabs, .nav').getByRole('link', { name }).first();
  const main = page.locator('main');
  const problem = main.getByText('The server cannot be reached');
  const count = page.locator('.alarms-selection [role=status]');
  // The scripts of the pages are there before the server goes.
  await link('Alarms').click();
  await page.locator('.alarm-name').waitFor();
  await link('Data').click();
  await link('Geofences').click();
  await page.locator('.map[data-drawn]').waitFor();
  const showSeen = async (): Promise<void> => {
    await main.getByText(/^The server cannot be reached\. .*What you see is from .*(now|ago)/).waitFor();
    await page.locator('.alarm-name', { hasText: 'Fast' }).waitFor();
    await eventually(async () => expect(await count.textContent()).toMatch(/^1 alarm/));
    // What was never asked for is not there, and is not counted.
    await page.getByRole('button', { name: 'Cleared', exact: true }).click();
    await main.getByText(/^The server cannot be reached\.\s*$/).waitFor();
    await eventually(async () => expect((await count.allTextContents()).join('')).toBe(''));
  };
  for (const show of [
    () => link('Alarms').click(),
    () =>
      link('Data')
        .click()
        .then(() => link('Geofences').click()),
  ]) {
    await link('Log').click();
    await page.locator('.status.live').waitFor();
    browser.expectErrors(/Failed to load resource|ERR_|WebSocket|EventSource/);
    killed?.child.kill('SIGKILL');
    await page.locator('.status.lost').waitFor();
    await show();
    await problem.waitFor();
    if (new URL(page.url()).pathname === '/alarms') await showSeen();
    killed = await startProcess(env);
    await page.locator('.status.live').waitFor();
    await problem.waitFor({ state: 'detached' });
  }
  await link('Alarms').click();
  await page.locator('.alarm-name', { hasText: 'Fast' }).waitFor();
});

test('keeps the lists that were seen, with their age, while the server is away', async () => {
  await other.admin('POST', 'users', { login: 'seen-user', password: 'long enough' });
  for (const store of ['groups', 'labels', 'models']) await other.admin('POST', store, { name: `Seen in ${store}` });
  await other.admin('POST', 'rules', { name: 'Seen in rules', when: { param: 'speed', op: '>', value: 200 } });
  await other.admin('POST', 'tokens', { name: 'Seen in tokens' });
  const { body: object } = await other.admin('POST', 'objects', { id: 'kept', name: 'Kept' });
  await other.admin('POST', 'objects/kept/commands/honk', {});
  const page = await browser.openAs(`/objects/${object._id}/commands`, ADMIN);
  await page.locator('.status.live').waitFor();
  const go = async (names: string[]): Promise<void> => {
    for (const name of names) await page.locator('.nav, .menu, .tabs').getByRole('link', { name }).first().click();
  };
  const lists: [links: string[], seen: string][] = [
    [['Access', 'Users'], 'seen-user'],
    [['Access', 'Groups'], 'Seen in groups'],
    [['Access', 'Tokens'], 'Seen in tokens'],
    [['Data', 'Models'], 'Seen in models'],
    [['Data', 'Labels'], 'Seen in labels'],
    [['Data', 'Rules'], 'Seen in rules'],
  ];
  const main = page.locator('main');
  for (const [links, seen] of lists) {
    await go(links);
    await main.getByText(seen).first().waitFor();
  }
  browser.expectErrors(/Failed to load resource|ERR_|WebSocket|EventSource/);
  killed?.child.kill('SIGKILL');
  await page.locator('.status.lost').waitFor();
  const problem = main.getByText(/^The server cannot be reached. .*What you see is from .*(now|ago)/);
  for (const [links, seen] of lists) {
    await go(links);
    await problem.waitFor();
    await main.getByText(seen).first().waitFor();
  }
  // What was never asked for is not there.
  await main.getByRole('searchbox').fill('Seen');
  await main.getByText(/^The server cannot be reached\.\s*$/).waitFor();
  expect(await main.getByText('Seen in rules').count()).toBe(0);
  await main.getByRole('searchbox').fill('');
  await problem.waitFor();
  killed = await startProcess(env);
  await page.locator('.status.live').waitFor();
  await main.getByText(/The server cannot be reached/).waitFor({ state: 'detached' });
  await main.getByText('Seen in rules').first().waitFor();
});

test.each(['killed', 'without a network'])(
  'says that the server is gone, until when all was current, and tries again (%s)',
  async (how) => {
    const { body: object } = await other.admin('POST', 'objects', { id: `seen ${how}`, name: `Seen ${how}` });
    await other.admin('POST', `objects/${object._id}/packets`, { speed: 11 });
    const page = await browser.openAs('/', ADMIN);
    const row = page.locator('.row', { hasText: `Seen ${how}` });
    await row.locator('.dot.online').waitFor();
    await page.locator('.map[data-drawn]').waitFor();
    await page.locator('.status.live').waitFor();
    browser.expectErrors(/Failed to load resource|ERR_|WebSocket|EventSource/);
    if (how === 'killed') killed?.child.kill('SIGKILL');
    else await page.context().setOffline(true);
    const note = page.getByRole('alert').filter({ hasText: 'What you see is from' });
    await note.getByText('The server cannot be reached.').waitFor();
    await eventually(async () => expect(await note.locator('time').getAttribute('datetime')).toMatch(/^\d{4}-/));
    await page.locator('.row .dot.online').first().waitFor({ state: 'detached' });
    await page.locator('.chips .dot.online').first().waitFor({ state: 'detached' });
    await page.locator('.chips .dot.unknown').first().waitFor();
    await row.getByText('Was online').waitFor({ state: 'attached' });
    await eventually(async () => expect(await row.textContent()).toContain('11'));
    // A page whose files were not loaded before.
    await page.locator('.nav').getByRole('link', { name: 'Data' }).click();
    await page.getByText('This page has not been loaded.').waitFor();
    expect(await row.isVisible()).toBe(false);
    await page.locator('.nav').getByRole('link', { name: 'Map' }).click();
    await row.waitFor();
    await page.getByText('This page has not been loaded.').waitFor({ state: 'detached' });
    const button = note.getByRole('button', { name: 'Try again' });
    await button.click();
    await button.and(page.locator('[aria-busy=false]')).waitFor();
    await eventually(async () => expect(await note.count()).toBe(1));
    if (how === 'killed') killed = await startProcess(env);
    else await page.context().setOffline(false);
    await page.locator('.status.live').waitFor();
    await note.waitFor({ state: 'detached' });
    await row.locator('.dot.online').waitFor();
  },
);

test('tries again at once when somebody asks for it', async () => {
  const page = await browser.openAs('/', ADMIN);
  await page.locator('.map[data-drawn]').waitFor();
  await page.locator('.status.live').waitFor();
  browser.expectErrors(/Failed to load resource|ERR_|WebSocket|EventSource/);
  // Pauses between attempts grow: without the button this would take up to half a minute.
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  killed?.child.kill('SIGKILL');
  await page.locator('.status.lost').waitFor();
  killed = await startProcess(env);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.locator('.status.live').waitFor();
});
