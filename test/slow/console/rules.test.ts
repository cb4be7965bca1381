/** The editor of rules: a rule made with forms, tried, saved, changed without losing what no form shows, switched off. */
import { beforeAll, expect, test } from '@jest/globals';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { effectsRun, useBrowser } from '../../support/browser/browser.js';
import { untilNotice } from '../../support/browser/notices.js';
import { addColdStores, createIn, part, pick } from '../../support/browser/rule-form.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
let ids: Map<string, string>;

const create = (store: string, fields: object): Promise<string> => createIn(service, store, fields);

const ruleNamed = async (name: string): Promise<Record<string, unknown>> => {
  const { body } = await service.admin('GET', `rules?where.name=${encodeURIComponent(name)}`);
  return body[0];
};

beforeAll(async () => {
  ids = await addColdStores(service);
});

test('makes a rule with forms, says what it would have done, and where the server refuses it', async () => {
  browser.expectErrors(/400/);
  const page = await browser.openAs('/alarms');
  await page.getByRole('link', { name: 'Rules' }).click();
  await page.getByText('Without a rule, nobody is told of anything.').waitFor();
  await page.getByRole('link', { name: 'New rule' }).click();
  const applies = part(page, 'It applies to');
  for (const name of ['Cold store 1 (cold-1)', 'Cold store 2 (cold-2)'])
    await pick(applies.getByLabel('Objects'), name);
  await eventually(async () =>
    expect(await applies.locator('.picked li span').allTextContents()).toEqual(['Cold store 1', 'Cold store 2']),
  );
  const condition = part(page, 'Condition');
  const known = () =>
    condition
      .locator('datalist option')
      .evaluateAll((all) => all.map((one) => `${(one as unknown as { value: string }).value}: ${one.textContent}`));
  // The model may come after the objects.
  await eventually(async () => expect(await known()).toEqual(['inner.door: ', 'temperature: Air, °C']));
  await condition.getByLabel('Value').fill('8');
  // Nothing is asked before the rule is complete; whoever asks anyway is told what is missing.
  await page.getByRole('button', { name: 'Try it on 2 objects' }).click();
  // The refusal stands at the field, which has the focus.
  const parameter = condition.getByLabel('Parameter');
  await page.locator('input[name="when.param"][aria-invalid]').waitFor();
  await eventually(async () =>
    expect(await parameter.evaluate((one) => one === one.ownerDocument.activeElement)).toBe(true),
  );
  await parameter.fill('temperature');
  const outcome = page.getByRole('status').filter({ hasText: 'It would' });
  await outcome.getByText('It would have been raised 2 times').waitFor();
  await outcome.getByText('in the last 7 days, on 1 of 2 objects. 11 packets were read.').waitFor();
  // Only of the object that would have called.
  await outcome.getByRole('img', { name: 'Air: 4 – 10 °C' }).waitFor();
  await outcome.getByRole('figure').getByText('Air > 8 °C').waitFor();
  await eventually(async () => expect(await outcome.getByRole('img').count()).toBe(1));
  const tried = page.locator('.rule-tried > li');
  await eventually(async () => expect(await tried.nth(0).locator('h3').textContent()).toBe('Cold store 12 times'));
  await eventually(async () =>
    expect(await tried.nth(0).locator('ol li').first().textContent()).toMatch(/for 2 h · Air 9 °C$/),
  );
  await eventually(async () =>
    expect(await tried.nth(1).textContent()).toMatch(/Air > 8 °C: never held\. The closest value was 7\.5 °C, on /),
  );
  expect((await service.admin('GET', 'rules')).body).toEqual([]);
  await page.getByLabel('For at least').fill('90 min');
  await outcome.getByText('It would have been raised once').waitFor();
  await page.getByLabel('Name').fill('Too warm');
  await page.getByLabel('Severity').selectOption('critical');
  // Neither decides when it is raised.
  await page.getByText('The rule has changed since').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Too warm' }).waitFor();
  expect(await ruleNamed('Too warm')).toMatchObject({
    severity: 'critical',
    active: true,
    select: { objects: [ids.get('cold-1'), ids.get('cold-2')] },
    when: { param: 'temperature', op: '>', value: 8 },
    for: '90 min',
  });
});

