/** Rules whose expressions take many steps: together they take more than may be evaluated at once, and none of them misses a packet. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const RULES = 8;
/** Of the steps that all rules have together while a packet is looked at. */
const SHARE = 0.25;

test('raise and clear all their alarms', async () => {
  const id = entityOf(await service.admin('POST', 'objects', { id: 'truck', name: 'truck' }))._id;
  const text = 'a'.repeat(Math.min(LIMITS.expressionSteps * SHARE, LIMITS.packetBytes - 1_000));
  for (let nth = 0; nth < RULES; nth++) {
    const when = { expr: `size(p.text) > 3 && p.n > ${nth}` };
    entityOf(await service.admin('POST', 'rules', { name: `rule ${nth}`, when, select: { objects: [id] } }));
  }
  await service.settled();
  const alarmsOf = async (status: string): Promise<string[]> => {
    const { body } = await service.admin('GET', `alarms?where.object=${id}&where.status=${status}&limit=100`);
    return body.map(({ name }: { name: string }) => name).sort();
  };
  const names = Array.from({ length: RULES }, (_, nth) => `rule ${nth}`);
  for (const n of [0, 3, RULES, 0]) {
    entityOf(await service.admin('POST', `objects/${id}/packets`, { n, text }));
    const raised = names.slice(0, n);
    await until(async () => (await alarmsOf('raised')).join() === raised.join(), `${n} alarms`);
  }
  expect(await alarmsOf('cleared')).toEqual(names);
});
