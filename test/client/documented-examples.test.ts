/** The examples of docs/reference/client.md, run in order as one program. */

import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { createClient, VigilError } from '../../src/client/client.js';
import { readBlocks } from '../support/docs/markdown.js';
import { ADMIN, useService } from '../support/fixture.js';

const service = useService();
const blocks = readBlocks(readFileSync('docs/reference/client.md', 'utf8')).filter(({ kind }) => kind === 'js');

test('runs every example', async () => {
  const program = blocks
    .map(({ body }) => body.replace(/^import .*$/gm, ''))
    .join('\n')
    .replace('http://127.0.0.1:8080', service.url);
  const printed: unknown[][] = [];
  const vigil = createClient({ url: service.url, login: ADMIN });
  let isRunning = true;
  const sending = (async () => {
    while (isRunning) await vigil.objects.addPackets('truck-7', [{ speed: 43 }]).catch(() => undefined);
  })();
  const run = new Function('createClient', 'VigilError', 'console', `return (async () => {${program}})()`);
  await run(createClient, VigilError, { log: (...words: unknown[]) => printed.push(words) }).finally(() => {
    isRunning = false;
  });
  await sending;
  const first = printed.map(([word]) => word);
  expect(blocks.length).toBeGreaterThanOrEqual(5);
  expect(first).toEqual(expect.arrayContaining(['Truck 7', 'live', 'object-packet', 404]));
});
