/** What values mean, wherever they are shown: the states and thresholds that a model declares. */
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { entityOf } from '../../support/answers.js';
import { useBrowser } from '../../support/browser/browser.js';
import { untilNotice } from '../../support/browser/notices.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

const MINUTE_MS = 60_000;
const startMs = Math.floor(Date.now() / MINUTE_MS - 40) * MINUTE_MS;

const DOOR = {
  type: 'argument',
  id: 'door',
  name: 'Door',
  dataType: 'boolean',
  states: [
    { value: true, label: 'Open', tone: 'warning' },
    { value: false, label: 'Closed', tone: 'ok' },
  ],
};
const MODE = {
  type: 'argument',
  id: 'mode',
  name: 'Mode',
  states: [
    { value: 0, label: 'Off', tone: 'unknown' },
    { value: 1, label: 'Cooling', tone: 'info' },
  ],
};
const TEMPERATURE = {
  type: 'argument',
  id: 'temperature',
  name: 'Temperature',
  dataType: 'number',
  unit: '°C',
  thresholds: [
    { from: 8, tone: 'critical', label: 'Too warm' },
    { to: 2, tone: 'info', label: 'Cold' },
  ],
};

/** A cold store for half an hour, whose door opens; it is too warm in the end. */
async function addStore(id: string): Promise<{ objectId: string; modelId: string }> {
  const data = { children: [DOOR, MODE, TEMPERATURE] };
  const modelId = entityOf(await service.admin('POST', 'models', { name: id, data }))._id as string;
  const { body } = await service.admin('POST', 'objects', { id, name: id, model: modelId });
  const packets = Array.from({ length: 31 }, (_, minute) => ({
    time: startMs + minute * MINUTE_MS,
    temperature: minute < 20 ? 4 : 9,
    door: minute >= 10,
    mode: minute < 20 ? 0 : 1,
  }));
  await service.admin('POST', `objects/${id}/packets`, packets);
  return { objectId: body._id, modelId };
}

/** Values as they are read to somebody. */
const marksIn = (page: Page, selector: string): Promise<string[]> =>
  page.locator(`${selector} .tone`).evaluateAll((marks) => marks.map((mark) => mark.getAttribute('aria-label') ?? ''));

test('shows labels and tones in tiles, list, table, card and page of an object', async () => {
  const { objectId } = await addStore('meant');
  const page = await browser.openAs('/?view=tiles&columns=.temperature,.door,.mode');
  const tile = page.locator('.tile', { hasText: 'meant' });
  await eventually(async () => expect(await tile.textContent()).toMatch(/9 °C.*Door Open.*Mode Cooling/));
  expect(await marksIn(page, '.tile')).toEqual(['Too warm', 'Warning', 'Info']);
  await eventually(async () => expect(await marksIn(page, '.row-value')).toEqual(['Too warm']));
  await page.goto(`${service.url}/?view=table&columns=name,.temperature,.door,.mode&object=${objectId}`);
  const row = page.locator('tbody tr', { hasText: 'meant' });
  await eventually(async () => expect(await row.textContent()).toMatch(/9.*Open.*Cooling/));
  expect(await marksIn(page, 'tbody')).toEqual(['Too warm', 'Warning', 'Info']);
  await eventually(async () => expect(await marksIn(page, '.card')).toEqual(['Too warm', 'Warning', 'Info']));
  await page.goto(`${service.url}/objects/${objectId}/live`);
  const cards = page.locator('.value-cards');
  await eventually(async () => expect(await cards.textContent()).toMatch(/9 °C\s*Too warm.*Open.*Cooling/));
  expect(await marksIn(page, '.value-cards')).toEqual(['Too warm', 'Warning', 'Info']);
  const newest = page.locator('section.table tbody tr').first();
  await eventually(async () => expect(await newest.textContent()).toMatch(/9.*Open.*Cooling/));
  await service.admin('POST', 'objects/meant/packets', { temperature: 1, door: false, mode: 7 });
  await eventually(async () => expect(await marksIn(page, '.value-cards')).toEqual(['Cold', 'OK']));
  await eventually(async () => expect(await cards.textContent()).toMatch(/Closed.*7/));
});

