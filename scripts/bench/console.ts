// Measures the console in a real browser against the service: what it loads, how soon it is there, what many objects cost it.
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { MongoClient } from 'mongodb';
import type { Page } from 'playwright-core';
import { launchChromium } from './chromium.js';
import {
  BARS,
  type ConsoleBench,
  fleetOf,
  type Given,
  openBrowserPage,
  openLoggedIn,
  type Row,
} from './console-bench.js';
import { measureChart, measureLive, measureMany } from './console-fleet.js';
import { CONSOLE_FOLDER, gzipBytesOf, openPage, pagesWithoutMap, scriptsOf, typeSlowly } from './console-pages.js';
import { createProbe } from './console-probe.js';
import { databaseName, objectId, type Size } from './data.js';
import { fill } from './fill.js';
import { type Place, type RunningServer, startServer } from './servers.js';
import { format, median } from './stats.js';

/** How long the fleet sends packets unless the command line says it. */
export const CONSOLE_SECONDS = 60;
const LIVE_OBJECTS = 5_000;
const MANY_OBJECTS = 50_000;
const SLOWDOWN = 4;
const STARTS = 3;

/** The lines of the results as a Markdown table. */
export async function measureConsole(bench: ConsoleBench): Promise<string> {
  const browser = await launchChromium();
  const rows: Row[] = [];
  const add = (found: readonly Row[]): void => {
    for (const row of found) bench.say(toLine(row));
    rows.push(...found);
  };
  try {
    add(await measureFolders());
    for (const [objects, measures] of [
      [LIVE_OBJECTS, [measureSizes, measureStarts, measureChart, measureLive]],
      [MANY_OBJECTS, [measureMany]],
    ] as const) {
      const size = fleetOf(Math.ceil(objects * bench.scale));
      const server = await startFilled(bench.place, size);
      try {
        for (const measure of measures) add(await measure({ bench, browser, server, size }));
      } finally {
        await server.stop();
      }
    }
  } finally {
    await browser.close();
  }
  return ['| Console | measured | bar | |', '|---|---:|---:|---|', ...rows.map(toLine)].join('\n');
}

function toLine([title, value, bar, unit]: Row): string {
  const isLeast = unit.startsWith('frames');
  const isMet = bar === null || (isLeast ? value >= bar : value <= bar);
  const sign = bar === null ? '' : `${isLeast ? '≥' : '≤'} ${bar.toLocaleString('en-US')}`;
  return `| ${title} | ${format(value)} ${unit} | ${sign} | ${isMet ? '' : 'over the bar'} |`;
}

async function startFilled(place: Place, size: Size): Promise<RunningServer> {
  const client = await new MongoClient(place.mongodbUri).connect();
  await client.db(databaseName(place.mongodbUri, 'ours')).dropDatabase();
  await client.close();
  await fill(place.mongodbUri, ['ours'], size);
  return startServer('ours', place);
}

async function measureFolders(): Promise<Row[]> {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-console-'));
  const beginMs = performance.now();
  await promisify(execFile)(process.execPath, ['scripts/build-console.mjs', folder]);
  const buildMs = performance.now() - beginMs;
  await rm(folder, { recursive: true });
  const basemap = (await readdir(CONSOLE_FOLDER)).filter((name) => /^(world|towns).*\.json$/.test(name));
  const bytes = await folderBytes('node_modules');
  return [
    ['Bundling it', buildMs, BARS.buildMs, 'ms'],
    ['`node_modules` of the repository', bytes / 2 ** 20, null, 'MiB'],
    ['Basemap, gzip', gzipBytesOf(basemap) / 1_000, BARS.basemapKb, 'kB'],
  ];
}

async function folderBytes(folder: string): Promise<number> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const sizes = files.map(async (one) => (one.isFile() ? (await stat(join(one.parentPath, one.name))).size : 0));
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
}

/** The largest page of each kind. */
async function measureSizes(given: Given): Promise<Row[]> {
  const page = await openLoggedIn(given);
  const kb = async (row: readonly [string, string]): Promise<number> => {
    await openPage(page, given.server.url, row);
    return gzipBytesOf(await scriptsOf(page)) / 1_000;
  };
  const sizes = new Map<string, number>();
  for (const row of pagesWithoutMap(objectId(0)).filter(([path]) => !path.endsWith('/history')))
    sizes.set(row[0], await kb(row));
  const [largest, largestKb] = [...sizes].reduce((a, b) => (b[1] > a[1] ? b : a));
  const mapKb = await kb(['/', '.map[data-drawn]']);
  await page.context().close();
  return [
    [`Scripts of \`${largest.replace(objectId(0), '<_id>')}\`, gzip`, largestKb, BARS.pageKb, 'kB'],
    [`Median of ${sizes.size} pages without a map`, median([...sizes.values()]), BARS.pageKb, 'kB'],
    ['Scripts of `/` with the map', mapKb, BARS.pageKb + BARS.mapKb, 'kB'],
  ];
}

/** With an empty cache each time, on a slow processor. */
async function measureStarts(given: Given): Promise<Row[]> {
  const first = await openLoggedIn(given);
  const storageState = await first.context().storageState();
  await first.context().close();
  const rows: Row[] = [];
  for (const { name, path, element, use } of STARTED_PAGES) {
    const paints: number[] = [];
    const interactions: number[] = [];
    const url = given.server.url + path;
    for (let nth = 0; nth < Math.min(STARTS, given.bench.seconds); nth++) {
      const watched = await openBrowserPage(given.browser, { storageState });
      paints.push((await (await createProbe(watched, SLOWDOWN)).start(url, element)).paintMs);
      await watched.context().close();
      // The first input ends the measurement of paints. It comes as soon as there is something to use, while the map is created.
      const used = await openBrowserPage(given.browser, { storageState });
      const probe = await createProbe(used, SLOWDOWN);
      await used.goto(url);
      await used.locator(element).first().waitFor();
      interactions.push(await probe.interactionMs(() => use(used)));
      await used.context().close();
    }
    const title = `\`${name}\`, ${SLOWDOWN} × slower`;
    rows.push([`Largest contentful paint of ${title}`, median(paints), BARS.paintMs, 'ms']);
    rows.push([`Interaction to next paint of ${title}`, median(interactions), BARS.interactionMs, 'ms']);
  }
  return rows;
}

/** Pages whose start is measured, and what a user does there. */
const STARTED_PAGES = [
  { name: '/', path: '/', element: '.row', use: useFirstPage },
  {
    name: '/objects/<_id>/live',
    path: `/objects/${objectId(0)}/live`,
    element: '.uplot',
    use: async (page: Page) => {
      for (const tab of ['Commands', 'Settings', 'Live']) await page.getByRole('link', { name: tab }).click();
    },
  },
] as const;

async function useFirstPage(page: Page): Promise<void> {
  await typeSlowly(page, 'truck');
  await page.locator('.row button').first().click();
  await page.getByRole('button', { name: /^Online/ }).click();
  await page.getByRole('button', { name: /^All/ }).click();
}
