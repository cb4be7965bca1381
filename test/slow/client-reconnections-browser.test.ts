/** The client in a browser loses and repeats no event, however often its connections break. */
import { expect, test } from '@jest/globals';
import { build } from 'esbuild';
import type { EventTransport } from '../../src/client/client.js';
import { useBrowser } from '../support/browser/browser.js';
import { ADMIN, useService } from '../support/fixture.js';
import { runsOf } from '../support/runs.js';

const RECONNECTIONS = runsOf(1_000);
const TRANSPORTS: readonly EventTransport[] = ['server-sent-events', 'websocket'];

const service = useService();
const browser = useBrowser(service);

test.each(TRANSPORTS)(
  `receives every event once through ${RECONNECTIONS} reconnections in a browser, by %s`,
  async (transport) => {
    const options = { bundle: true, write: false, format: 'iife', platform: 'browser' } as const;
    const { outputFiles } = await build({ entryPoints: ['test/support/browser/cutting-page.ts'], ...options });
    const page = await browser.open('/', { bypassCSP: true });
    await page.addScriptTag({ content: outputFiles[0]?.text ?? '' });
    const given = { login: ADMIN, transport, reconnections: RECONNECTIONS };
    await page.evaluate(`beginCuts(${JSON.stringify(given)})`);
    // A repeated event would arrive before this.
    await service.settled();
    const { sent, received } = (await page.evaluate('endCuts()')) as { sent: number[]; received: unknown[] };
    expect(sent.length).toBeGreaterThanOrEqual(RECONNECTIONS);
    expect(received).toEqual(sent);
  },
);
