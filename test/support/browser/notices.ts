/** Notices of the console, which a page shows for some seconds: recorded, because a test on a busy machine may look later than that. */
import type { Page } from 'playwright-core';
import { until } from '../until.js';

/** Runs in each page before its scripts. */
export const RECORD_NOTICES = `(() => {
  globalThis.shownNotices = [];
  new MutationObserver((mutations) => {
    for (const { target, addedNodes } of mutations)
      if (target instanceof Element && target.matches('.notices'))
        for (const node of addedNodes) shownNotices.push(node.textContent);
  }).observe(document, { subtree: true, childList: true });
})()`;

/** Waits until the page shows a notice with this text, or has shown one since it was loaded. */
export const untilNotice = (page: Page, text: string): Promise<void> =>
  until(
    async () => ((await page.evaluate('shownNotices')) as string[]).some((notice) => notice.includes(text)),
    `the notice “${text}”`,
  );
