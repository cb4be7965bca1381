/** Sources in the console. */
import { expect, test } from '@jest/globals';
import { SOURCE_KIND_NAMES, SOURCE_KINDS } from '../../../src/core/source-kinds.js';
import { useBrowser } from '../../support/browser/browser.js';
import { untilNotice } from '../../support/browser/notices.js';
import { useService } from '../../support/fixture.js';
import { sendHttp } from '../../support/http-call.js';
import { eventually, until } from '../../support/until.js';

const service = useService();
const browser = useBrowser(service);

test('makes a source, shows its address once, adds an unknown device, and sees the first packet', async () => {
  browser.expectErrors(/400/);
  const page = await browser.openAs('/data/sources');
  await page.getByRole('button', { name: 'New' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('Phones');
  await dialog.getByLabel('id', { exact: true }).fill('phones');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText('required').waitFor();
  await dialog.getByText('Phones with Traccar Client').click();
  await eventually(async () =>
    expect(await dialog.getByRole('radio', { name: 'Traccar Client, OsmAnd' }).isChecked()).toBe(true),
  );
  await dialog.getByRole('button', { name: 'Save' }).click();
  const address = (await dialog.getByLabel('Address for the sender').textContent()) as string;
  expect(address).toMatch(new RegExp(`^${service.url}/api/v1/in/phones/[\\w-]{32}$`));
  await dialog.getByRole('img', { name: 'QR code of the address' }).waitFor();
  await dialog.getByText('Waiting for the first packet').waitFor();

  const path = `${address.slice(service.url.length)}?id=jane&lat=52.5&lon=13.4`;
  const send = () => sendHttp(service.url, { method: 'GET', path, headers: {} });
  expect((await send()).status).toBe(404);
  await dialog.getByRole('button', { name: 'Add jane' }).click();
  await untilNotice(page, 'jane is an object now');
  await dialog.getByText('unknown device').waitFor();
  expect((await send()).status).toBe(200);
  await dialog.getByText('The first packet has arrived.').waitFor();
  expect((await service.admin('GET', 'objects/jane')).body.state).toMatchObject({ lat: 52.5, lon: 13.4 });

  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('row', { name: 'Phones' }).getByRole('button', { name: 'Connect' }).click();
  await dialog.getByText('The key is shown only when it is made').waitFor();
  await dialog.getByRole('button', { name: 'New key' }).click();
  await page.getByRole('dialog', { name: 'New key' }).getByRole('button', { name: 'Make it' }).click();
  await eventually(async () =>
    expect(await dialog.getByLabel('Address for the sender').textContent()).not.toBe(address),
  );
  await until(async () => (await send()).status === 401, 'the old key is refused');
});

test('offers the kinds of sources as cards of one group of radio buttons, by mouse and by keyboard', async () => {
  const page = await browser.openAs('/data/sources');
  await page.getByRole('button', { name: 'New' }).click();
  const kinds = page.getByRole('group', { name: 'What sends' });
  await kinds.getByRole('radio').first().waitFor();
  await eventually(async () => expect(await kinds.getByRole('radio').count()).toBe(SOURCE_KIND_NAMES.length));
  for (const title of Object.values(SOURCE_KINDS)) await kinds.getByText(title, { exact: true }).waitFor();
  await kinds.getByText(SOURCE_KINDS.owntracks, { exact: true }).click();
  const chosen = async (): Promise<string | null> =>
    await kinds.getByRole('radio', { checked: true }).locator('..').textContent();
  expect(await chosen()).toContain(SOURCE_KINDS.owntracks);
  await page.keyboard.press('ArrowRight');
  expect(await chosen()).toContain(SOURCE_KINDS.traccar);
});

test('shows of each kind only the fields that mean something there', async () => {
  const page = await browser.openAs('/data/sources');
  await page.getByRole('button', { name: 'New' }).click();
  const dialog = page.getByRole('dialog');
  const fields: Record<string, readonly string[]> = {
    'Time zone': ['json', 'osmand'],
    'Where the values are (JSON)': ['json', 'owntracks', 'chirpstack', 'telegraf'],
    'Address for commands': ['traccar', 'chirpstack', 'ttn'],
    'Key for commands': ['traccar', 'chirpstack', 'ttn'],
  };
  for (const kind of SOURCE_KIND_NAMES) {
    await dialog.getByText(SOURCE_KINDS[kind], { exact: true }).click();
    const expected = Object.entries(fields).map(([label, kinds]) => [label, kinds.includes(kind) ? 1 : 0]);
    await eventually(async () => {
      const counts = Object.keys(fields).map(async (label) => [label, await dialog.getByLabel(label).count()]);
      expect(await Promise.all(counts)).toEqual(expected);
    });
  }
});

test('sets where commands go, of the kinds that take them, with a key that is bound to the host', async () => {
  const page = await browser.openAs('/data/sources');
  await page.getByRole('button', { name: 'New' }).click();
  const dialog = page.getByRole('dialog');
  const address = dialog.getByLabel('Address for commands');
  const key = dialog.getByLabel('Key for commands');
  await dialog.getByText(SOURCE_KINDS.osmand, { exact: true }).click();
  await eventually(async () => expect([await address.count(), await key.count()]).toEqual([0, 0]));
  await dialog.getByText(SOURCE_KINDS.traccar, { exact: true }).click();
  await dialog.getByLabel('Name').fill('Trackers');
  await dialog.getByLabel('id', { exact: true }).fill('trackers');
  await address.fill('https://traccar.example.com/a');
  await key.fill('first');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByLabel('Address for the sender').waitFor();
  const stored = () => service.client.db().collection('sources').findOne({ id: 'trackers' });
  expect(await stored()).toMatchObject({
    commandUrl: 'https://traccar.example.com/a',
    _commandKey: { origin: 'https://traccar.example.com', key: 'first' },
  });
  await dialog.getByRole('button', { name: 'Close' }).click();

  const edit = () => page.getByRole('row', { name: 'Trackers' }).getByRole('button', { name: 'Edit' }).click();
  await edit();
  await eventually(async () =>
    expect([await address.inputValue(), await key.inputValue()]).toEqual(['https://traccar.example.com/a', '']),
  );
  // The key alone: its address goes with it.
  await key.fill('second');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await until(async () => (await stored())?._commandKey.key === 'second', 'the new key');
  await edit();
  await address.fill('https://elsewhere.example.com');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await until(async () => (await stored())?.commandUrl === 'https://elsewhere.example.com', 'the new address');
  // The key stays that of the former host, and is sent nowhere.
  expect((await stored())?._commandKey.origin).toBe('https://traccar.example.com');
});
