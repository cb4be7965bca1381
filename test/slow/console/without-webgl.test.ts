/** The console in a browser that cannot draw with WebGL: everything but the maps. */
import { beforeAll, expect, test } from '@jest/globals';
import { useBrowser, WITHOUT_MAPS } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';

const service = useService();
const browser = useBrowser(service, WITHOUT_MAPS);
let id: string;

beforeAll(async () => {
  id = (await service.admin('POST', 'objects', { id: 'plain', name: 'Plain' })).body._id;
  const packets = [0, 1, 2].map((minute) => ({
    time: Date.now() - minute * 60_000,
    lat: 48 + minute,
    lon: 11,
    speed: 1,
  }));
  await service.admin('POST', 'objects/plain/packets', packets);
  await service.admin('POST', 'geofences', { name: 'Yard', geometry: { type: 'Point', coordinates: [11, 48] } });
});

test('lists, selects and follows objects, with a sentence in place of the map', async () => {
  const page = await browser.openAs('/');
  expect(await page.evaluate('document.createElement("canvas").getContext("webgl2") === null')).toBe(true);
  await page.getByText('The map needs WebGL, which this browser does not offer.').waitFor();
  expect(await page.getByRole('button', { name: 'Zoom in' }).count()).toBe(0);
  expect(await page.locator('.map > *').count()).toBe(0);
  await page.locator('.row', { hasText: 'Plain' }).click();
  const card = page.locator('.card');
  await card.getByRole('heading', { name: 'Plain' }).waitFor();
  await service.admin('POST', 'objects/plain/packets', { lat: 48.1, lon: 11.1, speed: 77 });
  await card.getByText('77 km/h', { exact: true }).waitFor();
});

test('says it in German, in a space that leaves the list of a phone its room', async () => {
  const page = await browser.openAs('/', ADMIN, browser.phone);
  await page.evaluate('localStorage.setItem("vigil.language", "de")');
  await page.reload();
  await page.getByText('Die Karte braucht WebGL, das dieser Browser nicht bietet.').waitFor();
  expect((await page.locator('.stage').boundingBox())?.height).toBeLessThan(100);
});

test('charts and replays the history of an object', async () => {
  const page = await browser.openAs(`/objects/${id}/history`);
  await page.locator('.uplot').first().waitFor();
  await page.locator('.track-map').getByText('The map needs WebGL').waitFor();
  await page.getByRole('slider').fill(String(Date.now()));
  await page.locator('.value-cards .place').waitFor();
});

test('lists geofences, and edits them as JSON', async () => {
  const page = await browser.openAs('/geofences');
  await page.locator('.stage').getByText('The map needs WebGL').waitFor();
  await page.locator('.item', { hasText: 'Yard' }).getByRole('button', { name: 'JSON' }).click();
  await page.getByRole('dialog').getByRole('textbox').first().waitFor();
});
