/** Sends begin in turns by tenant, and a few in each turn of the event loop. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { createTurns } from '../../../src/webhooks/turns.js';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('begins with a few of a long queue, and takes turns by tenant, however many queues one of them has', async () => {
  const left = new Map<string, number>([['few', 3]]);
  for (let nth = 0; nth < 50; nth++) left.set(`many-${nth}`, 50);
  const begun: string[] = [];
  const turns = createTurns<string>((queue) => {
    begun.push(queue);
    left.set(queue, (left.get(queue) ?? 0) - 1);
    return (left.get(queue) ?? 0) > 0;
  });
  for (const queue of left.keys()) turns.ask(queue === 'few' ? 'few' : 'many', queue);
  expect(begun).toEqual([]);
  await nextTurn();
  expect(begun).toHaveLength(LIMITS.webhookSendsPerTurn);
  expect(begun.slice(0, 6)).toEqual(['few', 'many-0', 'few', 'many-1', 'few', 'many-2']);
  while (begun.length < 50 * 50 + 3) await nextTurn();
  expect(new Set(begun.slice(6, 56)).size).toBe(50);
  await nextTurn();
  expect(begun).toHaveLength(50 * 50 + 3);
});

test('begins nothing more once it is stopped', async () => {
  const begun: string[] = [];
  const turns = createTurns<string>((queue) => begun.push(queue) > 0);
  turns.ask('tenant', 'queue');
  turns.stop();
  await nextTurn();
  await nextTurn();
  expect(begun).toEqual([]);
});
