/** Arrays of packets are parsed in turns where that takes long, so that others are served meanwhile. */
import { expect, test } from '@jest/globals';
import { parseFormulas } from '../../../src/core/formula.js';
import type { JsonObject } from '../../../src/core/json.js';
import { LIMITS } from '../../../src/core/limits.js';
import { declarationsOf } from '../../../src/core/model.js';
import { parseInTurns } from '../../../src/packets/packet.js';

// Every turn is over at once.
Object.assign(LIMITS, { turnMs: 0 });

const model = {
  type: 'subsystem',
  children: [{ type: 'argument', id: 'kmh', formula: 'p.speed * 3.6' }],
} as JsonObject;
const formulas = parseFormulas(model, () => undefined);
const CALCULATED = declarationsOf(
  model,
  0,
  (parameters) => formulas?.calculate(parameters, () => undefined) ?? { parameters: [], fail: () => undefined },
);
const PLAIN = declarationsOf(null);
const packets = (count: number): JsonObject[] => Array.from({ length: count }, (_, n) => ({ speed: 10, n }));

/** How often the event loop was free while `work` ran. */
async function countTurns(work: () => unknown): Promise<number> {
  let turns = 0;
  let isRunning = true;
  const count = (): void => {
    turns++;
    if (isRunning) setImmediate(count);
  };
  setImmediate(count);
  await work();
  isRunning = false;
  return turns;
}

test.each([2, 10, LIMITS.slicedPackets])('lets others run between %i packets with formulas', async (count) => {
  const turns = await countTurns(async () => {
    const { messages } = await parseInTurns(packets(count), CALCULATED, 0);
    expect(messages.map(({ parameters }) => parameters)).toEqual(packets(count).map((one) => ({ ...one, kmh: 36 })));
  });
  expect(turns).toBeGreaterThanOrEqual(count);
});

test('lets others run between many packets without formulas', async () => {
  const count = LIMITS.slicedPackets + 1;
  const turns = await countTurns(() => parseInTurns(packets(count), PLAIN, 0));
  expect(turns).toBeGreaterThanOrEqual(count);
});

test.each([
  ['few packets without formulas', packets(LIMITS.slicedPackets), PLAIN],
  ['one packet with formulas', { speed: 10 }, CALCULATED],
  ['a list of one packet with formulas', packets(1), CALCULATED],
] as const)('parses %s at once', (_about, body, declared) => {
  expect(parseInTurns(body, declared, 0)).toMatchObject({ refused: [] });
});

test('refuses more packets than a request may have', () => {
  expect(() => parseInTurns(packets(LIMITS.packetsPerRequest + 1), CALCULATED, 0)).toThrow('more than 10000 packets');
});
