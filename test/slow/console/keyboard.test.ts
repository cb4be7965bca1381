/** What the keyboard does in the list of objects, and what the title of the window says. */
import { expect, test } from '@jest/globals';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const NAMES = ['Crane', 'Truck 1', 'Truck 2', 'Truck 10'];

async function addAll(mark: string): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  for (const name of NAMES) {
    const { body } = await service.admin('POST', 'objects', { id: `${mark} ${name}`, name: `${mark} ${name}` });
    ids.set(name, body._id);
  }
  return ids;
}

test('leads from the search to an object and back with Enter, arrows and Esc', async () => {
  await addAll('keys');
  const page = await browser.openAs('/');
  const list = page.locator('.side');
  await list.locator('.row', { hasText: 'keys Crane' }).waitFor();
  const card = page.locator('.card h2');
  const focused = () => page.evaluate<string>('document.activeElement.textContent');
  const search = page.getByRole('searchbox');
  // From then on the page follows keys.
  await effectsRun(page);
  await page.keyboard.press('/');
  await page.keyboard.type('keys truck');
  await page.keyboard.press('Enter');
  await card.getByText('keys Truck 1', { exact: true }).waitFor();
  await eventually(async () => expect(await search.and(page.locator(':focus')).count()).toBe(1));
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  expect(await focused()).toContain('keys Truck 2');
  await page.keyboard.press('Enter');
  await card.getByText('keys Truck 2', { exact: true }).waitFor();
  await page.keyboard.press('ArrowUp');
  expect(await focused()).toContain('keys Truck 1');
  await page.keyboard.press('Escape');
  await card.waitFor({ state: 'detached' });
  await page.keyboard.press('Escape');
  await eventually(async () => expect(await search.and(page.locator(':focus')).count()).toBe(1));
  await eventually(async () => expect(await search.inputValue()).toBe('keys truck'));
  await page.keyboard.press('Escape');
  await until(async () => (await search.inputValue()) === '', 'Esc empties the search');
  await list.locator('.row', { hasText: 'keys Crane' }).waitFor();
});

test('does nothing at Enter when nothing is found', async () => {
  const page = await browser.openAs('/');
  await page.getByRole('searchbox').fill('no such object');
  await page.getByText('Nothing found').waitFor();
  await page.keyboard.press('Enter');
  await page.keyboard.press('ArrowDown');
  expect(await page.locator('.card').count()).toBe(0);
  await eventually(async () => expect(await page.getByRole('searchbox').and(page.locator(':focus')).count()).toBe(1));
});

test('names the object, the model and the section in the title of the window', async () => {
  const ids = await addAll('titled');
  const { body: model } = await service.admin('POST', 'models', { name: 'Sensor 7' });
  const truck = ids.get('Truck 1') as string;
  const page = await browser.openAs(`/objects/${truck}/live`);
  const expectTitle = (title: string) => until(async () => (await page.title()) === title, `the title ${title}`);
  await expectTitle('titled Truck 1 · Live · Vigil');
  await page.getByRole('link', { name: 'History' }).click();
  await expectTitle('titled Truck 1 · History · Vigil');
  await service.admin('PATCH', `objects/${truck}`, { name: 'Renamed' });
  await expectTitle('Renamed · History · Vigil');
  await page.locator('.nav').getByRole('link', { name: 'Map' }).click();
  await expectTitle('Map · Vigil');
  await page.locator('.row', { hasText: 'titled Crane' }).click();
  await expectTitle('titled Crane · Vigil');
  await effectsRun(page);
  await page.keyboard.press('Escape');
  await expectTitle('Map · Vigil');
  for (const [path, title] of [
    [`/?object=${truck}`, 'Renamed · Vigil'],
    [`/models/${model._id}`, 'Sensor 7 · Vigil'],
    ['/access/roles', 'Access · Roles · Vigil'],
    ['/account/tokens', 'Account · Tokens · Vigil'],
    ['/log', 'Log · Vigil'],
  ] as const) {
    await page.goto(service.url + path);
    await expectTitle(title);
  }
});

test('leaves the focus on a filter that shows nothing any more, which Tab passes and which does nothing', async () => {
  await service.admin('POST', 'objects', { id: 'stops', name: 'Stops' });
  const send = (speed: number) => service.admin('POST', 'objects/stops/packets', { speed });
  await send(50);
  const page = await browser.openAs('/');
  const chip = page.locator('.chips').getByRole('button', { name: /^Moving/ });
  await chip.getByText('1', { exact: true }).waitFor();
  await chip.focus();
  await send(0);
  await chip.getByText('0', { exact: true }).waitFor();
  await eventually(async () => expect(await chip.and(page.locator(':focus')).count()).toBe(1));
  await page.keyboard.press('Enter');
  await effectsRun(page);
  expect(page.url()).not.toContain('show=');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Tab');
  await eventually(async () => expect(await chip.and(page.locator(':focus')).count()).toBe(0));
  await service.admin('DELETE', 'objects/stops');
});
