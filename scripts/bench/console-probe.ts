// Measures a page of the console from inside: the largest paint, interactions, long tasks, frames, the share of the main thread, the heap.
import { setTimeout as wait } from 'node:timers/promises';
import type { CDPSession, Page } from 'playwright-core';

/** Runs before the scripts of the page. */
const PROBE = `(() => {
  const probe = (globalThis.probe = { tasks: [], interactions: [], paintMs: 0 });
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) probe.tasks.push([startTime, duration]);
  }).observe({ type: 'longtask', buffered: true });
  new PerformanceObserver((list) => {
    for (const { startTime } of list.getEntries()) probe.paintMs = startTime;
  }).observe({ type: 'largest-contentful-paint', buffered: true });
  new PerformanceObserver((list) => {
    for (const { interactionId, duration } of list.getEntries()) if (interactionId > 0) probe.interactions.push(duration);
  }).observe({ type: 'event', durationThreshold: 16, buffered: true });
})()`;

export interface Start {
  /** The largest contentful paint. */
  readonly paintMs: number;
  /** When the awaited element was there. */
  readonly shownMs: number;
}

export interface Probe {
  /** Opens an address, and measures until an element is there. */
  start(url: string, element: string): Promise<Start>;
  /** The longest time from a key or a click to the next paint (INP of few interactions). */
  interactionMs(run: () => Promise<unknown>): Promise<number>;
  /** The share of the main thread that is busy meanwhile, and its longest task. */
  busy(run: () => Promise<unknown>): Promise<{ share: number; longestMs: number }>;
  /** The same in time of the processor: without what other programs take, which make each task longer. */
  busyCpu(run: () => Promise<unknown>): Promise<{ share: number; longestMs: number }>;
  /** What is still reachable, in MiB. */
  heapMb(): Promise<number>;
  /** Frames per second while a function runs in the page before each. */
  frames(seconds: number, beforeEach?: string): Promise<number>;
}

const QUIET_MS = 500;
const SETTLE_MS = 3_000;
const POLL_MS = 100;
const BYTES_PER_MIB = 2 ** 20;

/** `slowdown`: so many times slower is the processor made. */
export async function createProbe(page: Page, slowdown = 1): Promise<Probe> {
  const session = await page.context().newCDPSession(page);
  await page.addInitScript(PROBE);
  await session.send('Performance.enable');
  if (slowdown > 1) await session.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
  return {
    start: (url, element) => measureStart(page, session, url, element),
    interactionMs: (run) => measureInteractions(page, run),
    busy: (run) => measureBusy(page, session, run),
    busyCpu: (run) => measureBusyCpu(page, session, run),
    async heapMb() {
      await session.send('HeapProfiler.collectGarbage');
      const { usedSize } = await session.send('Runtime.getHeapUsage');
      // Its own long task is reported by then, and counts for nobody.
      await wait(QUIET_MS);
      return usedSize / BYTES_PER_MIB;
    },
    frames: (seconds, beforeEach = '') =>
      page.evaluate(`new Promise((done) => {
        const beginMs = performance.now();
        let frames = 0;
        const step = () => {
          frames++;
          const passedMs = performance.now() - beginMs;
          ${beforeEach};
          if (passedMs < ${seconds * 1_000}) requestAnimationFrame(step);
          else done((frames * 1000) / passedMs);
        };
        requestAnimationFrame(step);
      })`),
  };
}

async function measureStart(page: Page, session: CDPSession, url: string, element: string): Promise<Start> {
  await page.addInitScript(`(() => {
    const look = () => {
      if (document.querySelector(${JSON.stringify(element)}) === null) return requestAnimationFrame(look);
      probe.shownMs = performance.now();
    };
    look();
  })()`);
  // Locators, and `evaluate` too, would put a script into the page that keeps its main thread busy for as long as the page itself.
  const read = async <T>(expression: string): Promise<T> =>
    (await session.send('Runtime.evaluate', { expression, returnByValue: true })).result.value as T;
  await page.goto(url);
  while ((await read('probe.shownMs')) === undefined) await wait(POLL_MS);
  // The largest element may follow the awaited one.
  await wait(SETTLE_MS);
  const { paintMs, shownMs } = await read<Start>('probe');
  return { paintMs, shownMs };
}

async function measureInteractions(page: Page, run: () => Promise<unknown>): Promise<number> {
  await page.evaluate('probe.interactions.length = 0');
  await run();
  // The browser reports an interaction some time after its paint.
  await wait(QUIET_MS);
  return (await page.evaluate('Math.max(16, ...probe.interactions)')) as number;
}

/** By how much a metric of the page, in seconds, grows in each second. */
async function measureShare(session: CDPSession, name: string, run: () => Promise<unknown>): Promise<number> {
  const read = async (): Promise<[number, number]> => {
    const { metrics } = await session.send('Performance.getMetrics');
    const of = (wanted: string): number => metrics.find((one) => one.name === wanted)?.value ?? Number.NaN;
    return [of(name), of('Timestamp')];
  };
  const [before, fromS] = await read();
  await run();
  const [after, toS] = await read();
  return (after - before) / (toS - fromS);
}

async function measureBusy(page: Page, session: CDPSession, run: () => Promise<unknown>) {
  await page.evaluate('probe.tasks.length = 0');
  const share = await measureShare(session, 'TaskDuration', run);
  const durations = (await page.evaluate('probe.tasks.map(([, duration]) => duration)')) as number[];
  return { share, longestMs: Math.max(0, ...durations) };
}

/** An event of a trace; `tdur`: its processor time in µs. */
interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

async function measureBusyCpu(page: Page, session: CDPSession, run: () => Promise<unknown>) {
  const browser = page.context().browser();
  await browser?.startTracing(page, { categories: ['toplevel'] });
  const share = await measureShare(session, 'ThreadTime', run);
  const { traceEvents } = JSON.parse(String(await browser?.stopTracing())) as { traceEvents: TraceEvent[] };
  const threads = traceEvents.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain');
  const isMain = ({ pid, tid }: TraceEvent): boolean => threads.some((one) => one.pid === pid && one.tid === tid);
  const tasks = traceEvents.filter((event) => event.name.endsWith('RunTask') && isMain(event));
  const longestUs = tasks.reduce((longest, { tdur = 0 }) => Math.max(longest, tdur), 0);
  return { share, longestMs: longestUs / 1_000 };
}
