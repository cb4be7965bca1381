/** Rules that have changed and wait to be read again: how often they are read, and who waits for them. */
import { expect, test } from '@jest/globals';
import { createRuleReloads, type RuleReloads } from '../../../src/alarms/rule-reloads.js';

const A = { ownerId: 'anna', groupId: 'a' };
const B = { ownerId: 'bert', groupId: 'b' };

interface Reading {
  readonly ids: readonly string[];
  end(error?: Error): void;
}

function create(): { reloads: RuleReloads; readings: Reading[]; begun: (count: number) => Promise<Reading> } {
  const readings: Reading[] = [];
  const reloads = createRuleReloads({
    log: { warn: () => undefined },
    read: (ids) =>
      new Promise<void>((resolve, reject) => {
        readings.push({ ids, end: (error) => (error === undefined ? resolve() : reject(error)) });
      }),
  });
  const begun = async (count: number): Promise<Reading> => {
    while (readings.length < count) await new Promise((resolve) => setImmediate(resolve));
    return readings[count - 1] as Reading;
  };
  return { reloads, readings, begun };
}

/** What has happened by the end of this turn of the event loop. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let done: boolean = false;
  promise.then(
    () => {
      done = true;
    },
    () => undefined,
  );
  await new Promise((resolve) => setImmediate(resolve));
  return done;
}

test('reads a rule once that changes often, with others', async () => {
  const { reloads, readings, begun } = create();
  for (let index = 0; index < 50; index++) reloads.add(`r${index % 2}`, [A]);
  const first = await begun(1);
  for (let index = 0; index < 50; index++) reloads.add('r1', [A]);
  first.end();
  (await begun(2)).end();
  await reloads.current(['group:a']);
  expect(readings.map(({ ids }) => ids)).toEqual([['r0', 'r1'], ['r1']]);
  expect(reloads.isEmpty()).toBe(true);
});

test('lets only those wait whom a rule may concern', async () => {
  const { reloads, begun } = create();
  reloads.add('r0', [A]);
  await begun(1);
  expect([['group:a'], ['group:x', 'user:anna'], ['group:b'], ['user:bert']].map(reloads.isPending)).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(await isDone(reloads.current(['group:b']))).toBe(true);
  expect(await isDone(reloads.current(['group:a']))).toBe(false);
  expect(await isDone(reloads.currentRule('r0'))).toBe(false);
});

test('waits for those who saw a rule before it changed, too', async () => {
  const { reloads, begun } = create();
  reloads.add('r0', [A, B]);
  await begun(1);
  expect(reloads.isPending(['group:a']) && reloads.isPending(['group:b'])).toBe(true);
});

test('ends a wait although the rule goes on changing', async () => {
  const { reloads, begun } = create();
  reloads.add('r0', [A]);
  const first = await begun(1);
  const waiting = reloads.current(['group:a']);
  reloads.add('r0', [A]);
  first.end();
  expect(await isDone(waiting)).toBe(true);
  expect(reloads.isPending(['group:a'])).toBe(true);
});

test('reads again what could not be read, and tells those who wait', async () => {
  const { reloads, begun } = create();
  reloads.add('r0', [A]);
  const first = await begun(1);
  const waiting = reloads.current(['group:a']);
  first.end(new Error('away'));
  await expect(waiting).rejects.toThrow('away');
  expect(reloads.isPending(['group:a'])).toBe(true);
  (await begun(2)).end();
  await reloads.current(['group:a']);
  expect(reloads.isEmpty()).toBe(true);
});
