/** One connection for all tabs: whatever happens to tabs, messages and connections, every tab has every event once, in order. */
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { VigilError } from '../../../src/client/client-error.js';
import { isLater } from '../../../src/console/tabs/messages.js';
import { isAfter } from '../../../src/core/position.js';
import { type Browser, createBrowser, LARGEST_LAG, type SimulatedTab } from '../../support/browser-tabs.js';
import { fc, runsOf } from '../../support/runs.js';

const MINUTE_MS = 60_000;

beforeAll(() => {
  Object.assign(globalThis, { MessageChannel: TaskChannel });
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
});
/** Node.js keeps running for a channel of its own. */
class TaskChannel {
  readonly port1 = { onmessage: (): void => undefined };
  readonly port2 = { postMessage: () => void setImmediate(() => this.port1.onmessage()) };
}

afterAll(() => void jest.useRealTimers());

/** Long enough for every pause and every patience. */
async function wait(browser: Browser, ms = 4 * MINUTE_MS): Promise<void> {
  await browser.deliverAll();
  for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
    await jest.advanceTimersByTimeAsync(1_000);
    await browser.deliverAll();
  }
}

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, nth) => from + nth);

async function openTabs(browser: Browser, count: number): Promise<SimulatedTab[]> {
  const tabs = Array.from({ length: count }, () => browser.openTab());
  await browser.deliverAll();
  return tabs;
}

test('gives every tab every event over one connection', async () => {
  const browser = createBrowser();
  const tabs = await openTabs(browser, 5);
  browser.publish(3);
  await browser.deliverAll();
  expect(tabs.map(({ seen, state }) => [seen, state])).toEqual(tabs.map(() => [[1, 2, 3], 'live']));
  expect(browser.opened).toBe(1);
});

test('tells a tab that opens later that it is live at once', async () => {
  const browser = createBrowser();
  await openTabs(browser, 1);
  browser.publish(3);
  await browser.deliverAll();
  const [late] = await openTabs(browser, 1);
  expect(late?.state).toBe('live');
  browser.publish();
  await browser.deliverAll();
  expect(late?.seen).toEqual([4]);
  expect(browser.opened).toBe(1);
});

test('goes on in another tab when the leader closes in the middle of a burst', async () => {
  const browser = createBrowser();
  const [leader, ...others] = await openTabs(browser, 4);
  browser.publish(50);
  for (let nth = 0; nth < 40; nth++) await browser.deliver(0.5);
  browser.closeTab(leader as SimulatedTab);
  browser.publish(50);
  await browser.deliverAll();
  for (const { seen, state } of others) expect([seen, state]).toEqual([numbers(1, 100), 'live']);
  expect(browser.connections.size).toBe(1);
});

test('takes over from a leader that stands still, which then follows', async () => {
  const browser = createBrowser();
  const [leader, other] = (await openTabs(browser, 2)) as [SimulatedTab, SimulatedTab];
  leader.isFrozen = true;
  browser.publish(2);
  await browser.deliverAll();
  expect(other.seen).toEqual([]);
  // Somebody looks at the other one.
  other.document.dispatchEvent(new Event('visibilitychange'));
  await wait(browser, 10_000);
  expect(other.seen).toEqual([1, 2]);
  leader.isFrozen = false;
  browser.publish();
  await wait(browser);
  expect([leader.seen, other.seen]).toEqual([
    [1, 2, 3],
    [1, 2, 3],
  ]);
  expect(browser.connections.size).toBe(1);
});

test('catches up over a connection of its own, for once, after it has stood still for long', async () => {
  const browser = createBrowser();
  const [, other] = (await openTabs(browser, 2)) as [SimulatedTab, SimulatedTab];
  other.document.dispatchEvent(new Event('freeze'));
  await browser.deliverAll();
  other.isFrozen = true;
  browser.publish(5_000);
  await browser.deliverAll();
  other.isFrozen = false;
  await wait(browser);
  browser.publish();
  await browser.deliverAll();
  expect(other.seen).toEqual(numbers(1, 5_001));
  expect([browser.opened, browser.connections.size]).toEqual([2, 1]);
});

test('tells every tab of a gap', async () => {
  const browser = createBrowser();
  const tabs = await openTabs(browser, 3);
  browser.publish();
  await browser.deliverAll();
  browser.cut();
  await browser.deliverAll();
  browser.publish(10);
  browser.forget();
  await wait(browser);
  browser.publish();
  await browser.deliverAll();
  expect(tabs.map(({ seen }) => seen)).toEqual(tabs.map(() => [1, null, 12]));
  expect(browser.connections.size).toBe(1);
});

