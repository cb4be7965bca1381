/** Share links in a browser: the dialog that creates and revokes them, and the page of their visitors, who have no session. */
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { gzipBytesOf, scriptsOf } from '../../../scripts/bench/console-pages.js';
import { animationsEnd, findAxe } from '../../support/browser/axe.js';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
/** Mostly of what all pages share, which may grow up to the budget of a page. */
const PAGE_BYTES = 45_000;
const ENDED = 'This link has expired or was withdrawn.';
const GERMAN_ENDED = 'Dieser Link ist abgelaufen oder wurde zurückgezogen.';
let id: string;

beforeAll(async () => {
  id = (await service.admin('POST', 'objects', { id: 'van', name: 'Van 12', status: 'loading' })).body._id;
  await service.admin('POST', `objects/${id}/packets`, { lat: 48.26, lon: 11.43, speed: 40, door: true });
});

test('takes packets that are removed away from a visitor', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'barge', name: 'Barge' });
  const nowMs = Date.now();
  await service.admin('POST', 'objects/barge/packets', [
    { time: nowMs - 600_000, lat: 48, lon: 11, draught: 4 },
    { time: nowMs - 1_000, lat: 49, lon: 12, draught: 7 },
  ]);
  const { body: link } = await service.admin('POST', `objects/${body._id}/links`, { name: 'Barge' });
  const page = await browser.open(`/s#${link.secret}`);
  await readingOf(page, 'draught').getByText('7').waitFor();
  await service.admin('DELETE', `objects/barge/packets?from=${nowMs - 2_000}`);
  await readingOf(page, 'draught').getByText('4').waitFor();
  await page.locator('.place', { hasText: '48.00000' }).waitFor();
});

interface Shared {
  readonly path: string;
  readonly linkId: string;
  readonly secret: string;
}

async function share(fields: object = {}): Promise<Shared> {
  const { body } = await service.admin('POST', `objects/${id}/links`, { name: 'Delivery to Dachau', ...fields });
  return { path: `/s#${body.secret}`, linkId: body._id, secret: body.secret };
}
const revoke = (linkId: string) => service.admin('DELETE', `objects/${id}/links/${linkId}`);

/** Of WCAG 2.2 AA, with an example of each. */
async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(await findAxe());
  await animationsEnd(page);
  const rules = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']";
  return page.evaluate(
    `axe.run(document, { runOnly: ${rules} }).then(({ violations }) => violations.map(({ id, nodes }) => id + nodes[0].html))`,
  );
}

/** The text of a value, without its age. */
const readingOf = (page: Page, label: string) =>
  page.locator('.value-cards > div', { hasText: label }).locator('dd').first();

test('shows the object to a visitor, and its packets as they arrive', async () => {
  const { path, secret } = await share();
  const page = await browser.open('/welcome');
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.url() + JSON.stringify(request.headers())));
  await page.goto(service.url + path);
  await page.getByRole('heading', { name: 'Delivery to Dachau' }).waitFor();
  await eventually(async () => expect(await page.locator('main').textContent()).toContain('Van 12'));
  await eventually(async () => expect(await page.locator('main').textContent()).toContain('loading'));
  await eventually(async () => expect(await readingOf(page, 'speed').textContent()).toContain('40'));
  await eventually(async () => expect(await page.locator('.place').textContent()).toContain('48.26000'));
  await page.locator('.map[data-drawn]').waitFor();
  await service.admin('POST', `objects/${id}/packets`, { lat: 48.27, lon: 11.44, speed: 55 });
  await readingOf(page, 'speed').getByText('55').waitFor();
  await page.locator('.place', { hasText: '48.27000' }).waitFor();
  await eventually(async () => expect(await readingOf(page, 'door').textContent()).toContain('Yes'));
  await service.admin('PATCH', `objects/${id}`, { status: 'on its way' });
  await page.getByText('on its way').waitFor();
  await service.admin('PATCH', `objects/${id}`, { status: 'loading' });
  await page.getByText('loading').waitFor();
  await eventually(async () => expect(await page.locator('main').textContent()).toContain('Van 12'));
  expect(await page.title()).toBe('Delivery to Dachau');
  expect(requests.filter((request) => request.includes(secret))).toEqual([]);
  expect(await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])')).toEqual(
    expect.not.stringContaining(secret),
  );
});

