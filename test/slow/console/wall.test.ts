/** Walls: saved views in turns on a screen without a login, by a token that reads and nothing else. */
import { beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import type { Page } from 'playwright-core';
import { OPERATOR_ROLE_ID } from '../../../src/core/builtin.js';
import { entityOf } from '../../support/answers.js';
import { animationsEnd, findAxe } from '../../support/browser/axe.js';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { createPerson } from '../../support/callers.js';
import { useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);
let north: string;

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

beforeAll(async () => {
  north = await create('groups', { name: 'North' });
  for (const [name, label, temperature] of [
    ['Cold one', 'cold', 3],
    ['Warm one', 'warm', 31],
  ] as const) {
    await create('objects', { id: name, name, group: north, labels: [label] });
    await service.admin('POST', `objects/${encodeURIComponent(name)}/packets`, { temperature });
  }
});

const names = (page: Page): Promise<string[]> => page.locator('.object-rows tbody tr:not(.spare)').allTextContents();

async function hasNoBarriers(page: Page): Promise<void> {
  await page.evaluate(await findAxe());
  await animationsEnd(page);
  const found = (await page.evaluate(`axe.run(document, { resultTypes: ['violations'] })`)) as {
    violations: unknown[];
  };
  expect(found.violations).toEqual([]);
}

/** A person with two views, and the address of a wall that the console made of them. */
async function makeWall(): Promise<{ address: string; person: Awaited<ReturnType<typeof createPerson>> }> {
  const person = await createPerson(service, { role: OPERATOR_ROLE_ID, group: north });
  for (const label of ['cold', 'warm']) {
    const query = `view=table&columns=name,.temperature&label=${label}`;
    entityOf(await person.call('POST', 'views', { name: `All ${label}`, query }));
  }
  const page = await browser.openAs('/?view=table', person);
  await page.getByRole('button', { name: 'Views', exact: true }).click();
  await page.getByRole('button', { name: 'Show on a screen' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('checkbox', { name: 'All cold' }).check();
  await dialog.getByRole('checkbox', { name: 'All warm' }).check();
  await dialog.getByLabel('Seconds for each view').fill('5');
  await hasNoBarriers(page);
  await dialog.getByRole('button', { name: 'Make the address' }).click();
  const address = (await dialog.locator('.copy-box code').textContent()) as string;
  await dialog.getByRole('button', { name: 'Done' }).click();
  return { address, person };
}

test('shows views in turns and live, without a login, and sends its token in no address', async () => {
  const { address, person } = await makeWall();
  const [, token = ''] = address.split('#');
  const page = await browser.open('/', { viewport: { width: 1600, height: 900 } });
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(address);
  await eventually(async () => expect(await names(page)).toEqual([expect.stringContaining('Cold one')]));
  await page.getByRole('heading', { level: 1, name: 'All cold' }).waitFor();
  expect(await page.locator('.top, .side-head').filter({ visible: true }).count()).toBe(0);
  await page.locator('main [inert]').waitFor();
  await hasNoBarriers(page);
  await eventually(async () => expect(await names(page)).toEqual([expect.stringContaining('Warm one')]));
  await service.admin('POST', 'objects/Warm%20one/packets', { temperature: 57 });
  await service.admin('POST', 'objects/Cold%20one/packets', { temperature: -8 });
  await eventually(async () => expect((await names(page)).join()).toContain('57'));
  await eventually(async () => expect((await names(page)).join()).toMatch(/[-−]8/));
  expect(asked.length).toBeGreaterThan(0);
  expect(asked.filter((url) => url.includes(token))).toEqual([]);
  // Tiles have lines of the last hours.
  const { body: warm } = await service.admin('GET', 'objects/Warm%20one');
  const series = `series?objects=${warm._id}&params=temperature&fn=last&points=10&from=${Date.now() - 3_600_000}`;
  expect(await service.as(token)('GET', series)).toMatchObject({ status: 200 });
  // It only reads.
  const call = service.as(token);
  expect((await call('POST', 'objects', { name: 'no' })).status).toBe(403);
  for (const path of ['users', 'objects/Warm%20one/commands', 'objects/Warm%20one/notes', 'account/tokens']) {
    expect([path, (await call('GET', path)).status]).toEqual([path, 403]);
  }
  browser.expectErrors(/401|WebSocket/);
  const { body } = await person.call('GET', 'account/tokens');
  const own = (body as { _id: string; name: string }[]).find(({ name }) => name === 'Screen: All cold, All warm');
  expect((await person.call('DELETE', `account/tokens/${own?._id}`)).status).toBe(200);
  await page.getByText('This address is no longer valid').waitFor();
});

test('moves a token out of the query, follows a view that changes, is removed and comes back', async () => {
  const { address, person } = await makeWall();
  const [path = '', token = ''] = address.split('#');
  const [id = ''] = path.split('/').at(-1)?.split(',') ?? [];
  const page = await browser.open(`/wall/${id},${id}?every=5&token=${token}`);
  await eventually(async () => expect(await names(page)).toEqual([expect.stringContaining('Cold one')]));
  expect(page.url()).toBe(`${service.url}/wall/${id},${id}?every=5#${token}`);
  entityOf(
    await person.call('PATCH', `views/${id}`, {
      name: 'Changed',
      query: 'view=table&columns=name,.temperature&label=warm',
    }),
  );
  await eventually(async () => expect(await names(page)).toEqual([expect.stringContaining('Warm one')]));
  await eventually(async () => expect(await page.title()).toBe('Changed · Vigil'));
  browser.expectErrors(/404/);
  const views = service.client.db().collection('views');
  const document = await views.findOneAndDelete({ _id: new ObjectId(id) });
  await page.getByText('These views are not there any more').waitFor();
  if (document !== null) await views.insertOne(document);
  await eventually(async () => expect(await names(page)).toEqual([expect.stringContaining('Warm one')]));
});

test.each(['/wall/6b0056113e4a4e23ba304e0f', '/wall/6b0056113e4a4e23ba304e0f#nonsense'])(
  'says that %s is not valid, and asks for no login',
  async (path) => {
    browser.expectErrors(/401/);
    const page = await browser.open(path);
    await page.getByText('This address is no longer valid').waitFor();
    expect(await page.locator('input').count()).toBe(0);
  },
);

test('says since when there is no connection, and goes on when there is one', async () => {
  const { address } = await makeWall();
  const page = await browser.open('/');
  await page.goto(address);
  await eventually(async () => expect(await names(page)).toHaveLength(1));
  browser.expectErrors(/ERR_INTERNET_DISCONNECTED/);
  await page.context().setOffline(true);
  await page.getByText('No connection since').waitFor();
  expect(await names(page)).toHaveLength(1);
  await page.context().setOffline(false);
  await page.getByText('No connection since').waitFor({ state: 'detached' });
  await service.admin('POST', 'objects/Cold%20one/packets', { temperature: 11 });
  await service.admin('POST', 'objects/Warm%20one/packets', { temperature: 11 });
  await eventually(async () => expect((await names(page)).join()).toContain('11'));
});