test('combines conditions and actions, hours, reminders and steps', async () => {
  const users = (await service.admin('GET', 'users')).body as { _id: string; login: string }[];
  const admin = users[0] as { _id: string; login: string };
  const page = await browser.openAs('/rules/new');
  await page.getByLabel('Name').fill('All of it');
  await part(page, 'Condition').getByLabel('Parameter').fill('temperature');
  await part(page, 'Condition').getByLabel('Comparison').selectOption('between');
  await part(page, 'Condition').getByLabel('From').fill('1.5');
  await part(page, 'Condition').getByLabel('To').fill('20');
  await part(page, 'Condition').getByLabel('What is watched').first().selectOption('all');
  await part(page, 'Condition 2').getByLabel('What is watched').selectOption('offline');
  await page.getByRole('button', { name: 'Add a condition' }).click();
  await part(page, 'Condition 3').getByLabel('What is watched').selectOption('silent');
  await part(page, 'Condition 3').getByLabel('No data for').fill('5 min');
  await page.getByRole('button', { name: 'Add an action' }).click();
  await pick(part(page, 'Action 1').getByLabel('Users'), admin.login);
  await page.getByRole('button', { name: 'Add an action' }).click();
  await part(page, 'Action 2').getByLabel('What happens').selectOption('command');
  await part(page, 'Action 2').getByLabel('Command').fill('defrost');
  await part(page, 'Action 2').getByLabel('Arguments (JSON)').fill('{"minutes": 5');
  await page.getByRole('button', { name: 'Save' }).click();
  await part(page, 'Action 2').getByText('Expected JSON:').waitFor();
  await part(page, 'Action 2').getByLabel('Arguments (JSON)').fill('{"minutes": 5}');
  await page.getByText('More: when it ends').click();
  await page.getByLabel('Only at certain hours').check();
  await part(page, 'Hours').getByRole('button', { name: 'Fri' }).click();
  await part(page, 'Hours').getByLabel('Time zone').fill('Europe/Berlin');
  await page.getByLabel('It ends by a condition of its own').check();
  await part(page, 'It ends when').getByLabel('What is watched').first().selectOption('online');
  await page.getByLabel('Remind every').fill('30 min');
  await page.getByRole('button', { name: 'Add a step' }).click();
  await pick(part(page, 'Step 1').getByLabel('Users'), admin.login);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'All of it' }).waitFor();
  expect(await ruleNamed('All of it')).toMatchObject({
    when: { all: [{ param: 'temperature', op: 'between', value: [1.5, 20] }, { online: false }, { silent: '5 min' }] },
    then: [{ notify: { users: [admin._id] } }, { command: 'defrost', params: { minutes: 5 } }],
    schedule: { days: ['mon', 'tue', 'wed', 'thu'], from: '08:00', to: '18:00', tz: 'Europe/Berlin' },
    clear: { online: true },
    remind: '30 min',
    escalate: [{ after: '15 min', then: [{ notify: { users: [admin._id] } }] }],
  });
});

test('picks a user whose name was typed before the users had come, and saves nothing while a name is unknown', async () => {
  const users = (await service.admin('GET', 'users')).body as { _id: string; login: string }[];
  const admin = users[0] as { _id: string; login: string };
  const page = await browser.openAs('/');
  const [held, release] = createDeferred<void>();
  let asked = 0;
  await page.route(/\/api\/v1\/users(\?|$)/, async (route) => {
    asked++;
    await held;
    return route.continue();
  });
  await page.goto(`${service.url}/rules/new`);
  await page.getByLabel('Name').fill('Told');
  await part(page, 'Condition').getByLabel('Parameter').fill('temperature');
  await part(page, 'Condition').getByLabel('Value').fill('8');
  await page.getByRole('button', { name: 'Add an action' }).click();
  const field = part(page, 'Action 1').getByLabel('Users');
  await field.fill(admin.login);
  await page.getByLabel('Name').focus();
  await until(() => asked > 0, 'the page to ask for the users');
  release();
  const picked = part(page, 'Action 1').locator('.picked li span');
  await eventually(async () => expect(await picked.allTextContents()).toEqual([admin.login]));
  await field.fill('nobody of this name');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('input:focus:invalid').waitFor();
  expect(await ruleNamed('Told')).toBeUndefined();
  await field.fill('');
  // The list of the dry run is no part of the rule.
  await page.locator('.rule-try .pick-list input').fill('no object of this name');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Told' }).waitFor();
  expect(await ruleNamed('Told')).toMatchObject({ then: [{ notify: { users: [admin._id] } }] });
});

