// What the measurements of the console have in common: the bars, the data, and pages of a user who is logged in.
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { logIn } from './console-pages.js';
import { LOGIN, type Size } from './data.js';
import type { Place, RunningServer } from './servers.js';

export interface ConsoleBench {
  readonly place: Place;
  /** How long the live fleet sends. */
  readonly seconds: number;
  /** So many times the objects. */
  readonly scale: number;
  readonly say: (text: string) => void;
}

/** What was measured beside its bar; without one, there is none. */
export type Row = readonly [title: string, value: number, bar: number | null, unit: string];

export const BARS = {
  pageKb: 60,
  mapKb: 460,
  basemapKb: 300,
  /** What browsers call good: the largest contentful paint, and the interaction to the next paint. */
  paintMs: 2_500,
  interactionMs: 200,
  sharePercent: 25,
  taskMs: 100,
  heapMb: 60,
  rowsMs: 1_500,
  frames: 55,
  buildMs: 3_000,
};
const WAIT_MS = 120_000;

/** One packet of each object. */
export const fleetOf = (objects: number): Size => ({
  objects,
  histories: objects,
  packets: 1,
  longHistories: 0,
  longPackets: 0,
  loadShare: 1,
});

export interface Given {
  readonly bench: ConsoleBench;
  readonly browser: Browser;
  readonly server: RunningServer;
  readonly size: Size;
}

export async function openBrowserPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ locale: 'en-GB', ...options });
  context.setDefaultTimeout(WAIT_MS);
  return context.newPage();
}

/** A page of a user who is logged in. */
export async function openLoggedIn({ browser, server }: Given): Promise<Page> {
  const page = await openBrowserPage(browser);
  await page.goto(`${server.url}/account/profile`);
  await logIn(page, LOGIN);
  return page;
}
