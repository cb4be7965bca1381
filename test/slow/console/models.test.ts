/** The editor of models: a tree of parameters and commands, as a form and as JSON. */
import { expect, test } from '@jest/globals';
import { entityOf } from '../../support/answers.js';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { untilNotice } from '../../support/browser/notices.js';
import { createUser } from '../../support/browser/users.js';
import { useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
const DATA = {
  vendor: { version: 3 },
  children: [
    { type: 'argument', id: 'speed', name: 'Speed', dataType: 'number', unit: 'km/h', vendorScale: 10 },
    { type: 'subsystem', id: 'doors', children: [{ type: 'action', id: 'lock', params: { doors: 'all' } }] },
  ],
};

const create = async (name: string): Promise<string> =>
  entityOf(await service.admin('POST', 'models', { name, data: DATA }))._id as string;
const read = async (id: string) => entityOf(await service.admin('GET', `models/${id}`));

test('makes a model whose parameters and commands count', async () => {
  const page = await browser.openAs('/models');
  await page.getByRole('link', { name: 'New' }).click();
  // The page before has a field for names, too.
  await page.getByRole('heading', { name: 'New model' }).waitFor();
  await page.getByLabel('Name').fill('Pump');
  await page.getByRole('button', { name: 'Parameter' }).click();
  const node = page.getByRole('region', { name: 'Selected' });
  await node.getByLabel('Id').fill('pressure');
  await node.getByLabel('Unit').fill('bar');
  await page.getByRole('button', { name: 'Command' }).click();
  await node.getByLabel('Id').fill('start');
  await node.getByRole('button', { name: 'Argument' }).click();
  await node.getByLabel('Name of the argument').fill('level');
  await page.keyboard.press('Tab');
  await node.getByLabel('Default of level').fill('3');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL(/\/models\/[0-9a-f]{24}/);
  const { name, data } = await read(page.url().split('/').at(-1) as string);
  expect({ name, data }).toEqual({
    name: 'Pump',
    data: {
      children: [
        { type: 'argument', id: 'pressure', dataType: 'number', unit: 'bar' },
        { type: 'action', id: 'start', params: { level: 3 } },
      ],
    },
  });
});

test('changes a parameter, and keeps fields that it does not know', async () => {
  const id = await create('Vendor');
  const page = await browser.openAs(`/models/${id}`);
  await page.getByRole('button', { name: 'Speed' }).click();
  await page.getByLabel('Unit').fill('mph');
  await page.getByRole('button', { name: 'Save' }).click();
  await untilNotice(page, 'Saved');
  const [speed, doors] = DATA.children;
  expect((await read(id)).data).toEqual({ ...DATA, children: [{ ...speed, unit: 'mph' }, doors] });
});

test('shows a refusal at its field, and keeps what was typed', async () => {
  const id = await create('Refused');
  browser.expectErrors(/400/);
  const page = await browser.openAs(`/models/${id}`);
  await page.getByRole('button', { name: 'lock' }).click();
  await page.getByLabel('Id').fill('not a name');
  await page.getByRole('button', { name: 'Speed' }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.field', { hasText: 'Id' }).locator('.note.error').waitFor();
  await eventually(async () => expect(await page.getByLabel('Id').inputValue()).toBe('not a name'));
  expect((await read(id)).data).toEqual(DATA);
});

test('takes a formula, and says at its field why one cannot be understood', async () => {
  const id = await create('Calculated');
  browser.expectErrors(/400/);
  const page = await browser.openAs(`/models/${id}`);
  await page.getByRole('button', { name: 'Speed' }).click();
  await page.getByLabel('Formula').fill('p.knots *');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.field', { hasText: 'Formula' }).locator('.note.error').waitFor();
  await page.getByLabel('Formula').fill('p.knots * 1.852');
  await page.getByRole('button', { name: 'Save' }).click();
  await untilNotice(page, 'Saved');
  const object = entityOf(await service.admin('POST', 'objects', { id: 'calculated', name: 'Calculated', model: id }));
  await service.admin('POST', `objects/${object._id}/packets`, { knots: 10 });
  expect((await service.admin('GET', `objects/${object._id}/packets?only=speed`)).body).toMatchObject([
    { speed: 18.52 },
  ]);
});

test('asks for the missing id of a parameter once, at its field, until it is there', async () => {
  browser.expectErrors(/400/);
  const page = await browser.openAs('/models/new');
  await page.getByLabel('Name').fill('Nameless');
  await page.getByRole('button', { name: 'Parameter' }).click();
  const id = page.getByLabel('Id', { exact: true });
  await effectsRun(page);
  await eventually(async () => expect(await id.evaluate((input) => input.matches(':focus'))).toBe(true));
  await page.getByRole('button', { name: 'Save' }).click();
  const error = page.locator('.note.error');
  await error.waitFor();
  await eventually(async () =>
    expect(await error.allTextContents()).toEqual(['Needs at most 64 characters, without white space.']),
  );
  expect(await page.locator('.problem').count()).toBe(0);
  await id.fill('speed');
  await error.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL(/\/models\/[0-9a-f]{24}/);
});

test('edits the tree as JSON, and refuses to save what is none', async () => {
  const id = await create('As JSON');
  const page = await browser.openAs(`/models/${id}`);
  await page.getByRole('button', { name: 'JSON' }).click();
  await page.getByLabel('The tree as JSON').fill('{"children": [');
  await eventually(async () => expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true));
  await page.getByLabel('The tree as JSON').fill('{"children": [], "vendor": {"version": 4}}');
  await page.getByRole('button', { name: 'Save' }).click();
  await untilNotice(page, 'Saved');
  expect((await read(id)).data).toEqual({ children: [], vendor: { version: 4 } });
});

test('lets a viewer read a model, and change nothing', async () => {
  const id = await create('Read only');
  const page = await browser.openAs(`/models/${id}`, await createUser(service, 'viewer'));
  await page.getByText('does not permit changing this model').waitFor();
  await eventually(async () => expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true));
});

