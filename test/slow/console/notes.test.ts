/** Notes in the history of an object: written about what a chart shows, marked in it, listed, and removed. */
import { expect, test } from '@jest/globals';
import { animationsEnd, findAxe } from '../../support/browser/axe.js';
import { useBrowser } from '../../support/browser/browser.js';
import { untilNotice } from '../../support/browser/notices.js';
import { createUser } from '../../support/browser/users.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const MINUTE_MS = 60_000;
const startMs = Math.floor(Date.now() / MINUTE_MS - 60) * MINUTE_MS;

async function addStore(id: string): Promise<string> {
  const { body } = await service.admin('POST', 'objects', { id, name: id });
  const packets = Array.from({ length: 41 }, (_, minute) => ({ time: startMs + minute * MINUTE_MS, temperature: 4 }));
  await service.admin('POST', `objects/${id}/packets`, packets);
  return body._id;
}

const intervalOf = (from: number, to: number): string =>
  `from=${startMs + from * MINUTE_MS}&to=${startMs + to * MINUTE_MS}`;

/** Runs in the page: whether the first chart has pixels as strong as the mark of a note. */
const IS_MARKED = `(() => {
  const canvas = document.querySelector('.uplot canvas');
  if (canvas === null) return null;
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 2] > 200 && data[at] > 100 && data[at] - data[at + 1] > 25 && data[at + 2] - data[at] > 60) return true;
  return false;
})()`;

test('takes a note on the shown interval, with the keyboard, marks and lists it, and removes it', async () => {
  const id = await addStore('noted');
  const page = await browser.openAs(`/objects/${id}/history?${intervalOf(10, 20)}`);
  await page.locator('.uplot').waitFor();
  expect(await page.evaluate(IS_MARKED)).toBe(false);
  await page.getByRole('button', { name: 'Note', exact: true }).press('Enter');
  const text = page.getByLabel('Note', { exact: true });
  await eventually(async () => expect(await text.evaluate((field) => field.matches(':focus'))).toBe(true));
  await text.fill('The door was left open');
  await page.getByRole('button', { name: 'Save note' }).press('Enter');
  await untilNotice(page, 'Note saved');
  const note = page.locator('.notes li');
  await eventually(async () => expect(await note.textContent()).toMatch(/The door was left open.* – .* · admin/));
  await until(async () => (await page.evaluate(IS_MARKED)) === true, 'the mark');
  const { body } = await service.admin('GET', `objects/${id}/notes`);
  expect(body).toMatchObject([
    { text: 'The door was left open', time: startMs + 10 * MINUTE_MS, to: startMs + 20 * MINUTE_MS, author: 'admin' },
  ]);
  await page.goto(`${service.url}/objects/${id}/history?${intervalOf(25, 35)}`);
  await page.locator('.uplot').waitFor();
  expect(await note.count()).toBe(0);
  await page.goto(`${service.url}/objects/${id}/history?${intervalOf(15, 35)}`);
  await note.waitFor();
  await page.evaluate(await findAxe());
  await animationsEnd(page);
  const found = await page.evaluate('axe.run(document).then(({ violations }) => violations.map(({ id }) => id))');
  expect(found).toEqual([]);
  await note.getByRole('button', { name: /^Remove the note of / }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await note.waitFor({ state: 'detached' });
  expect((await service.admin('GET', `objects/${id}/notes`)).body).toEqual([]);
});

test('says at its field what is wrong with the time of a note', async () => {
  const id = await addStore('refused');
  browser.expectErrors(/400/);
  const page = await browser.openAs(`/objects/${id}/history`);
  await page.getByRole('button', { name: 'Note', exact: true }).click();
  await page.getByLabel('Note', { exact: true }).fill('x');
  const form = page.locator('form', { hasText: 'Save note' });
  await form.getByLabel('To').fill('2020-01-01T00:00');
  await form.getByRole('button', { name: 'Save note' }).click();
  await form.locator('.note.error').waitFor();
  await form.getByRole('button', { name: 'Cancel' }).click();
  await form.waitFor({ state: 'detached' });
});

test('shows notes to a viewer, who may neither write nor remove one', async () => {
  const id = await addStore('read');
  await service.admin('POST', `objects/${id}/notes`, { text: 'Seen by all', time: startMs + 5 * MINUTE_MS });
  const page = await browser.openAs(`/objects/${id}/history`, await createUser(service, 'viewer'));
  const note = page.locator('.notes li');
  await eventually(async () => expect(await note.textContent()).toMatch(/Seen by all.* · admin/));
  expect(await note.getByRole('button').count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Note', exact: true }).count()).toBe(0);
});
