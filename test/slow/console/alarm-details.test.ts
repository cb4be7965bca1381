/** What the console says of an alarm: what was read, where the object was, and whom it was told. */
import { expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID } from '../../../src/core/builtin.js';
import { entityOf } from '../../support/answers.js';
import { useBrowser } from '../../support/browser/browser.js';
import { createUser } from '../../support/browser/users.js';
import { createPerson } from '../../support/callers.js';
import { useService } from '../../support/fixture.js';
import { useReceiver } from '../../support/receiver.js';
import { until } from '../../support/until.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8' } });
const receiver = useReceiver();
const browser = useBrowser(service);

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

const send = async (id: string, packet: object): Promise<unknown> =>
  entityOf(await service.admin('POST', `objects/${id}/packets`, packet));

const alarmsOf = async (object: string): Promise<Record<string, unknown>[]> =>
  (await service.admin('GET', `alarms?where.object=${object}`)).body;

/** A user whose messages are received, for `then` of a rule. */
async function createNotified(topic: string): Promise<{ login: string; then: object[] }> {
  const person = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
  const channels = [{ ntfy: `${receiver.url}${topic}` }];
  expect((await person.call('PATCH', 'account', { channels })).status).toBe(200);
  return { login: person.login, then: [{ notify: { users: [person.id] } }] };
}

test('says what an alarm read with the names and units of the model, where the object was, and whom it was told', async () => {
  const data = { children: [{ id: 'pressure', name: 'Steam', type: 'argument', unit: 'bar' }] };
  const model = await create('models', { name: 'Boiler', data });
  const id = await create('objects', { id: 'boiler', name: 'Boiler 7', model });
  const { login, then } = await createNotified('steam');
  const when = { param: 'pressure', op: '>', value: 9 };
  await create('rules', { name: 'Pressure', select: { objects: ['boiler'] }, when, then });
  await send('boiler', { pressure: 66.25, lat: 48.26, lon: 11.434 });
  await until(async () => Array.isArray((await alarmsOf(id))[0]?.notified), 'the alarm to be told');
  // No other page has asked for the model.
  const page = await browser.openAs('/alarms');
  const row = page.locator('.alarm-row', { hasText: 'Boiler 7' });
  await row.getByText('Steam 66.25 bar').waitFor();
  await row.locator('.alarm-place', { hasText: 'in Dachau' }).waitFor();
  await row.locator('.alarm-open').click();
  const detail = page.getByRole('complementary', { name: 'Alarm' });
  await detail.getByText('48.26000, 11.43400').waitFor();
  await detail.getByText(`${login} told by ntfy`).waitFor();
});

test('says in the reasons of an alarm what an expression read, by the names of the parameters', async () => {
  const data = { children: [{ id: 'fuel', name: 'Tank', type: 'argument', unit: 'l' }] };
  const model = await create('models', { name: 'Tanker', data });
  await create('objects', { id: 'tanker', name: 'Tanker 3', model });
  const when = { expr: 'p.fuel < last.fuel - 10 && p.engine.rpm == 0' };
  await create('rules', { name: 'Fuel theft', select: { objects: ['tanker'] }, when });
  await send('tanker', { fuel: 90, engine: { rpm: 0 } });
  await send('tanker', { fuel: 60, engine: { rpm: 0 } });
  const page = await browser.openAs('/alarms');
  await page.locator('.alarm-row', { hasText: 'Tanker 3' }).locator('.alarm-open').click();
  await page.locator('.why').getByText('was Tank 60 l, engine.rpm 0').waitFor();
});

test('returns to the row with the focus when a note was added or an alarm acknowledged with the keyboard', async () => {
  await create('objects', { id: 'oven', name: 'Oven' });
  await create('rules', { name: 'Hot', select: { objects: ['oven'] }, when: { param: 'heat', op: '>', value: 9 } });
  await send('oven', { heat: 12 });
  const page = await browser.openAs('/alarms');
  const row = page.locator('.alarm-row', { hasText: 'Oven' });
  await row.locator('.alarm-open').click();
  const detail = page.getByRole('complementary', { name: 'Alarm' });
  for (const [button, said] of [
    ['Add note', 'Seen'],
    ['Acknowledge', 'Acknowledged by admin'],
  ] as const) {
    if (button === 'Add note') await detail.getByLabel('Note').fill(said);
    await detail.getByRole('button', { name: button }).focus();
    await page.keyboard.press('Enter');
    await detail.locator('.alarm-steps').getByText(said).waitFor();
    await row.locator('[aria-pressed=true]:focus').waitFor();
  }
});

test('shows alarms without the names of a model to those who may not read it', async () => {
  const id = await create('objects', { id: 'vat', name: 'Vat' });
  const when = { param: 'level', op: '>', value: 9 };
  await create('rules', { name: 'Level', select: { objects: ['vat'] }, when });
  await send('vat', { level: 12 });
  await until(async () => (await alarmsOf(id)).length === 1, 'the alarm');
  const credentials = ['GET /objects', 'GET /objects/:id', 'GET /alarms', 'GET /alarms/:id'];
  await service.admin('POST', 'roles', { name: 'modelless', credentials });
  // A request for what is not permitted would be an error of the page.
  const page = await browser.openAs('/alarms', await createUser(service, 'modelless'));
  await page.locator('.alarm-row', { hasText: 'Vat' }).getByText('level 12').waitFor();
});

test('says that nobody is told because the gateway of the object is offline', async () => {
  const gateway = await create('objects', { id: 'gateway', name: 'Gate 4' });
  const id = await create('objects', {
    id: 'probe',
    name: 'Probe',
    config: { parent: 'gateway' },
  });
  const { then } = await createNotified('probe');
  await create('rules', { name: 'Silent', select: { objects: ['probe'] }, when: { online: false }, then });
  await send('gateway', { online: false });
  await send('probe', { online: false });
  await until(async () => (await alarmsOf(id))[0]?.suppressedBy === gateway, 'the alarm to be suppressed');
  const page = await browser.openAs('/alarms');
  await page.locator('.alarm-row', { hasText: 'Probe' }).locator('.alarm-open').click();
  await page.getByText('Nobody is told while its gateway Gate 4 is offline.').waitFor();
});
