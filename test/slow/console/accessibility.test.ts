/** Every page of the console can be used by everybody: with the keyboard, with a finger, with a screen reader (WCAG 2.2 AA). */
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { openPage, pagesWithMap, pagesWithoutMap } from '../../../scripts/bench/console-pages.js';
import { findAxe } from '../../support/browser/axe.js';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

/** The first page without its map. */
const OTHER_VIEWS = [
  ['/?view=tiles', '.tile'],
  ['/?view=table', '.object-rows tbody button'],
] as const;

const service = useService();
const browser = useBrowser(service);
const STANDARDS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const TARGET_PX = 44;
const PARTS_OF_DATE = 8;
let axe: string;
let id: string;

beforeAll(async () => {
  axe = await findAxe();
  await service.admin('POST', 'groups', { name: 'North' });
  id = (await service.admin('POST', 'objects', { id: 'truck', name: 'Truck', labels: ['cold'] })).body._id;
  // Its threshold and its alarm are marked in the history.
  await service.admin('POST', 'rules', { name: 'Fast', when: { param: 'speed', op: '>', value: 60 } });
  const packets = Array.from({ length: 30 }, (_, index) => ({
    time: Date.now() - (30 - index) * 60_000,
    lat: 48 + index / 500,
    lon: 11 + index / 700,
    speed: 40 + index,
    angle: 45,
    locked: true,
  }));
  await service.admin('POST', `objects/${id}/packets`, packets);
  await service.admin('POST', `objects/${id}/commands/lock`, { doors: 'all' });
  // Open alarms: one that waits, one that is acknowledged, one without a button.
  for (const severity of ['critical', 'warning', 'info']) {
    const when = { param: 'speed', op: '>', value: 60 };
    await service.admin('POST', 'rules', { name: `Fast, ${severity}`, severity, when });
  }
  await service.admin('POST', `objects/${id}/packets`, { lat: 48.1, lon: 11.1, speed: 70, angle: 45 });
  const openAlarms = async () => (await service.admin('GET', 'alarms?where.status=raised')).body;
  await until(async () => (await openAlarms()).length === 4, 'four open alarms');
  const [alarm] = await openAlarms();
  await service.admin('POST', `alarms/${alarm._id}/acknowledge`, {});
  await service.admin('POST', 'tokens', { name: 'Pump', scopes: ['GET /*'] });
  await service.admin('POST', 'labels', { name: 'Cold' });
  await service.admin('POST', 'models', { name: 'Pump' });
  const area = { type: 'Polygon', coordinates: [[0, 1, 2, 0].map((degrees) => [degrees, degrees ** 2])] };
  await service.admin('POST', 'geofences', { name: 'Yard', geometry: area });
});

/** Opens every page in turn, and lists what each check finds wrong with which. */
async function checkPages<Name extends string>(
  page: Page,
  checks: Readonly<Record<Name, (page: Page) => Promise<string[]>>>,
): Promise<Record<Name, [path: string, problems: string[]][]>> {
  const names = Object.keys(checks) as Name[];
  const found = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, [string, string[]][]>;
  for (const row of [...pagesWithMap(id), ...OTHER_VIEWS, ...pagesWithoutMap(id)]) {
    await openPage(page, service.url, row);
    for (const name of names) {
      const problems = await checks[name](page);
      if (problems.length > 0) found[name].push([row[0], problems]);
    }
  }
  return found;
}

/** What axe finds in both themes, each as its rule and the first place. */
async function findViolations(page: Page): Promise<string[]> {
  // The policy of the page permits no script from elsewhere; the browser's own protocol may.
  await page.evaluate(axe);
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`html[data-theme=${colorScheme}]`).waitFor();
    // What is still fading in has less contrast for an instant.
    await page.evaluate(
      'Promise.allSettled(document.getAnimations().map(({ finished }) => finished)).then(() => null)',
    );
    const violations = (await page.evaluate(
      `axe.run(document, { runOnly: ${JSON.stringify(STANDARDS)} }).then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ': ' + nodes[0].html + ' ' + nodes[0].failureSummary))`,
    )) as string[];
    found.push(...violations.map((violation) => `${colorScheme}: ${violation}`));
  }
  return found;
}

