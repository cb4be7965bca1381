/** Entities of stores that administrators add. */
import { expect, test } from '@jest/globals';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service);

test('shows the fields of entities that have no name, and names them in the question before their removal', async () => {
  const properties = { title: { type: 'string' }, priority: { type: 'integer' }, open: { type: 'boolean' } };
  await service.admin('POST', 'stores', { name: 'tickets', schema: { type: 'object', properties } });
  await service.admin('POST', 'tickets', { title: 'Oil leak', priority: 2000, open: true, parts: ['seal'] });
  await service.admin('POST', 'tickets', { title: 'y'.repeat(500) });
  const page = await browser.openAs('/data/tickets');
  const row = page.getByRole('row', { name: 'Oil leak' });
  expect((await row.getByRole('cell').allTextContents()).slice(0, 3)).toEqual(['Oil leak', '2,000', 'Yes']);
  expect((await page.getByRole('columnheader').allTextContents()).slice(0, -1)).toEqual([
    ...['title', 'priority', 'open', 'Created'],
  ]);
  expect((await page.getByRole('cell', { name: 'yyy' }).first().textContent())?.length).toBeLessThan(100);
  await row.getByRole('button', { name: 'Remove Oil leak' }).click();
  await page.getByRole('dialog', { name: 'Remove Oil leak?' }).waitFor();
});
