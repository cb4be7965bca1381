/** What a failed test of the console leaves: a picture of each page that was open, and what its console said. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Page } from 'playwright-core';

const SCREENSHOT_MS = 10_000;
const NAME_LENGTH = 120;

export interface PageRecord {
  readonly page: Page;
  /** Errors of the script, of the console and of the policy. */
  readonly errors: readonly string[];
  /** Everything that the console said, and requests that failed. */
  readonly lines: readonly string[];
}

/** Records what a page says from now on. */
export function createRecord(page: Page): PageRecord {
  const errors: string[] = [];
  const lines: string[] = [];
  page.on('pageerror', (error) => {
    errors.push(String(error.stack));
    lines.push(`pageerror: ${error.stack}`);
  });
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
    lines.push(`${message.type()}: ${message.text()}`);
  });
  page.on('requestfailed', (request) =>
    lines.push(`${request.method()} ${request.url()}: ${request.failure()?.errorText}`),
  );
  page.on('response', (response) => {
    if (!response.ok()) lines.push(`${response.request().method()} ${response.url()}: ${response.status()}`);
  });
  return { page, errors, lines };
}

/** Leaves a picture and a log of each page in the folder of the test. */
export async function keepEvidence(testName: string, records: readonly PageRecord[]): Promise<void> {
  const folder = join(process.env.TEST_ARTIFACTS ?? resolve('test-failures'), toFolderName(testName));
  await mkdir(folder, { recursive: true });
  for (const [index, { page, lines }] of records.entries()) {
    const name = `page-${index + 1}`;
    await writeFile(join(folder, `${name}.log`), `${[page.url(), ...lines].join('\n')}\n`);
    // A page that has crashed has no picture.
    await page.screenshot({ path: join(folder, `${name}.png`), timeout: SCREENSHOT_MS }).catch(() => undefined);
  }
}

const toFolderName = (text: string): string =>
  text
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '')
    .slice(0, NAME_LENGTH);