/** Each page is opened once for both tests that look at all of it. */
let onAllPages: ReturnType<typeof checkAllPages> | undefined;
const checkAllPages = async () =>
  checkPages(await browser.openAs('/account/profile'), { violations: findViolations, unreached: findUnreached });

test('violates no rule of WCAG 2.2 AA on any page, in both themes', async () => {
  onAllPages ??= checkAllPages();
  expect((await onAllPages).violations).toEqual([]);
});

test('violates no rule of WCAG 2.2 AA in a dialog', async () => {
  const page = await browser.openAs('/account/tokens');
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByRole('dialog').waitFor();
  expect(await findViolations(page)).toEqual([]);
});

test('violates no rule of WCAG 2.2 AA in the boxes of a role, which are large enough for a finger', async () => {
  await service.admin('POST', 'roles', { name: 'Dispatcher', credentials: ['GET /*', 'DELETE /objects/truck'] });
  const page = await browser.openAs('/access/roles', ADMIN, browser.phone);
  await page.locator('tr', { hasText: 'Dispatcher' }).getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('checkbox', { name: 'send commands' }).check();
  await page.getByText('may now: send commands').waitFor();
  expect(await findViolations(page)).toEqual([]);
  expect(await findSmall(page)).toEqual([]);
});

test('violates no rule of WCAG 2.2 AA in what needs attention, which is large enough for a finger', async () => {
  const page = await browser.openAs('/', ADMIN, browser.phone);
  // It covers the map for as long as it is not answered.
  await page.locator('.map-question > .icon-button').click();
  await page.locator('.attention summary').click();
  await page.getByRole('button', { name: 'Acknowledge Fast, ' }).first().waitFor();
  expect(await findViolations(page)).toEqual([]);
  expect(await findSmall(page)).toEqual([]);
});

test('violates no rule of WCAG 2.2 AA in the login', async () => {
  const page = await browser.open('/');
  await page.getByLabel('Login').waitFor();
  expect(await findViolations(page)).toEqual([]);
});

/** Runs in the page: what a user can operate there, each marked with its number, and from then on what has had the focus. */
const MARK = `(() => {
  const all = document.querySelectorAll('a[href], button, input, select, textarea, summary, canvas[tabindex="0"], [tabindex="0"]');
  const shown = [...all].filter((one) =>
    one.checkVisibility({ visibilityProperty: true }) && !one.disabled && one.tabIndex >= 0 && !one.matches('.skip'));
  shown.forEach((one, index) => { one.dataset.number = index; });
  globalThis.reached = [];
  document.addEventListener('focusin', () => {
    const one = document.activeElement;
    if (one?.dataset.number === undefined) return;
    const isSeen = getComputedStyle(one).outlineStyle !== 'none';
    // Of a group of radio buttons, Tab reaches the chosen one; arrows lead to the others.
    const group = one.type === 'radio' ? document.querySelectorAll('input[name="' + one.name + '"]') : [one];
    reached.push({ numbers: [...group].map(({ dataset }) => Number(dataset.number)), isSeen });
  });
  return shown.map((one) => one.outerHTML.slice(0, 120));
})()`;

interface Reached {
  readonly numbers: readonly number[];
  readonly isSeen: boolean;
}

/** What Tab does not lead to, and what does not show that it has the focus. */
async function findUnreached(page: Page): Promise<string[]> {
  const marked = (await page.evaluate(MARK)) as string[];
  const reached = new Set<number>();
  const seen = new Set<number>();
  // A date has a field for each of its parts.
  const most = marked.length * PARTS_OF_DATE;
  for (let presses = 0; presses < most && reached.size < marked.length; presses++) {
    await page.keyboard.press('Tab');
    // The last ones are awaited one by one.
    if (presses < marked.length - 1) continue;
    for (const { numbers, isSeen } of (await page.evaluate('reached.splice(0)')) as Reached[])
      for (const number of numbers) {
        reached.add(number);
        if (isSeen) seen.add(number);
      }
  }
  return [
    ...marked.filter((_, number) => !reached.has(number)).map((html) => `not reached: ${html}`),
    ...marked.filter((_, number) => reached.has(number) && !seen.has(number)).map((html) => `focus not seen: ${html}`),
  ];
}

