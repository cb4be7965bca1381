/** Vector tiles in a real browser: land by its use, names of streets, and labels in the language of the reader. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { GeoJSONVT } from '@maplibre/geojson-vt';
import { fromGeojsonVt } from '@maplibre/vt-pbf';
import type { Page } from 'playwright-core';
import { useBrowser } from '../../support/browser/browser.js';
import { createPmTiles } from '../../support/browser/map-files.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { until } from '../../support/until.js';

/** Text that is an area of one color. */
const BLOCKS = '██████████';
const DOT = '.';

interface Drawn {
  readonly properties: Readonly<Record<string, string | number>>;
  readonly geometry: { readonly type: string; readonly coordinates: unknown };
}

const area = (properties: Drawn['properties'], west: number): Drawn => {
  const ring = [
    [west, -20],
    [west + 20, -20],
    [west + 20, 20],
    [west, 20],
    [west, -20],
  ];
  return { properties, geometry: { type: 'Polygon', coordinates: [ring] } };
};
const line = (properties: Drawn['properties'], lat: number): Drawn => ({
  properties,
  geometry: {
    type: 'LineString',
    coordinates: [
      [-25, lat],
      [25, lat],
    ],
  },
});
const point = (properties: Drawn['properties'], lat: number): Drawn => ({
  properties,
  geometry: { type: 'Point', coordinates: [0, lat] },
});

/** A tile of the whole world with these layers. */
function toTile(layers: Readonly<Record<string, readonly Drawn[]>>): Buffer {
  const cut = Object.entries(layers).map(([name, drawn]) => {
    const features = drawn.map((one) => ({ ...one, type: 'Feature' as const }));
    return [
      name,
      new GeoJSONVT({ type: 'FeatureCollection', features: features as never }, { maxZoom: 0 }).getTile(0, 0, 0),
    ];
  });
  return Buffer.from(fromGeojsonVt(Object.fromEntries(cut), { version: 2, extent: 4_096 }));
}

const folder = mkdtempSync(join(tmpdir(), 'vigil-labels-'));
function writeTiles(name: string, layers: Readonly<Record<string, readonly Drawn[]>>): string {
  const path = join(folder, `${name}.pmtiles`);
  const metadata = { vector_layers: Object.keys(layers).map((id) => ({ id })) };
  writeFileSync(path, createPmTiles(toTile(layers), { isVector: true, metadata }));
  return path;
}

/** How many of the points of the map in its middle are about this color, when all of it is drawn. */
async function countOf(page: Page, color: readonly [number, number, number]): Promise<number> {
  await page.locator('.map[data-drawn]').waitFor();
  const picture = (await page.locator('.map').screenshot()).toString('base64');
  const count = `(async () => {
    const image = new Image();
    image.src = 'data:image/png;base64,${picture}';
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = image.width;
    canvas.height = image.height;
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(image.width / 2 - 150, image.height / 2 - 60, 300, 120);
    let found = 0;
    for (let at = 0; at < data.length; at += 4)
      if (${JSON.stringify(color)}.every((value, index) => Math.abs(data[at + index] - value) < 6)) found++;
    return found;
  })()`;
  return (await page.evaluate(count)) as number;
}

const HOMES = [239, 238, 234] as const;
const GREEN = [226, 234, 214] as const;
const STREET = [107, 106, 98] as const;
const PLACE = [91, 99, 109] as const;
const LAND = [246, 245, 241] as const;

describe.each([
  ['OpenMapTiles', 'class', 'transportation_name', 'minor', 'place'],
  ['Protomaps', 'kind', 'roads', 'minor_road', 'places'],
])('a file of vector tiles of %s', (schema, kind, streets, minor, places) => {
  const path = writeTiles(schema, {
    landuse: [
      area({ [kind]: 'residential' }, -70),
      area({ [kind]: 'park' }, -50),
      area({ [kind]: 'something else' }, 30),
    ],
    [streets]: [line({ [kind]: minor, name: BLOCKS, 'name:de': DOT }, 0), line({ [kind]: 'rail', name: BLOCKS }, 12)],
    [places]: [
      point({ [kind]: 'city', name: DOT, 'name:de': BLOCKS }, -14),
      point({ [kind]: 'country', name: BLOCKS }, -28),
    ],
  });
  const service = useService({ env: { MAP_TILES: path } });
  const browser = useBrowser(service);
  const openAt = async (lat: number, lon: number, zoom: number, locale = 'en-GB'): Promise<Page> => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    return browser.openAs(`/?at=${lat},${lon},${zoom}`, ADMIN, { locale });
  };

  test(`draws land of ${schema} by its use: homes are no park`, async () => {
    const homes = await openAt(0, -60, 6);
    expect(await countOf(homes, HOMES)).toBeGreaterThan(30_000);
    await homes.goto(`${service.url}/?at=0,-40,6`);
    expect(await countOf(homes, GREEN)).toBeGreaterThan(30_000);
    await homes.goto(`${service.url}/?at=0,40,6`);
    expect(await countOf(homes, LAND)).toBeGreaterThan(30_000);
  });

  test.each([3, 6, 12])(`names streets of ${schema} at zoom %d, but no rails`, async (zoom) => {
    const page = await openAt(0, 0, zoom);
    expect(await countOf(page, STREET)).toBeGreaterThan(300);
    await page.goto(`${service.url}/?at=12,0,${zoom}`);
    expect(await countOf(page, STREET)).toBe(0);
  });

  test(`names streets and places of ${schema} in the language of the reader`, async () => {
    const english = await openAt(0, 0, 6);
    expect(await countOf(english, STREET)).toBeGreaterThan(300);
    await english.goto(`${service.url}/?at=-14,0,6`);
    expect(await countOf(english, PLACE)).toBeLessThan(30);
    const german = await openAt(0, 0, 6, 'de-DE');
    expect(await countOf(german, STREET)).toBeLessThan(30);
    await german.goto(`${service.url}/?at=-14,0,6`);
    expect(await countOf(german, PLACE)).toBeGreaterThan(300);
    await german.goto(`${service.url}/?at=-28,0,6`);
    expect(await countOf(german, PLACE)).toBe(0);
  });
});