test('proposes what objects of the model send and it does not declare, and adds what is chosen', async () => {
  const id = await create('Sending');
  await service.admin('POST', 'objects', { id: 'sending', name: 'Sending', model: id });
  const packet = { speed: 5, door: true, phases: [1, 2], engine: { rpm: 900 }, plate: 'M-AB 12' };
  await service.admin('POST', 'objects/sending/packets', packet);
  const page = await browser.openAs(`/models/${id}`);
  await page.getByRole('button', { name: 'From packets' }).click();
  const dialog = page.getByRole('dialog', { name: 'Parameters in packets' });
  await eventually(async () =>
    expect(await dialog.getByRole('listitem').allInnerTexts()).toEqual([
      'door boolean · Yes',
      'engine object · {"rpm":900}',
      'phases number[] · [1,2]',
      'plate string · M-AB 12',
    ]),
  );
  await dialog.getByRole('checkbox', { name: /plate/ }).uncheck();
  await dialog.getByRole('button', { name: 'Add 3 parameters' }).click();
  expect((await read(id)).data).toEqual(DATA);
  await page.getByRole('button', { name: 'Save' }).click();
  await untilNotice(page, 'Saved');
  const added = [
    { type: 'argument', id: 'door', dataType: 'boolean' },
    { type: 'argument', id: 'engine', dataType: 'object' },
    { type: 'argument', id: 'phases', dataType: 'number[]' },
  ];
  expect((await read(id)).data).toEqual({ ...DATA, children: [...DATA.children, ...added] });
});

test('proposes parameters of a new model out of the packets of an object that is named', async () => {
  await service.admin('POST', 'objects', { id: 'named', name: 'Named object' });
  await service.admin('POST', 'objects/named/packets', { pressure: 2.5 });
  const page = await browser.openAs('/models/new');
  await page.getByRole('textbox', { name: 'Name' }).fill('Proposed');
  await page.getByRole('button', { name: 'From packets' }).click();
  const dialog = page.getByRole('dialog', { name: 'Parameters in packets' });
  await dialog.getByLabel('Object whose packets are looked at').fill('named');
  await dialog.getByRole('checkbox', { name: /pressure/ }).waitFor();
  await page.keyboard.press('Enter');
  await dialog.getByRole('button', { name: 'Add 1 parameter' }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL(/\/models\/[0-9a-f]{24}/);
  const { data } = await read(page.url().split('/').at(-1) as string);
  expect(data).toEqual({ children: [{ type: 'argument', id: 'pressure', dataType: 'number' }] });
});

test('chooses no proposal that is not shown', async () => {
  const id = await create('Talkative');
  await service.admin('POST', 'objects', { id: 'talkative', name: 'Talkative', model: id });
  const packet = Object.fromEntries(Array.from({ length: 120 }, (_, nth) => [`value${nth}`, nth]));
  await service.admin('POST', 'objects/talkative/packets', packet);
  const page = await browser.openAs(`/models/${id}`);
  await page.getByRole('button', { name: 'From packets' }).click();
  const dialog = page.getByRole('dialog', { name: 'Parameters in packets' });
  await dialog.getByRole('button', { name: 'Add 100 parameters' }).waitFor();
  await dialog.getByRole('searchbox').fill('value119');
  await dialog.getByRole('checkbox', { name: /value119/ }).check();
  await dialog.getByRole('button', { name: 'Add 101 parameters' }).waitFor();
});
