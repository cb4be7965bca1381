/** What holds on every page: names stay text, the page fits a phone and paper, and the language is one that the console speaks. */
import { inflateSync } from 'node:zlib';
import { beforeAll, expect, test } from '@jest/globals';
import { entityOf } from '../../support/answers.js';
import { useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
const NAME = '<img src=x onerror="document.title=1"><script>document.title=1</script>';
let object: string;
let model: string;
let user: string;
let rule: string;

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

beforeAll(async () => {
  const tree = [
    { type: 'argument', id: 'note', name: NAME, unit: '<b>' },
    { type: 'action', id: 'stop', name: NAME },
  ];
  model = await create('models', { name: NAME, data: { children: tree } });
  object = await create('objects', { id: 'hostile', name: NAME, status: NAME, model, labels: [NAME] });
  await service.admin('POST', `objects/${object}/packets`, { lat: 48, lon: 11, note: NAME, speed: 1, '<b>': 1 });
  await service.admin('POST', `objects/${object}/commands/stop`, { why: NAME });
  for (const store of ['geofences', 'groups', 'labels']) await create(store, { name: NAME });
  await create('roles', { name: NAME, credentials: ['GET /objects'] });
  await create('tokens', { name: NAME });
  rule = await create('rules', {
    name: NAME,
    select: { labels: [NAME] },
    when: { param: NAME, op: '==', value: NAME },
  });
  user = await create('users', { login: 'hostile', name: NAME, password: 'correct horse' });
});

/** Every page, and whether the hostile name is on it. */
const pages = (): readonly (readonly [string, boolean])[] => [
  ['/', true],
  [`/?object=${object}`, true],
  ['/welcome', false],
  ['/log', false],
  ['/nearest?to=48,11', true],
  ...['live', 'history', 'commands', 'settings'].map((tab) => [`/objects/${object}/${tab}`, true] as const),
  [`/compare?series=${object}:speed`, true],
  ['/models', true],
  [`/models/${model}`, true],
  ['/geofences', true],
  ['/rules', true],
  [`/rules/${rule}`, true],
  ['/data/labels', true],
  ['/data/stores', false],
  ['/data/objects', false],
  ['/access/users', true],
  ['/access/groups', true],
  ['/access/roles', true],
  ['/access/tokens', true],
  ['/access/audit', false],
  [`/access/rights?user=${user}`, false],
  ['/account/profile', false],
  ['/account/channels', false],
  ['/account/tokens', true],
  ['/account/sessions', false],
];

test('shows a hostile name as text, and is no wider than a phone, on every page', async () => {
  const page = await browser.openAs('/', ADMIN, browser.phone);
  for (const [path, isThere] of pages()) {
    await page.goto(service.url + path);
    await page.locator('main h1').first().waitFor({ state: 'attached' });
    await page.locator('.skeleton').first().waitFor({ state: 'detached' });
    if (isThere) await page.getByText(NAME).first().waitFor({ state: 'attached' });
    expect([path, await page.locator('img, main script').count()]).toEqual([path, 0]);
    expect([path, await page.title()]).not.toEqual([path, '1']);
    // A browser makes the window wider for a page that is.
    const width = await page.evaluate('Math.max(document.documentElement.scrollWidth, innerWidth)');
    expect([path, width]).toEqual([path, browser.phone.viewport?.width]);
  }
});

test('speaks English in a browser whose system names no language', async () => {
  // As Chromium does where LANG is C.
  const page = await browser.openAs('/', ADMIN, { locale: 'en-US@posix' });
  await page.locator('.row').first().waitFor();
  await page.goto(`${service.url}/account/sessions`);
  await page.getByText('logged in').first().waitFor();
});

test('speaks German to those who do', async () => {
  const page = await browser.open('/', { locale: 'de-DE' });
  await page.getByRole('button', { name: 'Anmelden' }).waitFor();
  await eventually(async () => expect(await page.locator('html').getAttribute('lang')).toBe('de'));
});

/** How much of the content lies below the frame that shows it, and whether black ink is on white. */
const PRINTED = `(() => {
  const { scrollHeight, clientHeight } = document.querySelector('main');
  const style = getComputedStyle(document.body);
  return {
    cutPx: Math.max(0, scrollHeight - clientHeight),
    heightPx: document.documentElement.scrollHeight,
    ink: style.color,
    paper: style.backgroundColor,
  };
})()`;

test('prints all of an object, in dark ink, without navigation and buttons', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'printed', name: 'Printed' });
  const packets = Array.from({ length: 15 }, (_, index) => ({ time: Date.now() - index * 60_000, speed: index }));
  await service.admin('POST', 'objects/printed/packets', packets);
  const viewport = { width: 1000, height: 500 };
  const page = await browser.openAs(`/objects/${body._id}/live`, undefined, { colorScheme: 'dark', viewport });
  await page.locator('main td').nth(20).waitFor();
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const printed = (await page.evaluate(PRINTED)) as { heightPx: number };
  expect(printed).toMatchObject({ cutPx: 0, ink: 'rgb(20, 24, 31)', paper: 'rgb(255, 255, 255)' });
  expect(printed.heightPx).toBeGreaterThan(2 * viewport.height);
  expect(await page.locator('.top, .tabs, main button, main a.button').filter({ visible: true }).count()).toBe(0);
  await eventually(async () =>
    expect(await page.locator('main td, main h1').filter({ visible: true }).count()).toBeGreaterThan(20),
  );
});

