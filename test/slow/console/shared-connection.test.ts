/** One live connection for all tabs of a browser, which loses and repeats nothing whichever tab closes, and whoever logs in or out. */
import { expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const TABS = 5;

const service = useService({ env: { OPS_PORT: '0' } });
const browser = useBrowser(service, WITHOUT_MAPS);

/** The subscribers of live events at the service. */
async function countSubscribers(): Promise<number> {
  const text = await (await fetch(`${service.service.opsUrl}/metrics`)).text();
  return Number(/^vigil_sockets (\d+)$/m.exec(text)?.[1]);
}
const expectSubscribers = (count: number): Promise<void> =>
  eventually(async () => expect(await countSubscribers()).toBe(count));

const createObject = (id: string) => service.admin('POST', 'objects', { id, name: `Name of ${id}` });
const send = (id: string, mark: number) => service.admin('POST', `objects/${id}/packets`, { mark });

async function openTab(context: BrowserContext, path: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(service.url + path);
  await page.locator('.status.live').waitFor();
  return page;
}

/** Tabs with the log of events; the first one leads. */
async function openLogs(count: number, user = ADMIN): Promise<Page[]> {
  const first = await browser.openAs('/log', user);
  await first.locator('.status.live').waitFor();
  const pages = [first];
  while (pages.length < count) pages.push(await openTab(first.context(), '/log'));
  return pages;
}

/** The marks that a log shows, oldest first. */
const marksIn = async (page: Page): Promise<number[]> =>
  (await page.locator('.log-row').allTextContents())
    .flatMap((text) => [...text.matchAll(/"mark":(\d+)/g)].map(([, mark]) => Number(mark)))
    .reverse();

test('costs the service one subscriber for five tabs, each of which shows every packet once', async () => {
  await createObject('shared');
  const pages = await openLogs(TABS);
  await expectSubscribers(1);
  await send('shared', 1);
  for (const page of pages) await eventually(async () => expect(await marksIn(page)).toEqual([1]));
});

/** As many as the window has room for. */
const BURST = 12;

test.each(['closed', 'reloaded', 'left'])(
  'shows every packet once in every tab while the leader is %s in the middle of a burst',
  async (how) => {
    const id = `burst-${how}`;
    await createObject(id);
    const [leader, ...others] = (await openLogs(TABS)) as [Page, ...Page[]];
    const marks = Array.from({ length: BURST }, (_, nth) => nth + 1);
    const sending = (async () => {
      for (const mark of marks) await send(id, mark);
    })();
    if (how === 'closed') await leader.close();
    else if (how === 'reloaded') await leader.reload();
    else await leader.goto('about:blank');
    await sending;
    for (const page of others) await eventually(async () => expect(await marksIn(page)).toEqual(marks));
    await expectSubscribers(1);
    for (const page of others) await page.locator('.status.live').waitFor();
    if (how !== 'reloaded') return;
    await send(id, BURST + 1);
    await eventually(async () => expect((await marksIn(leader)).at(-1)).toBe(BURST + 1));
  },
);

test('shows what came while a tab was frozen when it goes on', async () => {
  await createObject('frozen');
  const [leader, other] = (await openLogs(2)) as [Page, Page];
  for (const page of [other, leader]) {
    const session = await page.context().newCDPSession(page);
    await session.send('Page.setWebLifecycleState', { state: 'frozen' });
    const before = await marksIn(page === leader ? other : leader);
    const marks = [1, 2, 3].map((nth) => before.length + nth);
    for (const mark of marks) await send('frozen', mark);
    const awake = page === leader ? other : leader;
    await eventually(async () => expect(await marksIn(awake)).toEqual([...before, ...marks]));
    await session.send('Page.setWebLifecycleState', { state: 'active' });
    await eventually(async () => expect(await marksIn(page)).toEqual([...before, ...marks]));
    await page.locator('.status.live').waitFor();
    await expectSubscribers(1);
  }
});

test('says in every tab that the server cannot be reached, and goes on in all over one connection', async () => {
  await createObject('offline');
  const pages = await openLogs(3);
  const context = (pages[0] as Page).context();
  browser.expectErrors(/Failed to load resource|ERR_|WebSocket/);
  await context.setOffline(true);
  for (const page of pages) await page.getByRole('alert').filter({ hasText: 'What you see is from' }).waitFor();
  await send('offline', 1);
  await context.setOffline(false);
  for (const page of pages) await page.locator('.status.live').waitFor();
  for (const page of pages) await eventually(async () => expect(await marksIn(page)).toEqual([1]));
  await expectSubscribers(1);
});

test('finds the server unreachable although a request was answered after the browser had gone offline', async () => {
  const [page] = (await openLogs(1)) as [Page];
  browser.expectErrors(/Failed to load resource|ERR_/);
  const answered = page.waitForResponse(/api\/v1\/auth$/);
  await page.evaluate(`
    Object.defineProperty(navigator, 'onLine', { get: () => false });
    dispatchEvent(new Event('offline'));
  `);
  await answered;
  await page.route(/api\/v1\/auth$/, (route) => route.abort());
  await page.getByRole('alert').filter({ hasText: 'What you see is from' }).waitFor();
});

test('shares nothing between screens, which have tokens of their own', async () => {
  const { body: view } = await service.admin('POST', 'views', { name: 'All', query: '' });
  const scopes = ['GET /objects', 'GET /objects/*', 'GET /alarms', 'GET /views/*'];
  const { body: token } = await service.admin('POST', 'tokens', { name: 'Screen', scopes });
  const first = await browser.open(`/wall/${view._id}#${token.token}`);
  const second = await first.context().newPage();
  await second.goto(first.url());
  await expectSubscribers(2);
});

test('asks for a password in every tab when the session has ended, and goes on in all after one login', async () => {
  await service.admin('POST', 'users', { login: 'ended', password: 'long enough' });
  const user = { login: 'ended', password: 'long enough' };
  await createObject('session');
  browser.expectErrors(/401/);
  const pages = await openLogs(3, user);
  const cookies = await pages[0]?.context().cookies();
  const cookie = cookies?.map(({ name, value }) => `${name}=${value}`).join('; ') ?? '';
  await fetch(`${service.url}/api/v1/auth`, { method: 'DELETE', headers: { cookie, origin: service.url } });
  for (const page of pages) await page.getByRole('dialog').waitFor();
  await expectSubscribers(0);
  const [first] = pages as [Page];
  await first.getByRole('dialog').getByLabel('Password').fill(user.password);
  await first.getByRole('dialog').getByRole('button', { name: 'Log in' }).click();
  for (const page of pages) await page.locator('.status.live').waitFor();
  for (const page of pages) await page.getByRole('dialog').waitFor({ state: 'detached' });
  await expectSubscribers(1);
});

test('shows no tab of one user what only another sees, who logs in after a logout in one of them', async () => {
  const users = ['one', 'two'].map((login) => ({ login, password: 'long enough' }));
  const groups: Record<string, string> = {};
  for (const { login, password } of users) {
    const { body } = await service.admin('POST', 'groups', { name: `Group of ${login}` });
    groups[login] = body._id;
    await service.admin('POST', 'users', { login, password, group: body._id });
    await service.admin('POST', 'objects', { id: `of-${login}`, name: `Of ${login}`, group: body._id });
  }
  browser.expectErrors(/401/);
  const [one, two] = users as [(typeof users)[0], (typeof users)[0]];
  const [first, ...others] = (await openLogs(3, one)) as [Page, Page, Page];
  await first.evaluate(
    "fetch('/api/v1/auth', { method: 'DELETE' }).then(() => localStorage.removeItem('vigil.session'))",
  );
  await first.goto(`${service.url}/log`);
  await first.getByLabel('Login').fill(two.login);
  await first.getByLabel('Password').fill(two.password);
  await first.getByRole('button', { name: 'Log in' }).click();
  await first.locator('.status.live').waitFor();
  // They begin anew as the other user.
  for (const page of others) await eventually(async () => expect(new URL(page.url()).pathname).toBe('/'));
  await send('of-one', 1);
  await send('of-two', 2);
  await eventually(async () => expect(await marksIn(first)).toEqual([2]));
  for (const page of others) {
    await page.locator('.row', { hasText: 'Of two' }).waitFor();
    await eventually(async () => expect(await page.locator('.row', { hasText: 'Of one' }).count()).toBe(0));
  }
  await expectSubscribers(1);
});
