/** Rules that are tried on the past in their editor: when, on which objects, and what is shown of it. */
import { beforeAll, expect, test } from '@jest/globals';
import { createDeferred } from '../../../src/platform/ops/lifecycle.js';
import { useBrowser } from '../../support/browser/browser.js';
import { addColdStores, createIn, HOUR_MS, part, pick } from '../../support/browser/rule-form.js';
import { useService } from '../../support/fixture.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);
let ids: Map<string, string>;

const create = (store: string, fields: object): Promise<string> => createIn(service, store, fields);

beforeAll(async () => {
  ids = await addColdStores(service);
});

test('suggests few of many objects, and tries a rule on the one that is typed', async () => {
  const add = (nth: number) => service.admin('POST', 'objects', { id: `van-${nth}`, name: `Van ${nth}` });
  await Promise.all(Array.from({ length: 250 }, (_, nth) => add(nth)));
  const page = await browser.openAs('/rules/new');
  const form = page.locator('.rule-try');
  await form.getByText('Empty: 20 that it applies to').waitFor();
  const suggested = form.locator('datalist option');
  await until(async () => (await suggested.count()) === 200, 'the suggestions');
  await part(page, 'Condition').getByLabel('Parameter').fill('temperature');
  await form.getByLabel('Objects').fill('Van 249 (van-249)');
  await form.getByText('on 0 of 1 objects').waitFor();
  await eventually(async () => expect(await form.locator('.rule-tried h3 a').allTextContents()).toEqual(['Van 249']));
});

test('tries a rule as soon as it is complete, and again after each change', async () => {
  const page = await browser.openAs('/rules/new');
  await pick(part(page, 'It applies to').getByLabel('Objects'), 'Cold store 1 (cold-1)');
  const condition = part(page, 'Condition');
  await condition.getByLabel('Parameter').fill('temperature');
  await condition.getByLabel('Value').fill('9.2');
  const form = page.locator('.rule-try');
  await form.getByText('It would have been raised 2 times').waitFor();
  await condition.getByLabel('Value').fill('9.7');
  await form.getByText('It would have been raised once').waitFor();
  await condition.getByLabel('Value').fill('11');
  await form.getByText('It would not have been raised').waitFor();
  await form.getByText('The closest value was 10 °C').waitFor();
  await form.getByText('The rule has changed since').waitFor({ state: 'detached' });
});

test('tries a rule on the first object that sends what it reads, with one request at a time, and on more when asked', async () => {
  ids.set('attic', await create('objects', { id: 'attic', name: 'Attic' }));
  const page = await browser.openAs('/rules/new');
  const questions: { rule: { name?: string }; object: string }[] = [];
  let inFlight = 0;
  let mostInFlight = 0;
  const [held, release] = createDeferred<void>();
  await page.route(/\/api\/v1\/rules\/test$/, async (route) => {
    questions.push(route.request().postDataJSON());
    mostInFlight = Math.max(mostInFlight, ++inFlight);
    if (questions.length === 1) await held;
    const response = await route.fetch();
    inFlight--;
    await route.fulfill({ response });
  });
  const form = page.locator('.rule-try');
  for (const name of ['Attic (attic)', 'Cold store 1 (cold-1)', 'Cold store 2 (cold-2)'])
    await pick(part(page, 'It applies to').getByLabel('Objects'), name);
  await part(page, 'Condition').getByLabel('Parameter').fill('temperature');
  await part(page, 'Condition').getByLabel('Value').fill('8');
  await until(() => questions.length === 1, 'the first question');
  await page.getByLabel('For at least').fill('90 min');
  release();
  await form.getByText('It would have been raised once').waitFor();
  await form.getByText('Of 3 objects, one was tried.').waitFor();
  expect(new Set(questions.map(({ object }) => object))).toEqual(new Set([ids.get('cold-1')]));
  await page.getByLabel('Name').fill('Not asked again');
  await form.getByRole('button', { name: 'Try it on 3 objects' }).click();
  await form.getByText('on 1 of 3 objects').waitFor();
  const named = questions.filter(({ rule }) => rule.name === 'Not asked again');
  expect(named.map(({ object }) => object)).toEqual(['attic', 'cold-1', 'cold-2'].map((id) => ids.get(id)));
  expect(new Set(questions.map((one) => JSON.stringify(one))).size).toBe(questions.length);
  expect(mostInFlight).toBe(1);
});