test('has one connection again after the service was away', async () => {
  const browser = createBrowser();
  const tabs = await openTabs(browser, 10);
  browser.cut(new VigilError({ status: 503, message: 'Service Unavailable' }));
  await browser.deliverAll();
  expect(tabs.map(({ state }) => state)).toEqual(tabs.map(() => 'waiting'));
  browser.publish(20);
  browser.cut();
  await wait(browser);
  expect(tabs.map(({ seen, state }) => [seen, state])).toEqual(tabs.map(() => [numbers(1, 20), 'live']));
  expect(browser.connections.size).toBe(1);
});

test('ends the streams of all tabs with the session', async () => {
  const browser = createBrowser();
  const tabs = await openTabs(browser, 5);
  browser.cut(new VigilError({ status: 401, message: 'Unauthorized' }));
  await wait(browser);
  expect(tabs.map(({ endStatus }) => endStatus)).toEqual(tabs.map(() => 401));
  expect(browser.connections.size).toBe(0);
});

type Step = readonly [
  what: 'deliver' | 'publish' | 'change' | 'open' | 'close' | 'freeze' | 'thaw' | 'cut' | 'wait' | 'show' | 'forget',
  choice: number,
];

const steps = fc.array(
  fc.tuple(
    fc.oneof(
      { weight: 40, arbitrary: fc.constant('deliver' as const) },
      { weight: 15, arbitrary: fc.constant('publish' as const) },
      {
        weight: 6,
        arbitrary: fc.constantFrom('change', 'open', 'close', 'freeze', 'thaw', 'cut', 'wait', 'show', 'forget'),
      },
    ),
    fc.double({ min: 0, max: 0.999, noNaN: true }),
  ),
  { minLength: 50, maxLength: 300 },
) as fc.Arbitrary<Step[]>;

async function run(browser: Browser, [what, choice]: Step): Promise<void> {
  const alive = browser.tabs.filter(({ isAlive }) => isAlive);
  const tab = alive[Math.floor(choice * alive.length)];
  if (what === 'deliver') await browser.deliver(choice);
  else if (what === 'publish') browser.publish(Math.ceil(choice * 3));
  else if (what === 'change') browser.change();
  else if (what === 'open' && alive.length < 6) browser.openTab();
  else if (what === 'cut') browser.cut();
  else if (what === 'forget') browser.forget();
  else if (what === 'wait') await jest.advanceTimersByTimeAsync(choice * MINUTE_MS);
  else if (tab === undefined) return;
  else if (what === 'close' && alive.length > 1) browser.closeTab(tab);
  else if (what === 'thaw') tab.isFrozen = false;
  else if (what === 'freeze') {
    // Not every browser says so.
    if (choice < 0.5) tab.document.dispatchEvent(new Event('freeze'));
    await Promise.resolve();
    tab.isFrozen = true;
  } else if (what === 'show') tab.document.dispatchEvent(new Event('visibilitychange'));
}

test('loses, repeats and reorders nothing, whatever happens in which order', async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.infiniteStream(fc.nat(LARGEST_LAG)),
      fc.infiniteStream(fc.nat(9)),
      async (steps, lags, tenths) => {
        jest.spyOn(Math, 'random').mockImplementation(() => tenths.next().value / 10);
        const browser = createBrowser(() => lags.next().value);
        await openTabs(browser, 3);
        for (const step of steps) await run(browser, step);
        for (const tab of browser.tabs) tab.isFrozen = false;
        await wait(browser);
        browser.publish(2);
        await wait(browser);
        const alive = browser.tabs.filter(({ isAlive }) => isAlive);
        for (const { seen, liveFrom } of alive) {
          // From where it began, or from the last gap, to the last event.
          const since = seen.slice(seen.lastIndexOf(null) + 1) as number[];
          expect(since).toEqual(browser.events((since[0] ?? 0) - 1));
          if (!seen.includes(null)) expect(seen).toEqual(expect.arrayContaining(browser.events(liveFrom ?? 0)));
          // After a gap everything is read anew.
          for (const [index, nth] of seen.entries()) expect(nth ?? Infinity).toBeGreaterThan(seen[index - 1] ?? 0);
        }
        expect(browser.connections.size).toBe(1);
        for (const tab of alive) browser.closeTab(tab);
      },
    ),
    { numRuns: runsOf(2_000) },
  );
});

test('orders positions as the service does', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 12 }), fc.uint8Array({ maxLength: 12 }), (first, second) => {
      const [one, other] = [first, second].map((bytes) => Buffer.from(bytes).toString('base64url')) as [string, string];
      expect(isLater(one, other)).toBe(isAfter(one, other));
    }),
    { numRuns: runsOf(10_000) },
  );
});
