/** Entities of stores that administrators add. */
import { expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import type { JsonObject } from '../../../src/core/json.js';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

/** Opens a form with this field: one that is opened before the schema of its store has come asks for JSON, and goes on to. */
async function openForm(page: Page, button: Locator, field: string): Promise<Locator> {
  const form = page.getByRole('dialog');
  await until(async () => {
    await button.click();
    await form.waitFor();
    if (await form.getByLabel(field).isVisible()) return true;
    await page.keyboard.press('Escape');
    await form.waitFor({ state: 'detached' });
    return false;
  }, `a form with ${field}`);
  return form;
}

test('shows the fields of entities that have no name, and names them in the question before their removal', async () => {
  const properties = { title: { type: 'string' }, priority: { type: 'integer' }, open: { type: 'boolean' } };
  await service.admin('POST', 'stores', { name: 'tickets', schema: { type: 'object', properties } });
  await service.admin('POST', 'tickets', { title: 'Oil leak', priority: 2000, open: true, parts: ['seal'] });
  await service.admin('POST', 'tickets', { title: 'y'.repeat(500) });
  const page = await browser.openAs('/data/tickets');
  const row = page.getByRole('row', { name: 'Oil leak' });
  const columns = async () => (await page.getByRole('columnheader').allTextContents()).slice(0, -1).join();
  // The schema may come after the entities.
  await until(async () => (await columns()) === 'title,priority,open,Created', 'the columns of the schema');
  await eventually(async () =>
    expect((await row.getByRole('cell').allTextContents()).slice(0, 3)).toEqual(['Oil leak', '2,000', 'Yes']),
  );
  expect((await page.getByRole('cell', { name: 'yyy' }).first().textContent())?.length).toBeLessThan(100);
  await row.getByRole('button', { name: 'Remove Oil leak' }).click();
  await page.getByRole('dialog', { name: 'Remove Oil leak?' }).waitFor();
});

const DRIVERS = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Full name' },
    license: { enum: ['B', 'C', 'CE'], title: 'Licence' },
    since: { type: 'string', format: 'date' },
    trips: { type: 'integer', minimum: 0 },
    onDuty: { type: 'boolean' },
    phones: { type: 'array', items: { type: 'string' } },
    skills: { type: 'array', items: { enum: ['crane', 'night'] } },
    notes: { type: 'string', maxLength: 2_000 },
    address: { type: 'object' },
  },
  required: ['name'],
};

test('makes a form from the schema of a store, and sends what was typed and changed, no more', async () => {
  browser.expectErrors(/400/);
  await service.admin('POST', 'stores', { name: 'drivers', schema: DRIVERS });
  const stored = async (): Promise<JsonObject> => {
    const [driver] = (await service.admin('GET', 'drivers')).body;
    const { _id, _at, owner, group, branch, access, time, ...fields } = driver ?? {};
    return fields;
  };
  const page = await browser.openAs('/data/drivers');
  const form = await openForm(page, page.getByRole('button', { name: 'New' }), 'Full name');
  await form.getByLabel('Full name').fill('Ann');
  await form.getByLabel('Licence').selectOption('CE');
  await form.getByLabel('since').fill('2024-02-29');
  await form.getByLabel('trips').fill('many');
  await form.getByLabel('onDuty').selectOption('Yes');
  await form.getByLabel('phones').fill('+49 30 1\n\n +49 30 2 ');
  await form.getByLabel('crane').check();
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByText('Expected a number, such as 12.5.').waitFor();
  await form.locator('[name=trips]:focus').waitFor();
  await form.getByLabel('trips').fill('-1');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByText('Expected at least 0.').waitFor();
  await form.getByLabel('trips').fill('12');
  await form.getByLabel('address').fill('{"city": ');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByText('Expected JSON').waitFor();
  await form.getByLabel('address').fill('{"city": "Kiel"}');
  await form.getByLabel('Other fields').fill('{"badge": 7}');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.waitFor({ state: 'detached' });
  const first = {
    name: 'Ann',
    license: 'CE',
    since: '2024-02-29',
    trips: 12,
    onDuty: true,
    phones: ['+49 30 1', '+49 30 2'],
    skills: ['crane'],
    address: { city: 'Kiel' },
    badge: 7,
  };
  expect(await stored()).toEqual(first);
  const [{ _id }] = (await service.admin('GET', 'drivers')).body;
  await page.getByRole('row', { name: 'Ann' }).getByRole('button', { name: 'Edit' }).click();
  // Somebody else changes it meanwhile.
  await service.admin('PATCH', `drivers/${_id}`, { trips: 13, badge: 8, notes: 'Two\nlines' });
  await form.getByLabel('Full name').fill('Ann B.');
  await form.getByLabel('phones').fill('');
  await form.getByLabel('address').fill('{"street": "Kai 1"}');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByText('cannot remove “city”').waitFor();
  await form.getByLabel('address').fill('{"city": "Kiel", "street": "Kai 1"}');
  await form.getByLabel('Other fields').fill('');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByText('cannot remove “badge”').waitFor();
  await form.getByLabel('Other fields').fill('{"badge": 7}');
  await form.getByLabel('night').check();
  await form.getByRole('button', { name: 'Save' }).click();
  await form.waitFor({ state: 'detached' });
  const address = { city: 'Kiel', street: 'Kai 1' };
  const changed = {
    name: 'Ann B.',
    address,
    phones: [],
    skills: ['crane', 'night'],
    trips: 13,
    badge: 8,
    notes: 'Two\nlines',
  };
  expect(await stored()).toEqual({ ...first, ...changed });
});

