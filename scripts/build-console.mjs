/**
 * Bundles the console, src/console/, into dist/console or the given folder: files named by their content, each also compressed with Brotli and
 * gzip, and console.json, which lists them. scripts/prepare.mjs runs it when its sources changed.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { build } from 'esbuild';
import * as topojson from 'topojson-client';
import { CELL_DEGREES, toMapTowns, toTownCells } from './console-towns.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = process.argv[2] ?? join(root, 'dist', 'console');
const { resolve } = createRequire(import.meta.url);
/** Where the service sends the files, below its base path. The files name each other without it. */
const PUBLIC_PATH = '{{base}}/console/';
const WORLD_GRID = 40_000;
const TYPES = { js: 'text/javascript', css: 'text/css', json: 'application/json', svg: 'image/svg+xml' };

const common = /** @satisfies {import('esbuild').BuildOptions} */ ({
  bundle: true,
  minify: true,
  write: false,
  format: 'esm',
  target: ['es2022'],
  logLevel: 'error',
  legalComments: 'none',
  // What libraries tell their developers.
  pure: ['console.warn', 'console.info', 'console.log', 'console.debug'],
  outdir: out,
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
});

/** The files by their names in dist/console. */
const files = new Map();

function add(name, bytes) {
  const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 8).toUpperCase();
  const hashed = name.replace(/(\.\w+)$/, `-${hash}$1`);
  files.set(hashed, Buffer.from(bytes));
  return PUBLIC_PATH + hashed;
}

function addOutputs({ outputFiles }) {
  for (const { path, contents } of outputFiles) files.set(basename(path), Buffer.from(contents));
}

/** Finds the first file whose name has the given beginning. */
const find = (start, end) =>
  PUBLIC_PATH + [...files.keys()].find((name) => name.startsWith(`${start}-`) && name.endsWith(end));

/** The outlines of all countries on a grid that is as coarse as the outlines themselves, at most a kilometre. */
function readWorld(scale) {
  const { transform, arcs, objects, ...world } = JSON.parse(
    readFileSync(resolve(`world-atlas/countries-${scale}.json`), 'utf8'),
  );
  const toDegrees = topojson.transform(transform);
  const lines = arcs.map((arc) => arc.map((point, index) => toDegrees(point, index)));
  const whole = { ...world, arcs: lines, objects: { countries: objects.countries } };
  return JSON.stringify(topojson.quantize(whole, WORLD_GRID));
}

function addBasemap() {
  const world = (scale) => add(`world-${scale}.json`, readWorld(scale));
  // The worker asks for them, which is a file beside them.
  const urls = { coarse: world('110m'), fine: world('50m'), towns: add('towns.json', toMapTowns()) };
  return Object.fromEntries(Object.entries(urls).map(([name, path]) => [name, basename(path)]));
}

/** The towns by their cells, under one digest, so that the console names the numbers of the cells only. */
function addTownCells() {
  const cells = toTownCells();
  const digest = createHash('sha256');
  for (const json of cells.values()) digest.update(json);
  const name = `near-${digest.digest('hex').slice(0, 8).toUpperCase()}`;
  for (const [cell, json] of cells) files.set(`${name}-${cell}.json`, Buffer.from(json));
  return { path: `/console/${name}`, degrees: CELL_DEGREES, cells: [...cells.keys()].sort((a, b) => a - b) };
}

/** Every page needs most of the small files in these folders, but few need the others. */
const SHARED = ['parts', 'state'];
const RARELY_NEEDED = new Set([
  'confirm-dialog.tsx',
  'copy.tsx',
  'dialog.tsx',
  'geofences.ts',
  'labels.ts',
  'labels.tsx',
  'map-view.tsx',
  'polling.ts',
  'search-field.tsx',
  'values.tsx',
  'virtual-list.tsx',
  'wrong-clock.tsx',
]);

/**
 * What the pages that people open most begin with, by their addresses. Browsers load it with the page; otherwise they would find each
 * file only after they have read the one that imports it.
 */
