/** A real browser for tests of the console: pages that are logged in, that report every error, and that leave evidence of a failed test. */
import { basename } from 'node:path';
import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { launchChromium, PLAIN_PAGES } from '../../../scripts/bench/chromium.js';
import { logIn } from '../../../scripts/bench/console-pages.js';
import { LIMITS } from '../../../src/core/limits.js';
import { ADMIN, type TestService } from '../fixture.js';
import { createRecord, keepEvidence, type PageRecord } from './evidence.js';
import { RECORD_NOTICES } from './notices.js';

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true } as const;
const WAIT_MS = 60_000;
/** The arguments of a browser whose pages have no map, for tests of what is beside it: a map takes most of the time of its page. */
export const WITHOUT_MAPS: readonly string[] = ['--disable-3d-apis'];

// The service shares a process with what drives the browser: on a busy machine it may stand still for longer than it waits for its
// database, and would answer that the database is away.
Object.assign(LIMITS, {
  databaseConnectMs: WAIT_MS,
  databaseSelectionMs: WAIT_MS,
  databaseAnswerMs: WAIT_MS,
  databaseOperationMs: WAIT_MS,
  listWaitMs: WAIT_MS,
});

export interface TestBrowser {
  /** A page of a new browser profile, at this path. */
  open(path?: string, options?: BrowserContextOptions): Promise<Page>;
  /** The same, logged in; as the administrator by default. */
  openAs(path?: string, user?: { login: string; password: string }, options?: BrowserContextOptions): Promise<Page>;
  /** Errors that a test causes on purpose. */
  expectErrors(form: RegExp): void;
  readonly phone: BrowserContextOptions;
}

/** Returns when the effects of what is shown have run: Preact runs them after the next frame. */
export const effectsRun = (page: Page): Promise<void> =>
  page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))');

/** The browsers of a test file, by their arguments. */
const browsers = new Map<string, Promise<Browser>>();
afterAll(async () => {
  for (const launched of browsers.values()) await (await launched).close();
});

/** Every page of a test must be free of errors of the script, of the console and of the policy. Parts of a file share one browser. */
export function useBrowser(service: Pick<TestService, 'url'>, moreArguments: readonly string[] = []): TestBrowser {
  const key = moreArguments.join(' ');
  const contexts = new Set<BrowserContext>();
  const sessions = new Map<string, Session>();
  let records: PageRecord[] = [];
  let expected: RegExp[] = [];

  beforeAll(async () => {
    if (!browsers.has(key)) browsers.set(key, launchChromium([PLAIN_PAGES, ...moreArguments]));
    await browsers.get(key);
  });
  afterEach(async () => {
    const errors = records.flatMap((record) => record.errors);
    const unexpected = errors.filter((error) => !expected.some((form) => form.test(error)));
    if (unexpected.length > 0 || currentTest.hasFailed) await keepEvidence(testName(), records);
    await Promise.all([...contexts].map((context) => context.close()));
    contexts.clear();
    records = [];
    expected = [];
    expect(unexpected).toEqual([]);
  });

  const open: TestBrowser['open'] = async (path = '/', options = {}) => {
    const browser = await browsers.get(key);
    if (browser === undefined) throw new Error('no browser: pages are opened in tests');
    const context = await browser.newContext({ locale: 'en-GB', ...options });
    contexts.add(context);
    context.setDefaultTimeout(WAIT_MS);
    await context.addInitScript(RECORD_NOTICES);
    const page = await context.newPage();
    records.push(createRecord(page));
    await page.goto(service.url + path);
    return page;
  };
  return {
    open,
    async openAs(path = '/', user = ADMIN, options = {}) {
      const storageState = sessions.get(user.login);
      if (storageState !== undefined && (await isValid(service, storageState)))
        return open(path, { ...options, storageState });
      const page = await open(path, options);
      await logIn(page, user);
      sessions.set(user.login, await page.context().storageState());
      return page;
    },
    expectErrors: (form) => void expected.push(form),
    phone: PHONE,
  };
}

type Session = Awaited<ReturnType<BrowserContext['storageState']>>;

/** Whether the session of an earlier test goes on: a page that begins with an ended one reports an error. */
async function isValid({ url }: Pick<TestService, 'url'>, { cookies }: Session): Promise<boolean> {
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
  return (await fetch(`${url}/api/v1/auth`, { headers: { cookie } })).ok;
}

/** What the environment of the test says about it (environment.mjs). */
declare const currentTest: { readonly hasFailed: boolean };

function testName(): string {
  const { currentTestName = '', testPath = '' } = expect.getState();
  return `${basename(testPath, '.test.ts')} ${currentTestName}`;
}
