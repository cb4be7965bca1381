// Measures the console with fleets: one that sends packets, and a large one.
import { setTimeout as wait } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { BARS, type ConsoleBench, fleetOf, type Given, openLoggedIn, type Row } from './console-bench.js';
import { openPage, typeSlowly } from './console-pages.js';
import { createProbe } from './console-probe.js';
import { objectId } from './data.js';
import { whilePosting } from './posting.js';
import { format } from './stats.js';

const PACKETS_PER_SECOND = 1_000;
const CHART_PACKETS_PER_SECOND = 10;
const WARM_MS = 6_000;
const MINUTE_MS = 60_000;
const CPU_MS = 15_000;
const FRAMES_SECONDS = 4;
const SCROLL_PX = 25;

/** The times of the measurements, which a short bench shortens. */
const timesOf = ({ seconds }: ConsoleBench) => ({
  warmMs: Math.min(WARM_MS, seconds * 1_000),
  cpuMs: Math.min(CPU_MS, seconds * 1_000),
  framesSeconds: Math.min(FRAMES_SECONDS, seconds),
});

/** Frames of a chart that goes on. */
export async function measureChart(given: Given): Promise<Row[]> {
  const { warmMs, framesSeconds } = timesOf(given.bench);
  const page = await openLoggedIn(given);
  const probe = await createProbe(page);
  const paced = { packetsPerSecond: CHART_PACKETS_PER_SECOND, packetsPerPost: 1 };
  const frames = await whilePosting({ target: given.server, size: fleetOf(1), paced }, async () => {
    await openPage(page, given.server.url, [`/objects/${objectId(0)}/live`, '.uplot']);
    await wait(warmMs / 2);
    return probe.frames(framesSeconds);
  });
  await page.context().close();
  return [[`A chart with ${CHART_PACKETS_PER_SECOND} packets/s`, frames, BARS.frames, 'frames/s']];
}

/** What a fleet that sends packets costs the page that shows it. */
export async function measureLive(given: Given): Promise<Row[]> {
  const { bench, server, size } = given;
  const { warmMs, cpuMs } = timesOf(bench);
  const page = await openLoggedIn(given);
  const probe = await createProbe(page);
  await page.goto(server.url);
  await waitForAll(page, size.objects);
  const paced = { packetsPerSecond: PACKETS_PER_SECOND, packetsPerPost: 1, isSpread: true };
  const durationMs = bench.seconds * 1_000;
  const firstMs = Math.min(MINUTE_MS, durationMs / 2);
  const [first, last, busy, cpu] = await whilePosting({ target: server, size, paced }, async () => {
    await wait(warmMs);
    const cpu = await probe.busyCpu(() => wait(cpuMs));
    const begin = await probe.busy(() => wait(firstMs));
    const first = await probe.heapMb();
    const rest = await probe.busy(() => wait(durationMs - firstMs));
    return [first, await probe.heapMb(), [begin, rest], cpu] as const;
  });
  await page.context().close();
  const title = `${format(size.objects)} objects, ${format(PACKETS_PER_SECOND)} packets/s`;
  const share = (busy[0].share * firstMs + busy[1].share * (durationMs - firstMs)) / durationMs;
  return [
    [`${title}: the main thread`, share * 100, BARS.sharePercent, '%'],
    ['… its longest task (0: below 50)', Math.max(...busy.map(({ longestMs }) => longestMs)), BARS.taskMs, 'ms'],
    ['… processor time of the main thread', cpu.share * 100, BARS.sharePercent, '%'],
    ['… and of its longest task', cpu.longestMs, BARS.taskMs, 'ms'],
    [`… heap after ${format(firstMs / 1_000)} s`, first, BARS.heapMb, 'MiB'],
    [`… heap after ${format(bench.seconds)} s`, last, BARS.heapMb, 'MiB'],
  ];
}

/** Until the list has every object. */
const waitForAll = (page: Page, objects: number): Promise<unknown> =>
  page.locator('.chip', { hasText: `All ${objects.toLocaleString('en-GB')}` }).waitFor();

/** How a large fleet is opened, searched and scrolled. */
export async function measureMany(given: Given): Promise<Row[]> {
  const { bench, server, size } = given;
  const { warmMs, framesSeconds } = timesOf(bench);
  const page = await openLoggedIn(given);
  const probe = await createProbe(page);
  const { shownMs } = await probe.start(server.url, '.row');
  await waitForAll(page, size.objects);
  // Without a graphics card, the map is drawn for long after the rows are there.
  await page.locator('.map[data-drawn]').waitFor();
  await wait(warmMs);
  const keyMs = await probe.interactionMs(() => typeSlowly(page, 'truck 4'));
  await page.getByRole('searchbox').fill('');
  await wait(warmMs);
  const frames = await probe.frames(
    framesSeconds,
    `document.querySelector('.virtual-list').scrollTop = (passedMs * ${SCROLL_PX * 60}) / 1000`,
  );
  const heapMb = await probe.heapMb();
  await page.context().close();
  const title = `${format(size.objects)} objects`;
  return [
    [`${title}: the first rows`, shownMs, BARS.rowsMs, 'ms'],
    ['… from a key in the search to the next paint', keyMs, BARS.interactionMs, 'ms'],
    ['… scrolling the list', frames, BARS.frames, 'frames/s'],
    ['… heap', heapMb, null, 'MiB'],
  ];
}