/** A map server, with a style whose labels are as people write them. */
let status = 200;
const tile = toTile({ names: [point({ name: DOT, 'name:de': BLOCKS }, 0)] });
const server = createServer((req, res) => {
  res.setHeader('Access-Control-Allow-Origin', '*');
  if (req.url === '/style.json') res.setHeader('Content-Type', 'application/json').end(JSON.stringify(style()));
  else res.writeHead(status).end(tile);
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const style = (): object => ({
  version: 8,
  sources: { world: { type: 'vector', tiles: [`${origin()}/{z}/{x}/{y}`], maxzoom: 0, attribution: '© Somebody' } },
  layers: [
    { id: 'ground', type: 'background', paint: { 'background-color': '#ffffff' } },
    {
      id: 'names',
      type: 'symbol',
      source: 'world',
      'source-layer': 'names',
      layout: { 'text-field': '{name}', 'text-font': ['sans-serif'] },
      paint: { 'text-color': '#ff0000' },
    },
  ],
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
  rmSync(folder, { recursive: true });
});
const RED = [255, 0, 0] as const;

describe('a style', () => {
  const service = useService({ env: { MAP_STYLE_URL: `${origin()}/style.json` } });
  const browser = useBrowser(service);

  test('has labels in the language of the reader, also after another one is chosen', async () => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    const page = await browser.openAs('/?at=0,0,6');
    expect(await countOf(page, RED)).toBeLessThan(30);
    await page.getByText('© Somebody').waitFor();
    await page.locator('.avatar').click();
    await page.getByRole('button', { name: 'Deutsch' }).click();
    await page.keyboard.press('Escape');
    await until(async () => (await countOf(page, RED)) > 300, 'names are in German');
  });

  test('says that its tiles are away for as long as they are, and shows the objects', async () => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    await service.admin('POST', 'objects/seen/packets', { lat: 1, lon: 1 });
    status = 503;
    browser.expectErrors(/503/);
    const page = await browser.openAs('/?at=1,1,6');
    const note = page.getByText('The map background cannot be loaded at the moment. Everything else works.');
    await note.waitFor();
    await page.locator('.map').click();
    await page.getByRole('heading', { name: 'Seen' }).waitFor();
    status = 200;
    await note.waitFor({ state: 'hidden' });
  });
});

describe('a style that cannot be loaded', () => {
  const service = useService({ env: { MAP_STYLE_URL: `${origin()}/nothing` } });
  const browser = useBrowser(service);
  test('is replaced by countries and towns, and said', async () => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    status = 404;
    browser.expectErrors(/404/);
    await browser.openAs('/');
    const page = await browser.openAs('/', ADMIN, { locale: 'de-DE' });
    await page.getByText('Der Kartenhintergrund lässt sich gerade nicht laden. Alles andere funktioniert.').waitFor();
    await page.getByText('Natural Earth').waitFor();
    status = 200;
  });
});

describe('a file that contains no tiles', () => {
  const path = join(folder, 'broken.pmtiles');
  writeFileSync(path, Buffer.alloc(20_000, 'x'));
  const service = useService({ env: { MAP_TILES: path } });
  const browser = useBrowser(service);
  test('is replaced by countries and towns, and said', async () => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    const page = await browser.openAs('/?at=48,11,5');
    await page.getByText('The map background cannot be loaded at the moment.').waitFor();
    expect(await countOf(page, LAND)).toBeGreaterThan(10_000);
  });
});