/** The pictures of a PDF as bytes of red, green and blue. */
function picturesOf(pdf: Buffer): Buffer[] {
  const text = pdf.toString('latin1');
  const streams = [...text.matchAll(/<<([^>]*\/Subtype \/Image[^>]*)>>\s*stream\r?\n/g)];
  return streams.flatMap(({ 1: about = '', 0: whole, index }) => {
    if (!about.includes('FlateDecode')) return [];
    return [inflateSync(pdf.subarray(index + whole.length, text.indexOf('endstream', index)))];
  });
}

const ONLINE = [13, 153, 97];
/** The line of a route. */
const ROUTE = [36, 73, 196];
const isIn = (picture: Buffer, [red, green, blue]: readonly number[]): boolean => {
  for (let at = 0; at + 2 < picture.length; at += 3)
    if (picture[at] === red && picture[at + 1] === green && picture[at + 2] === blue) return true;
  return false;
};

test('prints the map with its objects, and the map of a route', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'on paper', name: 'On paper' });
  const packets = [1, 2].map((minute) => ({ time: Date.now() - minute * 60_000, lat: 48 + minute, lon: 11 }));
  await service.admin('POST', `objects/${body._id}/packets`, packets);
  const untilPrinted = async (path: string, color: readonly number[]) => {
    const page = await browser.openAs(path);
    await page.locator('.map[data-drawn]').waitFor();
    // The ground may be drawn before the objects have come.
    await until(async () => {
      const pictures = picturesOf(await page.pdf({ printBackground: false }));
      return pictures.some((picture) => isIn(picture, color));
    }, `the color ${color.join()} in the printed map of ${path}`);
    await until(async () => (await page.locator('.map-picture').count()) === 0, 'the map without its picture');
    await eventually(async () => expect(await page.locator('.map canvas').first().isVisible()).toBe(true));
  };
  await untilPrinted('/', ONLINE);
  await untilPrinted(`/objects/${body._id}/history`, ROUTE);
});

const PAPERS = 60;
test.each([
  ['tiles', '.tile'],
  ['table', '.object-rows tbody tr:not(.spare)'],
])('prints all objects as %s, and not only what the window has room for', async (view, one) => {
  await Promise.all(
    Array.from({ length: PAPERS }, async (_, index) => {
      const id = `${view}-paper-${index}`;
      await service.admin('POST', 'objects', { id, name: `${view} paper ${index}` });
      await service.admin('POST', `objects/${id}/packets`, { level: index });
    }),
  );
  const page = await browser.openAs(`/?view=${view}&search=${view}+paper`, undefined, {
    viewport: { width: 1000, height: 500 },
  });
  const all = page.locator(one).filter({ hasText: `${view} paper` });
  const visible = all.filter({ visible: true });
  await all.first().waitFor();
  await page.locator('.side-count', { hasText: String(PAPERS) }).waitFor();
  expect(await all.count()).toBeLessThan(PAPERS);
  const pdf = (await page.pdf()).toString('latin1');
  expect(pdf.match(/\/Type \/Page\b/g)?.length).toBeGreaterThan(1);
  await eventually(async () => expect(await all.count()).toBeLessThan(PAPERS));
  await page.emulateMedia({ media: 'print' });
  await page.evaluate('dispatchEvent(new Event("beforeprint"))');
  await eventually(async () => expect(await visible.count()).toBe(PAPERS));
  expect(await page.evaluate(PRINTED)).toMatchObject({ cutPx: 0 });
  if (view !== 'table') return;
  const firstColumn = page.locator('th .sort').filter({ visible: true }).first();
  await eventually(async () => expect(await firstColumn.textContent()).toBe('Name'));
});

test('prints the names of geofences', async () => {
  const geometry = {
    type: 'Polygon',
    coordinates: [
      [
        [11, 48],
        [12, 48],
        [12, 49],
        [11, 48],
      ],
    ],
  };
  await service.admin('POST', 'geofences', { name: 'Depot on paper', geometry });
  const page = await browser.openAs('/geofences');
  await page.locator('.map[data-drawn]').waitFor();
  await page.emulateMedia({ media: 'print' });
  await eventually(async () =>
    expect(await page.locator('main').getByText('Depot on paper').first().isVisible()).toBe(true),
  );
});
