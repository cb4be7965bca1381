/** Objects from a file: what would happen is shown first, then it is written, and what the service refuses is named. */
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ADMINISTRATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../../src/core/builtin.js';
import { entityOf } from '../../support/answers.js';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { createPerson, type Person } from '../../support/callers.js';
import { useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

const groups = {} as Record<'north' | 'team' | 'south', string>;
const people = {} as Record<'admin' | 'viewer', Person>;
let model: string;

beforeAll(async () => {
  groups.north = await create('groups', { name: 'North' });
  groups.team = await create('groups', { name: 'Team', parent: groups.north });
  groups.south = await create('groups', { name: 'South' });
  people.admin = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: groups.north });
  people.viewer = await createPerson(service, { role: VIEWER_ROLE_ID, group: groups.north });
  model = await create('models', { name: 'Tracker', group: groups.north });
  await create('objects', { id: 'van', name: 'Van', group: groups.north, config: { plate: 'M-1' } });
  await create('objects', { id: 'same', name: 'Same', group: groups.north });
  // It is not visible to the administrator of North.
  await create('objects', { id: 'hidden', name: 'Hidden', group: groups.south });
});

const chooseFile = (page: Page, text: string): Promise<void> =>
  page.getByLabel('CSV file').setInputFiles({ name: 'fleet.csv', mimeType: 'text/csv', buffer: Buffer.from(text) });

const rowsOf = (page: Page): Promise<string[]> => page.locator('.import tbody tr').allInnerTexts();

const FLEET = [
  '\uFEFFid;name;Gruppe;Modell;config.plate;Farbe',
  'bus;Bus;Team;Tracker;M-7;red',
  'van;Van;Team;;M-2;blue',
  'same;Same;;;;',
  'lost;Lost;West;;;',
  'hidden;Mine;;;;',
  '',
].join('\r\n');

test('shows what each row would do before anything is written, then writes, and names what was refused', async () => {
  browser.expectErrors(/409/);
  const page = await browser.openAs('/data/objects', people.admin);
  await chooseFile(page, FLEET);
  await eventually(async () =>
    expect(await rowsOf(page)).toEqual([
      '2\tbus\tBus\tNew',
      '3\tvan\tVan\tChanged: config, group',
      '4\tsame\tSame\tUnchanged',
      '5\tlost\tLost\tRefused: No group that you see is called “West”.',
      '6\thidden\tMine\tNew',
    ]),
  );
  expect((await service.admin('GET', 'objects?where.id=bus')).body).toEqual([]);
  // Another column becomes a field.
  await page.getByLabel('Farbe').selectOption('config.Farbe');
  await page.getByRole('button', { name: 'Write 3 rows' }).click();
  await page.getByText('Row 6, hidden: id: This is already taken.').waitFor();
  await page.getByText('2 rows are written.').waitFor();
  const [bus] = (await service.admin('GET', 'objects?where.id=bus')).body;
  expect(bus).toMatchObject({ name: 'Bus', group: groups.team, model, config: { plate: 'M-7', Farbe: 'red' } });
  const [van] = (await service.admin('GET', 'objects?where.id=van')).body;
  expect(van).toMatchObject({ group: groups.team, config: { plate: 'M-2', Farbe: 'blue' } });
  // What is written is not written again.
  await page.getByRole('button', { name: 'Unchanged 3' }).waitFor();
});

test('says why a file cannot be read, and takes the next one', async () => {
  const page = await browser.openAs('/data/objects', people.admin);
  await chooseFile(page, 'id,name\n"bus,Bus\n');
  await page.getByRole('alert').getByText('a quote in it does not close').waitFor();
  await chooseFile(page, 'id,name\n');
  await page.getByRole('alert').getByText('no rows below the names').waitFor();
  await chooseFile(page, `id\n${'x\n'.repeat(5_001)}`);
  await page.getByRole('alert').getByText('more than 5,000 rows').waitFor();
  await chooseFile(page, 'id,name\nnext,Next\n');
  await page.getByRole('button', { name: 'Write 1 row' }).waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
});

test('is not there for who may not write objects', async () => {
  const page = await browser.openAs('/data/objects', people.viewer);
  await page.getByText('POST /objects').waitFor();
  expect(await page.getByLabel('CSV file').count()).toBe(0);
});