/** Runs in the page: whether the first chart has pixels that are tinted red, but not as strong as a line. */
const IS_TINTED = `(() => {
  const canvas = document.querySelector('.uplot canvas');
  if (canvas === null) return null;
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let tinted = 0;
  for (let at = 0; at < data.length; at += 4)
    if (data[at] > 235 && data[at] - data[at + 1] > 12 && data[at + 1] > 200) tinted++;
  return tinted > canvas.width;
})()`;

test('shows states of booleans and numbers as bars, and thresholds in charts, also in words', async () => {
  const { objectId } = await addStore('charted');
  const page = await browser.openAs(`/objects/${objectId}/history?charts=temperature`);
  await page.getByRole('img', { name: 'Door: Open 20 min, Closed 10 min' }).waitFor();
  await page.getByRole('img', { name: 'Mode: Off 20 min, Cooling 10 min' }).waitFor();
  await eventually(async () =>
    expect(await marksIn(page, '.state-totals')).toEqual(['Warning', 'OK', 'Unknown', 'Info']),
  );
  const ranges = page.getByRole('list', { name: 'What its values mean' });
  await eventually(async () =>
    expect((await ranges.getByRole('listitem').allTextContents()).map((text) => text.trim())).toEqual([
      'Too warm≥ 8 °C',
      'Cold< 2 °C',
    ]),
  );
  await until(async () => (await page.evaluate(IS_TINTED)) === true, 'the tinted range');
});

test('shows labels and tones to visitors of a share link', async () => {
  const { objectId } = await addStore('visited');
  const { body } = await service.admin('POST', `objects/${objectId}/links`, { name: 'Cold store', history: '24 h' });
  const page = await browser.open(`/s#${body.secret}`);
  await eventually(async () =>
    expect((await marksIn(page, '.value-cards')).sort()).toEqual(['Info', 'Too warm', 'Warning']),
  );
  await page.locator('.value-cards').getByText('Open').waitFor();
  await page.getByRole('button', { name: 'Temperature' }).click();
  await page.getByRole('list', { name: 'What its values mean' }).getByText('Too warm').waitFor();
});

test('edits states and thresholds in the form of a model, and says at its field what is wrong', async () => {
  const data = { children: [{ type: 'argument', id: 'level', dataType: 'number' }] };
  const id = entityOf(await service.admin('POST', 'models', { name: 'Edited', data }))._id;
  browser.expectErrors(/400/);
  const page = await browser.openAs(`/models/${id}`);
  await page.getByRole('button', { name: 'level' }).click();
  await page.getByRole('button', { name: 'State', exact: true }).click();
  const state = page.getByRole('group', { name: 'State 1' });
  await state.getByLabel('Value').fill('-1');
  await state.getByLabel('Label').fill('Broken');
  await page.getByRole('button', { name: 'Threshold', exact: true }).click();
  const threshold = page.getByRole('group', { name: 'Threshold 1' });
  await threshold.getByLabel('From').fill('8,5');
  await threshold.getByLabel('Below').fill('8.0');
  await threshold.getByLabel('Tone').selectOption('critical');
  await page.getByRole('button', { name: 'Save' }).click();
  const error = threshold.locator('.note.error');
  await eventually(async () => expect(await error.allTextContents()).toEqual(['Expected more than the beginning.']));
  await threshold.getByLabel('Below').fill('12');
  await page.getByRole('button', { name: 'Save' }).click();
  await untilNotice(page, 'Saved');
  const stored = entityOf(await service.admin('GET', `models/${id}`));
  expect(stored.data.children[0]).toEqual({
    ...data.children[0],
    states: [{ value: -1, label: 'Broken' }],
    thresholds: [{ from: 8.5, to: 12, tone: 'critical' }],
  });
  await page.getByRole('button', { name: 'Remove state 1' }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await eventually(async () =>
    expect(entityOf(await service.admin('GET', `models/${id}`)).data.children[0]).not.toHaveProperty('states'),
  );
});
