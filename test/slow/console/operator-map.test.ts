/** The operator's own tiles and style in a real browser, under the policy of the page. */
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
import { createPmTiles, createPng, createVectorTile } from '../../support/browser/map-files.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { eventually } from '../../support/until.js';

const RED = createPng([200, 30, 40]);
const folder = mkdtempSync(join(tmpdir(), 'vigil-map-'));
const file = join(folder, 'world.pmtiles');
writeFileSync(file, createPmTiles(RED));

// The style and its tiles come from another origin, as those of a map service do.
let hasStyle = true;
const server = createServer((req, res) => {
  res.setHeader('Access-Control-Allow-Origin', '*');
  if (req.url === '/tile.png') res.setHeader('Content-Type', 'image/png').end(RED);
  else if (!hasStyle) res.writeHead(404).end();
  else res.setHeader('Content-Type', 'application/json').end(JSON.stringify(style()));
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const style = (): object => ({
  version: 8,
  sources: { world: { type: 'raster', tiles: [`${origin()}/tile.png`], tileSize: 256, maxzoom: 0 } },
  layers: [{ id: 'world', type: 'raster', source: 'world' }],
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
  rmSync(folder, { recursive: true });
});

/** The colour of the map this far below its middle, in pixels, when all of it is drawn. */
async function colorOf(page: Page, below = 0): Promise<number[]> {
  await page.locator('.map[data-drawn]').waitFor();
  const picture = (await page.locator('.map').screenshot()).toString('base64');
  const middle = `(async () => {
    const image = new Image();
    image.src = 'data:image/png;base64,${picture}';
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    return [...context.getImageData(image.width / 2, image.height / 2 + ${below}, 1, 1).data].slice(0, 3);
  })()`;
  return (await page.evaluate(middle)) as number[];
}

const isRed = ([red = 0, green = 0, blue = 0]: number[]): boolean => red > 180 && green < 60 && blue < 70;

describe('a file of tiles', () => {
  const service = useService({ env: { MAP_TILES: file } });
  const browser = useBrowser(service);
  test('draws a file of tiles', async () => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    expect(isRed(await colorOf(await browser.openAs('/')))).toBe(true);
  });
});

describe('a file of vector tiles', () => {
  writeFileSync(
    join(folder, 'vector.pmtiles'),
    createPmTiles(createVectorTile('water'), {
      isVector: true,
      metadata: { vector_layers: [{ id: 'water' }], attribution: '<a href="x">© Somebody</a>' },
    }),
  );
  const service = useService({ env: { MAP_TILES: join(folder, 'vector.pmtiles') } });
  const browser = useBrowser(service);
  test.each([
    ['light', [207, 223, 234]],
    ['dark', [14, 20, 27]],
  ] as const)('draws vector tiles in the colours of the %s theme', async (colorScheme, water) => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    expect(await colorOf(await browser.openAs('/', ADMIN, { colorScheme }))).toEqual(water);
  });

  test('shows the attribution of a file of vector tiles', async () => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    const map = (await browser.openAs('/')).locator('.map[data-drawn]');
    await map.waitFor();
    await eventually(async () => expect(await map.getAttribute('data-attribution')).toBe('© Somebody'));
  });
});

describe.each([
  ['OpenMapTiles', 'transportation', 'class', 'motorway'],
  ['Protomaps', 'roads', 'kind', 'highway'],
])('a file of vector tiles of %s', (schema, layer, kind, widest) => {
  /** The latitude of a line of the grid that a tile has; 0 is the equator. */
  const latitudeOf = (line: number): number => (Math.atan(Math.sinh((2 * Math.PI * line) / 4_096)) * 180) / Math.PI;
  const KINDS = [widest, 'path', 'ferry'];
  const lines = KINDS.map((name, nth) => ({
    type: 'Feature' as const,
    properties: { [kind]: name },
    geometry: { type: 'LineString' as const, coordinates: [-20, 20].map((lon) => [lon, latitudeOf(nth * 20)]) },
  }));
  const tile = new GeoJSONVT({ type: 'FeatureCollection', features: lines }, { maxZoom: 0 }).getTile(0, 0, 0);
  const path = join(folder, `${schema}.pmtiles`);
  const metadata = { vector_layers: [{ id: layer }] };
  writeFileSync(
    path,
    createPmTiles(Buffer.from(fromGeojsonVt({ [layer]: tile as never })), { isVector: true, metadata }),
  );
  const service = useService({ env: { MAP_TILES: path } });
  const browser = useBrowser(service);
  const WHITE = [255, 255, 255];

  test(`draws roads of ${schema} by their kind`, async () => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    const page = await browser.openAs('/account/profile');
    const openAt = (nth: number, zoom: number) => page.goto(`${service.url}/?at=${latitudeOf(nth * 20)},0,${zoom}`);
    await openAt(0, 14);
    expect(await colorOf(page)).toEqual(WHITE);
    // A path is thinner than a pixel there, and a ferry is no road.
    await openAt(1, 9);
    expect(await colorOf(page)).not.toEqual(WHITE);
    await openAt(2, 14);
    expect(await colorOf(page)).toEqual(await colorOf(page, 200));
  });
});

describe('a style', () => {
  const service = useService({ env: { MAP_STYLE_URL: `${origin()}/style.json` } });
  const browser = useBrowser(service);
  test('draws a style, with everything that it loads from its origin', async () => {
    await service.admin('POST', 'objects', { id: 'seen', name: 'Seen' });
    expect(isRed(await colorOf(await browser.openAs('/')))).toBe(true);
  });

  test('replaces a style that cannot be loaded with the own map', async () => {
    hasStyle = false;
    browser.expectErrors(/404/);
    expect(isRed(await colorOf(await browser.openAs('/')))).toBe(false);
  });
});
