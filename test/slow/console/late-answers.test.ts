/** Answers that were read before something changed, and come to a page after it has heard of the change. */
import { test } from '@jest/globals';
import type { Page, Route } from 'playwright-core';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);

const HOUR_MS = 3_600_000;
const PLACES = ['48.10000, 11.50000', '49.00000, 12.00000', '50.00000, 13.00000'] as const;

interface Ferry {
  readonly _id: string;
  /** Removes the newest packets, and resolves when the service has done so. */
  keepPackets(count: number): Promise<void>;
}

/** An object whose packets, the last of them now, have the places. */
async function createFerry(id: string): Promise<Ferry> {
  const { body } = await service.admin('POST', 'objects', { id, name: id });
  const timeOf = (index: number): number => startMs + (index * HOUR_MS) / PLACES.length;
  const startMs = Date.now() - HOUR_MS;
  const packets = PLACES.map((place, index) => {
    const [lat, lon] = place.split(', ').map(Number);
    return { time: timeOf(index), speed: 4, lat, lon };
  });
  await service.admin('POST', `objects/${id}/packets`, packets);
  return {
    _id: body._id,
    async keepPackets(count) {
      const before = await service.admin('GET', `objects/${id}`);
      await service.admin('DELETE', `objects/${id}/packets?from=${timeOf(count)}`);
      const isDone = async () =>
        (await service.admin('GET', `objects/${id}`)).body.packetsRemoved !== before.body.packetsRemoved;
      await until(isDone, 'the packets are removed');
    },
  };
}

/** Counts events of this object that reach the page from now on. */
function countEvents(page: Page, name: string, id: string): () => number {
  let count = 0;
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => {
      if (String(payload).includes(`"${name}"`) && String(payload).includes(id)) count++;
    }),
  );
  return () => count;
}

/** Holds the answer to the request of this number, of those to the address, after it was read. */
async function holdAnswer(page: Page, address: RegExp, number: number) {
  const [isRead, reportRead] = createDeferred<void>();
  const [held, release] = createDeferred<void>();
  let count = 0;
  await page.route(address, async (route: Route) => {
    if (++count !== number) return route.fallback();
    const response = await route.fetch();
    reportRead();
    await held;
    await route.fulfill({ response });
  });
  return { isRead, release };
}

/** Keeps events from the page until it is called. */
async function holdEvents(page: Page): Promise<() => void> {
  const [held, release] = createDeferred<void>();
  await page.routeWebSocket(/\/socket\.io\//, async (socket) => {
    await held;
    socket.connectToServer();
  });
  return release;
}

/** A page that is logged in and asks for nothing yet. */
async function openLoggedIn(): Promise<Page> {
  const page = await browser.openAs('/account/profile');
  await page.goto('about:blank');
  return page;
}

const cardShows = (page: Page, text: string) => page.locator('.card').getByText(text).waitFor();

test('shows what is left of packets that were removed before the first event', async () => {
  const ferry = await createFerry('early');
  const page = await openLoggedIn();
  const releaseEvents = await holdEvents(page);
  await page.goto(`${service.url}/?object=${ferry._id}`);
  await cardShows(page, PLACES[2]);
  await ferry.keepPackets(1);
  releaseEvents();
  await page.locator('.status.live').waitFor();
  await cardShows(page, PLACES[0]);
});

test('shows what is left of packets that were removed while the list was loaded', async () => {
  const ferry = await createFerry('listed');
  const page = await openLoggedIn();
  const countRemovals = countEvents(page, 'packetsRemoved', ferry._id);
  const releaseEvents = await holdEvents(page);
  // The first request shows something at once, the second one comes when events arrive.
  const list = await holdAnswer(page, /\/api\/v1\/objects\?/, 2);
  await page.goto(`${service.url}/?object=${ferry._id}`);
  await cardShows(page, PLACES[2]);
  releaseEvents();
  await list.isRead;
  await ferry.keepPackets(1);
  await cardShows(page, PLACES[0]);
  await until(() => countRemovals() === 1, 'the event');
  list.release();
  // While objects are loaded, nobody knows how many each filter shows.
  await page.locator('.chip span').first().waitFor();
  await cardShows(page, PLACES[0]);
});

test('shows what is left when packets are removed again while an object is read', async () => {
  const ferry = await createFerry('twice');
  const page = await openLoggedIn();
  const countRemovals = countEvents(page, 'packetsRemoved', ferry._id);
  await page.goto(`${service.url}/?object=${ferry._id}`);
  await cardShows(page, PLACES[2]);
  await page.locator('.status.live').waitFor();
  const object = await holdAnswer(page, new RegExp(`/api/v1/objects/${ferry._id}$`), 1);
  await ferry.keepPackets(2);
  await object.isRead;
  await ferry.keepPackets(1);
  await until(() => countRemovals() === 2, 'both events');
  object.release();
  await cardShows(page, PLACES[0]);
});

