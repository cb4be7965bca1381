/** Long work in slices: however much of it there is, one slice runs in a turn of the event loop. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { eachInSlices, mapInSlices } from '../../../src/platform/slices.js';

// A slice is one item.
Object.assign(LIMITS, { turnMs: 0 });

test('runs one slice in a turn, of all work in turn', async () => {
  let turn = 0;
  let isRunning = true;
  const count = (): void => {
    turn++;
    if (isRunning) setImmediate(count);
  };
  setImmediate(count);
  const done: [turn: number, work: string, item: number][] = [];
  const run = (work: string, items: readonly number[]) =>
    mapInSlices(items, (item) => {
      done.push([turn, work, item]);
      return item * 2;
    });
  const results = await Promise.all([run('a', [1, 2, 3]), run('b', [1, 2, 3]), run('c', [1]), run('d', [])]);
  isRunning = false;
  expect(results).toEqual([[2, 4, 6], [2, 4, 6], [2], []]);
  expect(done.map(([, work, item]) => `${work}${item}`)).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'b3']);
  expect(new Set(done.map(([at]) => at)).size).toBe(done.length);
});

test('goes on with the others when one fails', async () => {
  const fail = mapInSlices([1, 2], (item) => {
    if (item === 2) throw new Error('no such item');
    return item;
  });
  const others = mapInSlices([1, 2, 3], (item) => item);
  await expect(fail).rejects.toThrow('no such item');
  expect(await others).toEqual([1, 2, 3]);
});

test('makes the next item when the one before is used, and has been waited for', async () => {
  const done: string[] = [];
  function* make(): Generator<number> {
    for (const item of [1, 2]) {
      done.push(`made ${item}`);
      yield item;
    }
  }
  await eachInSlices(make(), (item) => {
    done.push(`used ${item}`);
    return item === 2 ? null : Promise.resolve().then(() => void done.push(`waited for ${item}`));
  });
  expect(done).toEqual(['made 1', 'used 1', 'waited for 1', 'made 2', 'used 2']);
});