test('draws what a rule reads, with thresholds of the object, and says values and states by their names', async () => {
  const model = await create('models', {
    name: 'Pump',
    data: {
      children: [
        { type: 'argument', id: 'heat', name: 'Bearing', unit: '°C' },
        {
          type: 'argument',
          id: 'mode',
          name: 'Mode',
          states: [
            { value: 1, label: 'Idle' },
            { value: 3, label: 'Running' },
          ],
        },
      ],
    },
  });
  const config = { limits: { heat: 60 } };
  const pump = await create('objects', { id: 'pump', name: 'Pump', model, config });
  const atMs = Date.now() - 5 * HOUR_MS;
  const packets = [50, 70, 50].map((heat, nth) => ({
    heat,
    mode: 3,
    engine: { rpm: nth },
    time: atMs + nth * HOUR_MS,
  }));
  await service.admin('POST', `objects/${pump}/packets`, packets);
  const hot = { param: 'heat', op: '>', value: { config: 'limits.heat' } };
  const running = { param: 'mode', op: '==', value: 3 };
  const when = { all: [hot, running, { expr: 'p.engine.rpm >= 1' }] };
  const id = await create('rules', { name: 'Bearing', select: { objects: ['pump'] }, when });
  const page = await browser.openAs(`/rules/${id}`);
  const form = page.locator('.rule-try');
  await form.getByText('It would have been raised once').waitFor();
  await eventually(async () =>
    expect(await form.locator('ol li').first().textContent()).toMatch(/for 1 h · Bearing 70 °C, Mode Running, /),
  );
  await form.getByRole('img', { name: 'Bearing: 50 – 70 °C' }).waitFor();
  await form.getByRole('figure').getByText('Bearing > 60 °C').waitFor();
  await eventually(async () => expect(await form.getByRole('img').count()).toBe(1));
  await form.getByRole('button', { name: 'engine.rpm' }).click();
  await form.getByRole('img', { name: 'engine.rpm: 0 – 2' }).waitFor();
  await eventually(async () => expect(await form.getByRole('img').count()).toBe(2));
  await page.goto(`${service.url}/objects/${pump}/history`);
  await create('rules', { name: 'Of its own', select: { objects: ['pump'] }, when: hot });
  await page.reload();
  await page.getByRole('list', { name: 'Thresholds of rules' }).getByText('> 60 °C').waitFor();
});

test('stays with the last result while what is typed cannot be evaluated', async () => {
  browser.expectErrors(/400/);
  const id = await create('rules', { name: 'By expression', when: { expr: 'p.temperature > 8.0' } });
  const page = await browser.openAs(`/rules/${id}`);
  const form = page.locator('.rule-try');
  await form.getByText('It would have been raised 2 times').waitFor();
  const refused = page.waitForResponse((answer) => answer.status() === 400);
  await part(page, 'Condition').getByLabel('Expression', { exact: true }).fill('p.temperature >');
  await refused;
  await form.getByText('The rule has changed since.').waitFor();
  await form.getByText('It would have been raised 2 times').waitFor();
  expect(await page.locator('[aria-invalid]').count()).toBe(0);
  await part(page, 'Condition').getByLabel('Expression', { exact: true }).fill('p.temperature > 11.0');
  await form.getByText('It would not have been raised').waitFor();
});

test('tries a rule between two moments that are long ago, and leads to the history of what it finds', async () => {
  const recorder = await create('objects', { id: 'recorder', name: 'Recorder' });
  const atMs = Date.parse('2013-12-16T12:00:00Z');
  const values = [90, 90, 50, 50, 90];
  const packets = values.map((heat, nth) => ({ heat, time: atMs + nth * HOUR_MS }));
  await service.admin('POST', `objects/${recorder}/packets`, packets);
  const page = await browser.openAs('/rules/new');
  await pick(part(page, 'It applies to').getByLabel('Objects'), 'Recorder (recorder)');
  const condition = part(page, 'Condition');
  await condition.getByLabel('Parameter').fill('heat');
  await condition.getByLabel('Comparison').selectOption({ label: 'is less than' });
  await condition.getByLabel('Value').fill('60');
  const form = page.locator('.rule-try');
  await form.getByLabel('Time').selectOption({ label: 'from … to …' });
  await form.getByLabel('From').fill('2013-12-01T00:00');
  await form.getByLabel('To').fill('2014-01-01T00:00');
  await form.getByText('It would have been raised once').waitFor();
  await form.getByText('5 packets were read.').waitFor();
  await form.locator('ol a').click();
  await page.getByRole('heading', { name: 'Recorder' }).waitFor();
  const { searchParams } = new URL(page.url());
  expect(Date.parse(String(searchParams.get('from')))).toBe(atMs + HOUR_MS);
  expect(Date.parse(String(searchParams.get('to')))).toBe(atMs + 5 * HOUR_MS);
});