test('keeps what no form shows, removes what is emptied, and names the place of a refusal', async () => {
  browser.expectErrors(/400/);
  const when = {
    any: [
      { param: 'a', op: 'in', value: ['x, y', '12', 3, true] },
      { param: 'b', op: 'between', value: [1, { config: 'most' }] },
      { param: 'c', op: '>', value: { config: 'limit' } },
      { expr: 'p.speed > 90' },
    ],
  };
  const id = await create('rules', { name: 'Kept', when, for: 600_000, remark: { by: 'us' } });
  const page = await browser.openAs(`/rules/${id}`);
  await page.getByLabel('For at least').fill('');
  await part(page, 'Condition 4').getByLabel('Expression', { exact: true }).fill('p.speed > ');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('textarea[name="when.any[3].expr"][aria-invalid]').waitFor();
  await part(page, 'Condition 4').getByLabel('Expression', { exact: true }).fill('p.speed > 95');
  await page.getByRole('button', { name: 'Save' }).click();
  await untilNotice(page, 'Saved');
  const saved = await ruleNamed('Kept');
  expect(saved).toMatchObject({ when: { any: [...when.any.slice(0, 3), { expr: 'p.speed > 95' }] } });
  expect(saved).toMatchObject({ for: null, remark: { by: 'us' } });
  await page.getByRole('button', { name: 'JSON' }).click();
  const json = page.getByLabel('The rule as JSON');
  await eventually(async () =>
    expect(JSON.parse(await json.inputValue())).toMatchObject({ name: 'Kept', remark: { by: 'us' } }),
  );
});

test('keeps what is typed while a change is on its way', async () => {
  const id = await create('rules', { name: 'Typed', when: { param: 'a', op: '>', value: 1 } });
  const page = await browser.openAs(`/rules/${id}`);
  const [held, release] = createDeferred<void>();
  let sent = 0;
  await page.route(/\/api\/v1\/rules\/[0-9a-f]{24}$/, async (route) => {
    if (route.request().method() !== 'PATCH') return route.continue();
    sent++;
    await held;
    return route.continue();
  });
  const name = page.getByLabel('Name');
  await name.fill('Typed first');
  await page.getByRole('button', { name: 'Save' }).click();
  await until(() => sent === 1, 'the change');
  await name.fill('Typed meanwhile');
  release();
  await untilNotice(page, 'Saved');
  await effectsRun(page);
  await eventually(async () => expect(await name.inputValue()).toBe('Typed meanwhile'));
  await page.getByRole('button', { name: 'Save' }).click();
  await until(async () => (await ruleNamed('Typed meanwhile')) !== undefined, 'what was typed meanwhile is stored');
});

test('lists rules with what they watch and their open alarms, and switches them off', async () => {
  await create('rules', {
    name: 'Truck is fast',
    select: { objects: ['truck-1'] },
    when: { param: 'speed', op: '>', value: 90 },
    for: 0,
  });
  await service.admin('POST', 'objects/truck-1/packets', { speed: 120 });
  const page = await browser.openAs('/alarms');
  await page.locator('.alarm-row', { hasText: 'Truck is fast' }).click();
  await page.getByRole('complementary').getByRole('link', { name: 'Rule' }).click();
  await page.getByRole('heading', { name: 'Truck is fast' }).waitFor();
  await page.goto(`${service.url}/rules`);
  const row = page.getByRole('row', { name: /Truck is fast/ });
  await row.getByText('speed is more than 90').waitFor();
  await row.getByText('Truck 1').waitFor();
  await row.getByRole('link', { name: '1', exact: true }).waitFor();
  await row.getByRole('button', { name: 'Deactivate' }).click();
  await row.getByRole('button', { name: 'Activate', exact: true }).waitFor();
  expect(await ruleNamed('Truck is fast')).toMatchObject({ active: false });
  await row.getByRole('button', { name: 'Remove Truck is fast' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await row.waitFor({ state: 'detached' });
  expect(await ruleNamed('Truck is fast')).toBeUndefined();
});
