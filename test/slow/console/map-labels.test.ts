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
/** The part of the map whose points are counted. */
const WIDTH_PX = 250;
const HEIGHT_PX = 120;
const MOST = (WIDTH_PX * HEIGHT_PX * 5) / 6;

interface Drawn {
  readonly properties: Readonly<Record<string, string | number>>;
  readonly geometry: { readonly type: string; readonly coordinates: unknown };
}

/** The grid of a tile of the whole world, which is as fine as MapLibre's: its lines are 4 pixels apart at zoom 6. */
const EXTENT = 8_192;
/** The latitude of a line of the grid, counted from the equator. */
const latitudeOf = (gridLine: number): number =>
  (Math.atan(Math.sinh((2 * Math.PI * gridLine) / EXTENT)) * 180) / Math.PI;

/** Three degrees wide, around this place. */
const area = (properties: Drawn['properties'], lon: number, lat: number): Drawn => {
  const ring = [
    [lon - 1.5, lat - 2],
    [lon + 1.5, lat - 2],
    [lon + 1.5, lat + 2],
    [lon - 1.5, lat + 2],
    [lon - 1.5, lat - 2],
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
      new GeoJSONVT({ type: 'FeatureCollection', features: features as never }, { maxZoom: 0, extent: EXTENT }).getTile(
        0,
        0,
        0,
      ),
    ];
  });
  return Buffer.from(fromGeojsonVt(Object.fromEntries(cut), { version: 2, extent: EXTENT }));
}

const folder = mkdtempSync(join(tmpdir(), 'vigil-labels-'));
function writeTiles(name: string, layers: Readonly<Record<string, readonly Drawn[]>>): string {
  const path = join(folder, `${name}.pmtiles`);
  const metadata = { vector_layers: Object.keys(layers).map((id) => ({ id })) };
  writeFileSync(path, createPmTiles(toTile(layers), { isVector: true, metadata }));
  return path;
}