test('keeps its scripts without the map within the budget of a page, in both languages', async () => {
  const { path } = await share({ fields: ['speed'] });
  for (const locale of ['en-GB', 'de-DE']) {
    const page = await browser.open(path, { locale });
    await readingOf(page, 'speed').waitFor();
    expect(gzipBytesOf(await scriptsOf(page))).toBeLessThanOrEqual(PAGE_BYTES);
    expect(await page.locator('main').textContent()).not.toContain('Van 12');
  }
});

test('shows the last 24 hours if the link does: a way that goes on, and a chart', async () => {
  const { body: tractor } = await service.admin('POST', 'objects', { id: 'tractor', name: 'Tractor' });
  const send = (packets: object) => service.admin('POST', `objects/${tractor._id}/packets`, packets);
  const firstMs = Date.now() - 20 * 3_600_000;
  const packets = Array.from({ length: 40 }, (_, index) => ({
    time: firstMs + index * 1_200_000,
    lat: 48 + index / 200,
    lon: 11 + index / 100,
    speed: 1 + index,
    engine: { rpm: 800 + index },
  }));
  await send(packets);
  const { body: link } = await service.admin('POST', `objects/${tractor._id}/links`, {
    name: 'Field 7',
    history: '24 h',
  });
  const { body: without } = await service.admin('POST', `objects/${tractor._id}/links`, { name: 'Now' });
  for (const [index, options] of [{ locale: 'de-DE', colorScheme: 'dark' } as const, browser.phone].entries()) {
    const page = await browser.open(`/s#${link.secret}`, options);
    await page.locator('.map[data-drawn]').waitFor();
    await page.getByRole('heading', { name: index === 0 ? 'Letzte 24 Stunden' : 'Last 24 hours' }).waitFor();
    await readingOf(page, 'engine.rpm').waitFor();
    await page.getByRole('button', { name: 'speed' }).click();
    await page.locator('.chart[aria-label="speed: 1 – 40 km/h"] .uplot').waitFor();
    await page.getByRole('button', { name: 'engine.rpm' }).click();
    await page.locator(`.chart[aria-label="engine.rpm: 800 – ${index === 0 ? 839 : 900} "]`).waitFor();
    await send({ engine: { rpm: 900 + index }, lat: 48.2, lon: 11.5 });
    await page.locator(`.chart[aria-label="engine.rpm: 800 – ${900 + index} "]`).waitFor();
    const folder = process.env.SHARE_PICTURES;
    if (folder) await page.screenshot({ path: `${folder}/past-${index}.png`, fullPage: true });
  }
  const page = await browser.open(`/s#${without.secret}`);
  await readingOf(page, 'speed').waitFor();
  await page.locator('.map[data-drawn]').waitFor();
  expect(await page.locator('.chart, .chip').count()).toBe(0);
});