test('keeps what was changed while an object is read', async () => {
  const ferry = await createFerry('renamed');
  const page = await openLoggedIn();
  await page.goto(`${service.url}/?object=${ferry._id}`);
  await cardShows(page, PLACES[2]);
  await page.locator('.status.live').waitFor();
  const object = await holdAnswer(page, new RegExp(`/api/v1/objects/${ferry._id}$`), 1);
  await ferry.keepPackets(1);
  await object.isRead;
  await service.admin('PATCH', 'objects/renamed', { name: 'Renamed' });
  await page.locator('.card h2', { hasText: 'Renamed' }).waitFor();
  object.release();
  await cardShows(page, PLACES[0]);
  await page.locator('.card', { hasText: PLACES[0] }).getByRole('heading', { name: 'Renamed' }).waitFor();
});

test('does not bring back an object that was removed while it is read', async () => {
  const ferry = await createFerry('removed');
  const page = await openLoggedIn();
  await page.goto(`${service.url}/?object=${ferry._id}`);
  await cardShows(page, PLACES[2]);
  await page.locator('.status.live').waitFor();
  const object = await holdAnswer(page, new RegExp(`/api/v1/objects/${ferry._id}$`), 1);
  await ferry.keepPackets(1);
  await object.isRead;
  await service.admin('DELETE', 'objects/removed');
  await page.locator('.card').waitFor({ state: 'detached' });
  object.release();
  await page.waitForResponse(new RegExp(`/api/v1/objects/${ferry._id}$`));
  await service.admin('POST', 'objects', { id: 'after', name: 'After' });
  await page.locator('.row', { hasText: 'After' }).waitFor();
  await page.locator('.row', { hasText: 'removed' }).waitFor({ state: 'detached' });
});

test('shows what is left of removed packets when the server answers again', async () => {
  const ferry = await createFerry('retried');
  const page = await openLoggedIn();
  browser.expectErrors(/ERR_FAILED/);
  await page.goto(`${service.url}/?object=${ferry._id}`);
  await cardShows(page, PLACES[2]);
  await page.locator('.status.live').waitFor();
  // As often as a request is repeated.
  let failures = 3;
  await page.route(new RegExp(`/api/v1/objects/${ferry._id}$`), (route) =>
    failures-- > 0 ? route.abort() : route.fallback(),
  );
  await ferry.keepPackets(1);
  await cardShows(page, PLACES[0]);
});

test('forgets a place that was searched for before its packet was removed', async () => {
  const ferry = await createFerry('searched');
  const fuelMs = Date.now();
  await service.admin('POST', 'objects/searched/packets', { time: fuelMs, fuel: 60 });
  const page = await openLoggedIn();
  const search = await holdAnswer(page, /latest-of-each/, 1);
  await page.goto(`${service.url}/?object=${ferry._id}`);
  await search.isRead;
  await page.locator('.status.live').waitFor();
  const isReadAgain = page.waitForResponse(new RegExp(`/api/v1/objects/${ferry._id}$`));
  await service.admin('DELETE', `objects/searched/packets?from=${fuelMs - HOUR_MS / 2}&to=${fuelMs - 1}`);
  await isReadAgain;
  search.release();
  await cardShows(page, PLACES[1]);
});

test('shows an alarm as acknowledged that is while it is read', async () => {
  const ferry = await createFerry('alarmed');
  const select = { objects: ['alarmed'] };
  await service.admin('POST', 'rules', { name: 'Low', select, when: { param: 'fuel', op: '<', value: 10 } });
  await service.admin('POST', 'objects/alarmed/packets', { fuel: 4 });
  const alarms = async () => (await service.admin('GET', `alarms?where.object=${ferry._id}`)).body;
  await until(async () => (await alarms()).length === 1, 'the alarm');
  const [{ _id }] = await alarms();
  const page = await openLoggedIn();
  await page.goto(`${service.url}/alarms`);
  await page.locator('.status.live').waitFor();
  const alarm = await holdAnswer(page, new RegExp(`/api/v1/alarms/${_id}$`), 1);
  await page.locator('.alarm-open').click();
  await alarm.isRead;
  await page.locator('.nav .badge').waitFor();
  await service.admin('POST', `alarms/${_id}/acknowledge`, { note: 'On my way' });
  await page.locator('.nav .badge').waitFor({ state: 'detached' });
  alarm.release();
  await page.locator('.alarm-detail').getByText('Acknowledged by admin').waitFor();
});

test('shows what became of a command where every answer takes longer than until the next request', async () => {
  const ferry = await createFerry('slow');
  await service.admin('POST', 'objects/slow/commands/flush', {});
  const page = await openLoggedIn();
  await page.goto(`${service.url}/objects/${ferry._id}/commands`);
  const shown = page.locator('.command .tag');
  await shown.getByText('Queued').waitFor();
  // Each answer comes after the next request, which the page sends while the command is not done.
  let releaseLast = (): void => undefined;
  await page.route(/\/commands\?/, async (route) => {
    const response = await route.fetch();
    releaseLast();
    const [held, release] = createDeferred<void>();
    releaseLast = release;
    await held;
    await route.fulfill({ response });
  });
  const { body } = await service.admin('GET', 'objects/slow/commands');
  await service.admin('POST', `objects/slow/commands/${body[0]._id}/result`, { status: 'done' });
  await shown.getByText('Done').waitFor();
});