/** How many of the points around this place of the map, in pixels from its middle, are about this color, when all of it is drawn. */
async function countOf(page: Page, color: readonly [number, number, number], { x = 0, y = 0 } = {}): Promise<number> {
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
    const [left, top] = [image.width / 2 + ${x - WIDTH_PX / 2}, image.height / 2 + ${y - HEIGHT_PX / 2}];
    const { data } = context.getImageData(left, top, ${WIDTH_PX}, ${HEIGHT_PX});
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

/** In the desert, where the own map shows nothing but land. */
const DESERT = { lat: 25, lon: 18 };
const AREA_PX = (3 * 512 * 2 ** 6) / 360;
/** Lines of the grid: the middle between a street and rails, out of sight of those of the other zooms, and how far apart both are. */
const STREETS = [
  { zoom: 3, middle: 0, apart: 512 },
  { zoom: 6, middle: 1_600, apart: 64 },
  { zoom: 12, middle: 2_400.5, apart: 1 },
];
/** The same at each of these zooms. */
const APART_PX = 256;
const NAMES = -1_600;
const NAMES_APART = 40;
const NAMES_APART_PX = 160;

describe.each([
  ['OpenMapTiles', 'class', 'transportation_name', 'minor', 'place'],
  ['Protomaps', 'kind', 'roads', 'minor_road', 'places'],
])('a file of vector tiles of %s', (schema, kind, streets, minor, places) => {
  const street = { [kind]: minor, name: BLOCKS, 'name:de': DOT };
  const path = writeTiles(schema, {
    landuse: [
      area({ [kind]: 'residential' }, DESERT.lon - 3, DESERT.lat),
      area({ [kind]: 'park' }, DESERT.lon, DESERT.lat),
      area({ [kind]: 'something else' }, DESERT.lon + 3, DESERT.lat),
    ],
    [streets]: [
      ...STREETS.flatMap(({ middle, apart }) => [
        line(street, latitudeOf(middle - apart / 2)),
        line({ [kind]: 'rail', name: BLOCKS }, latitudeOf(middle + apart / 2)),
      ]),
      line(street, latitudeOf(NAMES - NAMES_APART)),
    ],
    [places]: [
      point({ [kind]: 'city', name: DOT, 'name:de': BLOCKS }, latitudeOf(NAMES)),
      point({ [kind]: 'country', name: BLOCKS }, latitudeOf(NAMES + NAMES_APART)),
    ],
  });
  const service = useService({ env: { MAP_TILES: path } });
  const browser = useBrowser(service);
  const openAt = async ({ lat = 0, lon = 0 }, zoom: number, locale = 'en-GB'): Promise<Page> => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    return browser.openAs(`/?at=${lat},${lon},${zoom}`, ADMIN, { locale });
  };

  test(`draws land of ${schema} by its use: homes are no park`, async () => {
    const page = await openAt(DESERT, 6);
    expect(await countOf(page, HOMES, { x: -AREA_PX })).toBeGreaterThan(MOST);
    expect(await countOf(page, GREEN)).toBeGreaterThan(MOST);
    expect(await countOf(page, LAND, { x: AREA_PX })).toBeGreaterThan(MOST);
  });

  test.each(STREETS)(`names streets of ${schema} at zoom $zoom, but no rails`, async ({ zoom, middle }) => {
    const page = await openAt({ lat: latitudeOf(middle) }, zoom);
    expect(await countOf(page, STREET, { y: APART_PX / 2 })).toBeGreaterThan(300);
    expect(await countOf(page, STREET, { y: -APART_PX / 2 })).toBe(0);
  });

  test(`names streets and places of ${schema} in the language of the reader`, async () => {
    const nameOfStreet = { y: NAMES_APART_PX };
    const country = { y: -NAMES_APART_PX };
    const english = await openAt({ lat: latitudeOf(NAMES) }, 6);
    expect(await countOf(english, STREET, nameOfStreet)).toBeGreaterThan(300);
    expect(await countOf(english, PLACE)).toBeLessThan(30);
    const german = await openAt({ lat: latitudeOf(NAMES) }, 6, 'de-DE');
    expect(await countOf(german, STREET, nameOfStreet)).toBeLessThan(30);
    expect(await countOf(german, PLACE)).toBeGreaterThan(300);
    expect(await countOf(german, PLACE, country)).toBe(0);
  });
});

/** A map server, with a style whose labels are as people write them. */
let status = 200;
/** A transparent pixel. */
const PICTURE = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');
const tile = toTile({ names: [point({ name: DOT, 'name:de': BLOCKS }, 0)] });
const server = createServer((req, res) => {
  res.setHeader('Access-Control-Allow-Origin', '*');
  if (req.url === '/style.json') res.setHeader('Content-Type', 'application/json').end(JSON.stringify(style()));
  else res.writeHead(status).end(req.url?.startsWith('/picture') ? PICTURE : tile);
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const style = (): object => ({
  version: 8,
  sources: {
    world: { type: 'vector', tiles: [`${origin()}/{z}/{x}/{y}`], maxzoom: 0, attribution: '© Somebody' },
    pictures: { type: 'raster', tiles: [`${origin()}/picture/{z}/{x}/{y}`], maxzoom: 0 },
  },
  layers: [
    { id: 'ground', type: 'background', paint: { 'background-color': '#ffffff' } },
    { id: 'pictures', type: 'raster', source: 'pictures' },
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
const RETRY_MS = 31_000;

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
    const page = await browser.openAs('/account/profile');
    await page.clock.install();
    await page.goto(`${service.url}/?at=1,1,6`);
    const note = page.getByText('The map background cannot be loaded at the moment. Everything else works.');
    await note.waitFor();
    await page.locator('.map').click();
    await page.getByRole('heading', { name: 'Seen' }).waitFor();
    // A map that moves asks for other tiles, and has to be at rest for this.
    await page.goto(`${service.url}/?at=1,1,6`);
    await note.waitFor();
    status = 200;
    // The map asks again after a while.
    await page.clock.fastForward(RETRY_MS);
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
    await browser.openAs('/account/profile');
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