test('shows a value that its field cannot show as JSON, and does not change it', async () => {
  const properties = { count: { type: 'integer' }, tags: { type: 'array', items: { type: 'string' } } };
  const { body: store } = await service.admin('POST', 'stores', { name: 'readings', schema: {} });
  const { body: reading } = await service.admin('POST', 'readings', { count: 'unknown', tags: ['a\nb'] });
  await service.admin('PATCH', `stores/${store._id}`, { schema: { properties } });
  const page = await browser.openAs('/data/readings');
  const form = await openForm(page, page.getByRole('button', { name: 'Edit' }), 'count');
  await eventually(async () => expect(await form.getByLabel('count').inputValue()).toBe('"unknown"'));
  await form.getByLabel('count').fill('3');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.waitFor({ state: 'detached' });
  expect((await service.admin('GET', `readings/${reading._id}`)).body).toMatchObject({ count: 3, tags: ['a\nb'] });
});

test('adds a store, which has a tab at once', async () => {
  browser.expectErrors(/400/);
  const page = await browser.openAs('/data/stores');
  await page.getByRole('button', { name: 'New' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name').fill('Not a name');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.locator('.note.error', { hasText: 'lower-case letters' }).waitFor();
  await form.getByLabel('Name').fill('inspections');
  await form.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('link', { name: 'inspections' }).click();
  await page.getByText('Nothing here').waitFor();
});

test('makes the form of each store from its own schema, and of no default that does not fit', async () => {
  const text = { type: 'string' };
  const properties = {
    title: text,
    tags: { type: 'array', items: text, default: 'x' },
    day: { ...text, format: 'date' },
  };
  await service.admin('POST', 'stores', { name: 'visits', schema: { properties } });
  await service.admin('POST', 'stores', { name: 'repairs', schema: { properties: { part: text } } });
  const page = await browser.openAs('/data/visits');
  const form = await openForm(page, page.getByRole('button', { name: 'New' }), 'tags');
  await eventually(async () => expect(await form.getByLabel('tags').inputValue()).toBe('"x"'));
  await page.keyboard.press('Escape');
  const held = new Promise<void>((resolve) => {
    void page.route('**/api/v1/stores?where.name*', (route) => {
      resolve();
      void route.abort();
    });
  });
  browser.expectErrors(/ERR_FAILED/);
  await page.getByRole('link', { name: 'repairs' }).click();
  await held;
  await page.getByRole('button', { name: 'New' }).click();
  await form.getByLabel('Entity (JSON)').waitFor();
  expect(await form.getByLabel('title').count()).toBe(0);
});