test('reaches everything on every page with the Tab key, and shows where the focus is', async () => {
  onAllPages ??= checkAllPages();
  expect((await onAllPages).unreached).toEqual([]);
});

/** Runs in the page: the targets that are smaller than a finger. A link within a sentence has the size of its words. */
const SMALL = `(() => {
  const all = document.querySelectorAll('a[href], button, input, select, textarea, summary');
  const targets = [...all].filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.matches('.skip, p a'));
  return [...new Set(targets.map((one) => one.closest('label') ?? one))].flatMap((one) => {
    const { width, height } = one.getBoundingClientRect();
    return Math.min(width, height) >= ${TARGET_PX} - 0.5 ? [] : [Math.round(width) + ' × ' + Math.round(height) + ' ' + one.outerHTML.slice(0, 120)];
  });
})()`;

const findSmall = async (page: Page): Promise<string[]> => (await page.evaluate(SMALL)) as string[];

test('has only targets on a phone that are large enough for a finger', async () => {
  const page = await browser.openAs('/account/profile', ADMIN, browser.phone);
  expect(await checkPages(page, { small: findSmall })).toEqual({ small: [] });
  await page.getByRole('button', { name: 'Account of' }).click();
  expect(await findSmall(page)).toEqual([]);
  await openPage(page, service.url, ['/account/tokens', 'main h2']);
  await page.getByRole('button', { name: 'New token' }).first().click();
  await page.getByRole('dialog').waitFor();
  expect(await findSmall(page)).toEqual([]);
});

/** Whether the field of the search has the focus. */
const isSearching = (page: Page): Promise<boolean> => page.evaluate('document.activeElement.type === "search"');

test.each(['/', '/log', '/access/users', '/data/labels'])('searches on %s after /', async (path) => {
  const page = await browser.openAs(path);
  await page.getByRole('searchbox').waitFor();
  // From then on the page follows keys.
  await effectsRun(page);
  await page.locator('#main').focus();
  await page.keyboard.press('/');
  expect(await isSearching(page)).toBe(true);
  // There it is a character.
  await page.keyboard.type('a/b');
  await eventually(async () => expect(await page.getByRole('searchbox').inputValue()).toBe('a/b'));
});

test('leaves the keys of the search to a dialog that is open', async () => {
  const page = await browser.openAs('/data/labels');
  await page.getByRole('button', { name: 'New', exact: true }).first().click();
  await page.getByRole('dialog').getByRole('textbox').first().focus();
  await page.keyboard.press('Control+k');
  await eventually(async () =>
    expect(await page.evaluate('document.activeElement.closest("dialog") !== null')).toBe(true),
  );
});

test('opens and leaves the menu of the user with the keyboard', async () => {
  const page = await browser.openAs('/log');
  const opener = page.locator('.avatar');
  await opener.focus();
  await page.keyboard.press('Enter');
  await page.locator('#account-menu').waitFor();
  await page.keyboard.press('Tab');
  await eventually(async () =>
    expect(await page.evaluate('document.activeElement.closest("#account-menu") !== null')).toBe(true),
  );
  await page.keyboard.press('Escape');
  await page.locator('#account-menu').waitFor({ state: 'hidden' });
  await eventually(async () => expect(await page.evaluate('document.activeElement.matches(".avatar")')).toBe(true));
});

test('opens and leaves a dialog with the keyboard, which gives the focus back', async () => {
  const page = await browser.openAs('/account/tokens');
  const opener = page.getByRole('button', { name: 'New token' }).first();
  await opener.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await eventually(async () =>
    expect(await page.evaluate('document.activeElement.closest("dialog") !== null')).toBe(true),
  );
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await eventually(async () =>
    expect(await opener.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true),
  );
});

test('gives the focus to the page when a dialog has removed what opened it', async () => {
  const { body } = await service.admin('POST', 'labels', { name: 'Short-lived' });
  const page = await browser.openAs('/data/labels');
  await page.getByRole('button', { name: 'Remove Short-lived' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Tab');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect((await service.admin('GET', `labels/${body._id}`)).status).toBe(404);
  await eventually(async () =>
    expect(await page.evaluate('document.activeElement.closest("main") !== null')).toBe(true),
  );
});
