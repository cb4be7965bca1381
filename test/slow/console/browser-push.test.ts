/** Notifications of a browser: it is added, shows alarms without a page, and ends with the log-out. And how it opens without a network. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { BrowserContext, Page, Worker } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { untilNotice } from '../../support/browser/notices.js';
import { createPerson } from '../../support/callers.js';
import { useService } from '../../support/fixture.js';
import { type Browser, type PushService, startPushService } from '../../support/push-service.js';
import { eventually, until } from '../../support/until.js';

const PATH = '/account/channels';
let pushService: PushService;
beforeAll(async () => {
  pushService = await startPushService();
});
afterAll(() => pushService.stop());
const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1' } });
const browser = useBrowser(service);

/** The maker's push service is not to be reached from tests: the browser takes a subscription of ours for one of it. */
const replacePushService = (page: Page, { subscription }: Browser): Promise<unknown> =>
  page.evaluate(`{
    const json = ${JSON.stringify(subscription)};
    let current = null;
    const given = { endpoint: json.endpoint, toJSON: () => json, unsubscribe: async () => (current = null) };
    Object.assign(PushManager.prototype, {
      subscribe: async () => (current = given),
      getSubscription: async () => current,
    });
  }`);

async function workerIn(context: BrowserContext): Promise<Worker> {
  await until(() => context.serviceWorkers().length > 0, 'the service worker');
  return context.serviceWorkers()[0] as Worker;
}

/** What the worker shows for a message. Browsers without a window show no notifications: they are kept in the place of that. */
const shownFor = (worker: Worker, message: object): Promise<unknown> =>
  worker.evaluate(`new Promise((resolve) => {
    registration.showNotification = async (title, options) => resolve({ title, ...options });
    dispatchEvent(new PushEvent('push', { data: ${JSON.stringify(JSON.stringify(message))} }));
  })`);

test('adds this browser, which then shows an alarm with its page, until it is removed or the user logs out', async () => {
  browser.expectErrors(/401/);
  const ada = await createPerson(service);
  const page = await browser.openAs(PATH, ada);
  const context = page.context();
  await context.grantPermissions(['notifications']);
  const own = pushService.subscribe();
  await replacePushService(page, own);
  await page.getByRole('button', { name: 'Notify this browser' }).click();
  await untilNotice(page, 'A test message was sent to Chrome');
  await page.getByRole('button', { name: 'Notify this browser' }).waitFor({ state: 'detached' });
  const channelsOf = async () => (await ada.call('GET', 'account')).body.channels;
  expect(await channelsOf()).toMatchObject([{ push: { endpoint: own.subscription.endpoint }, confirmed: true }]);
  const [tested] = await own.got(1);
  expect(tested?.message.title).toBe('Test from Vigil');

  const worker = await workerIn(context);
  const alarm = { id: 'a1', title: 'cold-1: too warm', text: 'temperature: 9', severity: 'critical' };
  const link = 'https://elsewhere.example/base/alarms/0123456789abcdef01234567';
  expect(await shownFor(worker, { ...alarm, link })).toEqual({
    title: 'cold-1: too warm',
    body: 'temperature: 9',
    tag: 'a1',
    data: `${service.url}/alarms/0123456789abcdef01234567`,
    requireInteraction: true,
  });

  await page.getByRole('button', { name: /^Remove/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('button', { name: 'Notify this browser' }).waitFor();
  expect(await channelsOf()).toEqual([]);

  await page.getByRole('button', { name: ada.login }).click();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('Password').waitFor();
  const count = () => page.evaluate('navigator.serviceWorker.getRegistrations().then(({ length }) => length)');
  await eventually(async () => expect(await count()).toBe(0));
});

test('says that the browser does not permit notifications', async () => {
  const page = await browser.openAs(PATH, await createPerson(service));
  await page.evaluate(`Object.assign(Notification, { requestPermission: async () => 'denied' })`);
  await page.getByRole('button', { name: 'Notify this browser' }).click();
  await page.getByText('The browser does not permit notifications.').waitFor();
});

test('opens without a network once it has a service worker, and says that the server is away', async () => {
  browser.expectErrors(/ERR_INTERNET_DISCONNECTED|Failed to load/);
  const page = await browser.openAs(PATH, await createPerson(service));
  await page.getByRole('button', { name: 'Notify this browser' }).waitFor();
  await page.evaluate(
    `navigator.serviceWorker.register('/service-worker.js').then(() => navigator.serviceWorker.ready)`,
  );
  await page.reload();
  await page.getByRole('button', { name: 'Notify this browser' }).waitFor();
  await page.context().setOffline(true);
  await page.goto(`${service.url}/alarms`);
  await page.getByText('The server cannot be reached.').waitFor();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.context().setOffline(false);
  await page.getByRole('heading', { name: 'Alarms' }).first().waitFor();
});
