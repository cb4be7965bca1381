/** The page that adds an object: the program that it shows, the group of the object, and the simulated drive. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { typeId } from '../../support/browser/object-form.js';
import { useService } from '../../support/fixture.js';
import { until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

let device: ChildProcess | null = null;
let folder: string | null = null;
afterEach(async () => {
  device?.kill();
  if (folder !== null) await rm(folder, { recursive: true });
  [device, folder] = [null, null];
});

async function create(page: Page, id: string): Promise<void> {
  await typeId(page, id);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('button', { name: 'Simulate a drive' }).waitFor();
}

/** Runs the program as it is shown, with the packages of this repository, at the port that the service was given. */
async function runProgram(text: string): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'vigil-snippet-'));
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
  const file = join(folder, 'device.mjs');
  await writeFile(file, text.replace(/mqtt:[^']+/, service.service.mqttUrl as string));
  device = spawn(process.execPath, [file], { stdio: 'inherit' });
}

test('shows a Node.js program that sends a position and carries out commands', async () => {
  const page = await browser.openAs('/welcome');
  await create(page, 'programmed');
  await page.getByText('valid until').waitFor();
  await page.getByRole('button', { name: 'Node.js' }).click();
  await runProgram((await page.getByRole('region', { name: 'Node.js' }).textContent()) ?? '');
  await page.getByText('The first packet is here').waitFor();
  const { body: object } = await service.admin('GET', 'objects/programmed');
  expect(object.state).toMatchObject({ temperature: 21.5, lat: 48.137, lon: 11.575 });
  await service.admin('POST', 'objects/programmed/commands/lock', { door: 1 });
  await until(async () => {
    const { body } = await service.admin('GET', 'objects/programmed/commands?status=done');
    return body.length === 1;
  }, 'the command is done');
});

test('shows an Arduino program that sends a position and takes commands', async () => {
  const page = await browser.openAs('/welcome');
  await create(page, 'soldered');
  await page.getByRole('button', { name: 'Arduino' }).click();
  const text = (await page.getByRole('region', { name: 'Arduino' }).textContent()) ?? '';
  expect(text).toContain('mqtt.subscribe("base/commands/+", 1)');
  expect(text).toContain('"{\\"temperature\\": 21.5, \\"lat\\": 48.137, \\"lon\\": 11.575}"');
});

test('says that a drive goes on which was started before, and stops it', async () => {
  const page = await browser.openAs('/welcome');
  await create(page, 'driven');
  await page.getByRole('button', { name: 'Simulate a drive' }).click();
  await page.getByText('The first packet is here').waitFor();
  await page.getByRole('link', { name: 'Log' }).click();
  await page.waitForURL(/\/log/);
  await page.goBack();
  await page.getByText('The simulation of driven is running').waitFor();
  await page.getByRole('button', { name: 'Stop the simulation' }).click();
  await page.getByText('The simulation of driven is running').waitFor({ state: 'detached' });
});

test('creates an object in a group below the own one', async () => {
  const page = await browser.openAs('/welcome');
  await page.getByLabel('Id', { exact: true }).waitFor();
  expect(await page.getByLabel('Group').count()).toBe(0);
  const { body: group } = await service.admin('POST', 'groups', { name: 'Harbour' });
  await page.reload();
  await page.getByLabel('Group').selectOption({ label: 'Harbour' });
  await create(page, 'grouped');
  expect((await service.admin('GET', 'objects/grouped')).body.group).toBe(group._id);
});

test('shows an object as online only until its device has been silent for as long as its form says', async () => {
  const page = await browser.openAs('/welcome');
  await page.getByLabel('Offline after').fill('1 s');
  await create(page, 'silent');
  expect((await service.admin('GET', 'objects/silent')).body.config).toEqual({ offlineAfter: '1 s' });
  await page.goto(`${service.url}/?search=silent`);
  await page.locator('.row', { hasText: 'silent' }).waitFor();
  await until(async () => {
    await service.admin('POST', 'objects/silent/packets', { level: 1 });
    return page.locator('.row .dot.online').isVisible();
  }, 'the row is online while packets arrive');
  await page.locator('.row .dot.offline').waitFor();
});

test.each([
  ['New token', undefined, '10 min'],
  ['New MQTT password', undefined, '10 min'],
  ['New token', '2 h', '2 h'],
  ['New MQTT password', null, null],
])('sets after which silence an object is offline with a %s, if it was %s before', async (button, before, after) => {
  const id = `silent-${button}-${before}`.toLowerCase().replaceAll(' ', '-');
  const config = before === undefined ? {} : { config: { offlineAfter: before } };
  const { body: object } = await service.admin('POST', 'objects', { id, name: id, ...config });
  const page = await browser.openAs(`/objects/${object._id}/settings`);
  const field = page.getByLabel('Offline after');
  await field.waitFor();
  await page.getByRole('button', { name: button }).click();
  await page.getByText('Copy it now.').waitFor();
  await until(async () => (await field.inputValue()) === (after ?? ''), `${after} in the form`);
  expect((await service.admin('GET', `objects/${id}`)).body.config?.offlineAfter ?? null).toBe(after);
});
