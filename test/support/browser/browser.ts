/** A real browser for tests of the console: pages that are logged in, and that report every error. */
import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { launchChromium } from '../../../scripts/bench/chromium.js';
import { logIn } from '../../../scripts/bench/console-pages.js';
import { ADMIN, type TestService } from '../fixture.js';

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true } as const;
const FETCH_MS = 300_000;
const WAIT_MS = 30_000;

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

/** Every page of a test must be free of errors of the script, of the console and of the policy. */
export function useBrowser(service: TestService, moreArguments: readonly string[] = []): TestBrowser {
  let browser: Browser;
  let [errors, expected]: [string[], RegExp[]] = [[], []];
  beforeAll(async () => {
    browser = await launchChromium(moreArguments);
  }, FETCH_MS);
  afterAll(() => browser?.close());
  afterEach(async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
    const unexpected = errors.filter((error) => !expected.some((form) => form.test(error)));
    [errors, expected] = [[], []];
    expect(unexpected).toEqual([]);
  });
  const open: TestBrowser['open'] = async (path = '/', options = {}) => {
    const context = await browser.newContext({ locale: 'en-GB', ...options });
    context.setDefaultTimeout(WAIT_MS);
    const page = await context.newPage();
    page.on('pageerror', (error) => errors.push(String(error.stack)));
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text());
    });
    await page.goto(service.url + path);
    return page;
  };
  return {
    open,
    async openAs(path = '/', user = ADMIN, options = {}) {
      const page = await open(path, options);
      await logIn(page, user);
      return page;
    },
    expectErrors: (form) => void expected.push(form),
    phone: PHONE,
  };
}