test('asks for the PIN, says when it is wrong, and does not ask again in the same tab', async () => {
  browser.expectErrors(/401/);
  const { path } = await share({ pin: '2468' });
  const page = await browser.open(path);
  await page.getByLabel('PIN').fill('1357');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByText('This PIN is wrong.').waitFor();
  await page.getByLabel('PIN').fill('2468');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('heading', { name: 'Delivery to Dachau' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Delivery to Dachau' }).waitFor();
});

test('says that the link has ended, and nothing else', async () => {
  browser.expectErrors(/401|404/);
  for (const [path, locale, text] of [
    [`/s#${'A'.repeat(48)}`, 'en-GB', ENDED],
    ['/s', 'de-DE', GERMAN_ENDED],
  ] as const) {
    const page = await browser.open(path, { locale });
    await page.getByText(text).waitFor();
    await eventually(async () => expect(await page.locator('#console').textContent()).toBe(text));
  }
});

test('ends when the link is revoked while it is open', async () => {
  browser.expectErrors(/401|404/);
  const { path, linkId } = await share();
  const page = await browser.open(path);
  await page.getByRole('heading', { name: 'Delivery to Dachau' }).waitFor();
  await revoke(linkId);
  await page.getByText(ENDED).waitFor();
  await eventually(async () => expect(await page.locator('#console').textContent()).toBe(ENDED));
});

test('says since when there is no connection, and goes on when there is one', async () => {
  browser.expectErrors(/ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED/);
  const { path } = await share({ fields: ['speed'] });
  const page = await browser.open(path);
  await readingOf(page, 'speed').waitFor();
  await page.context().setOffline(true);
  await page.getByText('No connection since').waitFor();
  await service.admin('POST', `objects/${id}/packets`, { speed: 77 });
  await page.context().setOffline(false);
  await readingOf(page, 'speed').getByText('77').waitFor();
  await page.getByText('No connection since').waitFor({ state: 'detached' });
});

test('violates no rule of WCAG 2.2 AA in both themes and on a phone', async () => {
  browser.expectErrors(/401|404/);
  const links = [await share(), await share({ history: '24 h' }), await share({ pin: '2468' }), { path: '/s' }];
  for (const options of [{}, browser.phone])
    for (const [number, { path }] of links.entries()) {
      const page = await browser.open(path, options);
      await page.locator('.login-card, .map[data-drawn]').waitFor();
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await page.locator(`html[data-theme=${colorScheme}]`).waitFor();
        expect([path, colorScheme, await violationsOf(page)]).toEqual([path, colorScheme, []]);
        const folder = process.env.SHARE_PICTURES;
        if (folder)
          await page.screenshot({ path: `${folder}/s-${number}-${colorScheme}-${'isMobile' in options}.png` });
      }
    }
});

test('creates a link in four clicks, which a visitor opens, and revokes it', async () => {
  browser.expectErrors(/401|404/);
  const page = await browser.openAs(`/objects/${id}/live`);
  await page.getByRole('button', { name: 'Share', exact: true }).click();
  await page.getByLabel('History').waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await page.getByRole('button', { name: 'Create link' }).click();
  const url = (await page.getByLabel('Link', { exact: true }).textContent()) ?? '';
  const folder = process.env.SHARE_PICTURES;
  expect(await violationsOf(page)).toEqual([]);
  if (folder) await page.screenshot({ path: `${folder}/dialog.png` });
  // It is shown for a moment, and a busy machine may look later than that.
  const shown = page.evaluate(`new Promise((done) => {
    const look = () => document.body.innerText.includes('Copied') && done('Copied');
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  })`);
  const [said] = await Promise.all([shown, page.getByRole('button', { name: 'Copy' }).click()]);
  expect(said).toBe('Copied');
  expect(url.startsWith(`${service.url}/s#`)).toBe(true);
  const visitor = await browser.open(url.slice(service.url.length));
  await visitor.getByRole('heading', { name: 'Van 12' }).waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).first().click();
  await page.getByRole('dialog', { name: 'Revoke' }).getByRole('button', { name: 'Revoke' }).click();
  await visitor.getByText(ENDED).waitFor();
});

test('offers no button to those who may not share', async () => {
  const { body: roles } = await service.admin('GET', 'roles');
  const role = (roles as { _id: string; name: string }[]).find(({ name }) => name === 'viewer')?._id;
  const viewer = { login: 'only-reads', password: 'correct horse battery' };
  await service.admin('POST', 'users', { ...viewer, role });
  const page = await browser.openAs(`/objects/${id}/live`, viewer);
  await page.locator('.object-head').waitFor();
  expect(await page.getByRole('button', { name: 'Share', exact: true }).count()).toBe(0);
});
