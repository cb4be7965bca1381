/** The labels of objects. */
import { expect, test } from '@jest/globals';
import { useBrowser } from '../../support/browser/browser.js';
import { useService } from '../../support/fixture.js';
import { until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

test('gives an object labels, and filters by them', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'labelled', name: 'Labelled' });
  await service.admin('POST', 'objects', { id: 'other', name: 'Other', labels: ['South', 'rented'] });
  const labelsOf = async (id: string) => (await service.admin('GET', `objects/${id}`)).body.labels;
  const page = await browser.openAs(`/objects/${object._id}/settings`);
  await page.getByLabel('Labels').fill('North,  rented , North,');
  await page.getByRole('button', { name: 'Save' }).click();
  await until(async () => (await labelsOf('labelled'))?.join() === 'North,rented', 'the labels are stored');
  await page.goto(`${service.url}/?label=North`);
  await page.locator('.row', { hasText: 'Labelled' }).waitFor();
  expect(await page.locator('.row').count()).toBe(1);
  await page.goto(`${service.url}/objects/other/settings`);
  expect(await page.getByLabel('Labels').inputValue()).toBe('South, rented');
});