const LIVE = ['objects/object-page.tsx', 'objects/live-tab.tsx', 'objects/plot.ts'];
const PRELOADED = [
  ['^/$', ['home/home.tsx']],
  ['^/objects/[^/]+(?:/live)?/?$', LIVE],
  ['^/s/?$', ['shared/shared-page.tsx']],
  ['^/objects/[^/]+/history/?$', ['objects/object-page.tsx', 'objects/history-tab.tsx', 'objects/plot.ts']],
];

/** What the first page loads later, and what contains it: it finds there what it shares with the page, which would be files of their own otherwise. */
const FIRST_PAGE = 'home/home.tsx';
const OF_FIRST_PAGE = [
  'home/attention.tsx',
  'home/choice.tsx',
  'home/object-card.tsx',
  'home/object-table.tsx',
  'home/tiles.tsx',
  'home/views-dialog.tsx',
  'wall/wall-page.tsx',
];

const importOf = (file) => `import ${JSON.stringify(file)};`;

/**
 * The first part contains what pages share, and every part that is loaded later imports the first one, which is there by then.
 * Otherwise there would be one file for each set of parts that share something: dozens of a few hundred bytes.
 */
const parts = (folder) => ({
  name: 'parts',
  setup({ onResolve, onLoad, resolve: find }) {
    const filesIn = (name) => readdirSync(join(folder, name)).filter((file) => !RARELY_NEEDED.has(file));
    const shared = SHARED.flatMap((name) => filesIn(name).map((file) => join(folder, name, file)));
    const first = [join(folder, 'main.tsx'), ...shared].map(importOf).join('');
    onResolve({ filter: /^first$/ }, ({ path }) => ({ path, namespace: 'part' }));
    onResolve({ filter: /^page:/ }, ({ path }) => ({ path: path.slice('page:'.length), namespace: 'part' }));
    onResolve({ filter: /^\./ }, async ({ kind, path, importer, resolveDir }) => {
      if (kind !== 'dynamic-import' || !importer.startsWith(folder)) return undefined;
      const found = await find(path, { kind: 'import-statement', importer, resolveDir });
      return { path: found.path, namespace: 'part' };
    });
    const laterParts = new Set(OF_FIRST_PAGE.map((file) => join(folder, file)));
    const firstPage = importOf(`page:${join(folder, FIRST_PAGE)}`);
    onLoad({ filter: /./, namespace: 'part' }, ({ path }) => {
      const before = importOf('first') + (laterParts.has(path) ? firstPage : '');
      return {
        contents: path === 'first' ? first : `${before} export * from ${JSON.stringify(path)};`,
        resolveDir: root,
      };
    });
  },
});

async function bundle() {
  const basemap = addBasemap();
  const source = (name) => join(root, 'src', 'console', name);
  // MapLibre says that its files do nothing by themselves, but its worker does.
  const worker = { entryPoints: [{ in: source('map/worker.ts'), out: 'map-worker' }], ignoreAnnotations: true };
  addOutputs(await build({ ...common, ...worker, define: { BASEMAP: JSON.stringify(basemap) } }));
  const define = {
    MAP_WORKER: JSON.stringify(find('map-worker', '.js').replace('{{base}}', '')),
    // As text: an object would become a module that every page loads.
    TOWN_CELLS: JSON.stringify(JSON.stringify(addTownCells())),
    'process.env.NODE_ENV': '"production"',
  };
  const built = await build({
    ...common,
    entryPoints: [
      { in: 'first', out: 'main' },
      { in: source('styles/console.css'), out: 'console' },
    ],
    splitting: true,
    define,
    plugins: [parts(source('.'))],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfig: join(root, 'tsconfig.console.json'),
    metafile: true,
  });
  addOutputs(built);
  const first = filesOf(built.metafile, 'part:first');
  const partsOf = (names) => names.flatMap((name) => partFiles(built.metafile, source(name)));
  const later = PRELOADED.map(([path, names]) => [path, partsOf(names).filter((file) => !first.includes(file))]);
  return {
    first,
    preloads: later.map(([path, files]) => ({ path, links: toPreloads([...new Set(files)], ' fetchpriority="low"') })),
  };
}

/** The file of a part, and those that it needs to run. */
function partFiles(metafile, path) {
  const entryPoint = `part:${path}`;
  const own = Object.keys(metafile.outputs).find((file) => metafile.outputs[file].entryPoint === entryPoint);
  if (own === undefined) throw new Error(`${path} is in no file of the bundle`);
  return [PUBLIC_PATH + basename(own), ...filesOf(metafile, entryPoint)];
}

const toPreloads = (files, more = '') =>
  files.map((path) => `<link rel="modulepreload" href="${path}"${more}>`).join('\n');

/** The other files that a file needs to run. */
function filesOf({ outputs }, entryPoint) {
  const needed = new Set();
  const add = ({ imports }) => {
    for (const { path } of imports.filter(({ kind, path }) => kind === 'import-statement' && !needed.has(path))) {
      needed.add(path);
      add(outputs[path]);
    }
  };
  add(Object.values(outputs).find((output) => output.entryPoint === entryPoint));
  return [...needed].map((path) => PUBLIC_PATH + basename(path));
}

/** The page. The service fills in the values that are known only at its start, and the files of the page at an address. */
function readPage(first) {
  const icon = add('icon.svg', readFileSync(join(root, 'src', 'console', 'icon.svg')));
  const manifest = add(
    'manifest.json',
    JSON.stringify({
      name: 'Vigil',
      short_name: 'Vigil',
      start_url: '../',
      scope: '../',
      display: 'standalone',
      background_color: '#f7f8fa',
      theme_color: '#f7f8fa',
      icons: [{ src: basename(icon), sizes: 'any', type: 'image/svg+xml', purpose: 'any' }],
    }),
  );
  return readFileSync(join(root, 'src', 'console', 'page.html'), 'utf8')
    .replaceAll('{{script}}', find('main', '.js'))
    .replaceAll('{{preloads}}', toPreloads(first))
    .replaceAll('{{style}}', find('console', '.css'))
    .replaceAll('{{icon}}', icon)
    .replaceAll('{{manifest}}', manifest);
}

/** A smaller table of symbols than zlib's own (8) begins new blocks more often, which fits minified scripts: 270 bytes less on the first page. */
const GZIP = { level: 9, memLevel: 7 };

const BROTLI = { quality: 9, leastWindow: 10, mostWindow: 22 };

/** With a window that fits: to prepare the largest one takes a tenth of a second, for the smallest file, too. */
function brotli(bytes) {
  const window = Math.max(BROTLI.leastWindow, Math.ceil(Math.log2(bytes.length + 16)));
  return promisify(brotliCompress)(bytes, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: BROTLI.quality,
      [constants.BROTLI_PARAM_LGWIN]: Math.min(BROTLI.mostWindow, window),
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
}

/** At the same address after each build: browsers compare it with the one they have. */
async function addServiceWorker(page) {
  const digest = createHash('sha256').update(page).digest('hex').slice(0, 8);
  const entry = { in: join(root, 'src', 'console', 'service-worker.ts'), out: 'service-worker' };
  const define = { BUILD: JSON.stringify(digest) };
  addOutputs(await build({ ...common, entryPoints: [entry], entryNames: '[name]', format: 'iife', define }));
}

async function write() {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const list = [...files].map(async ([name, bytes]) => {
    const compressed = await Promise.all([brotli(bytes), promisify(gzip)(bytes, GZIP)]);
    writeFileSync(join(out, name), bytes);
    writeFileSync(join(out, `${name}.br`), compressed[0]);
    writeFileSync(join(out, `${name}.gz`), compressed[1]);
    return { name, type: TYPES[name.split('.').at(-1)] };
  });
  return Promise.all(list);
}

const { first, preloads } = await bundle();
const page = readPage(first);
await addServiceWorker(page);
const list = await write();
writeFileSync(join(out, 'console.json'), JSON.stringify({ page, preloads, files: list }));
