/** The pause of a webhook after failures, which each instance makes for itself, ends in all of them when somebody sends a message again. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { startSecond, type TestService, useService } from '../support/fixture.js';
import { OK, useReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

// No probe and no retry ends the pause before the test does.
Object.assign(LIMITS, { partitionTickMs: 100, webhookProbeMs: 3_600_000, webhookProbeMaxMs: 3_600_000 });
const OBJECTS = 64;
const env = { WEBHOOK_NETWORKS: '127.0.0.1', OPS_PORT: '0' };
const service = useService({ env });
const receiver = useReceiver();
const endings: (() => unknown)[] = [];
const instances: TestService[] = [];

beforeAll(async () => {
  instances.push(service, await startSecond(service, endings, { env }));
});
afterAll(() => Promise.all(endings.map((end) => end())));

async function metricOf({ service: { opsUrl } }: TestService, name: string): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
}
const everywhere = async (name: string, wanted: (value: number) => boolean): Promise<boolean> =>
  (await Promise.all(instances.map((one) => metricOf(one, name)))).every(wanted);

test('ends in every instance, whichever has the message and whichever was asked', async () => {
  const half = LIMITS.partitions / 2;
  await until(() => everywhere('vigil_processing_partitions', (count) => count === half), 'each has half of them');
  receiver.answer = (_received, res) => void res.writeHead(500).end();
  const { body: handler } = await service.admin('POST', 'handlers', { url: receiver.url, events: ['object-packet'] });
  await service.settled();
  for (let n = 0; n < OBJECTS; n++) {
    const { body } = await service.admin('POST', 'objects', { id: `paused-${n}`, name: 'x' });
    await service.admin('POST', `objects/${body._id}/packets`, { n });
  }
  await until(() => everywhere('vigil_webhook_breakers_open', (count) => count === 1), 'both pause');
  receiver.answer = OK;
  const { body: waiting } = await service.admin('GET', `handlers/${handler._id}/deliveries?where.attempts=0&limit=1`);
  const retried = `handlers/${handler._id}/deliveries/${waiting[0]._id}/retry`;
  expect((await service.admin('POST', retried)).status).toBe(200);
  await until(() => everywhere('vigil_webhook_breakers_open', (count) => count === 0), 'both go on');
  const read = async (): Promise<string[]> =>
    (await service.admin('GET', `handlers/${handler._id}/deliveries`)).body.map(
      ({ state }: { state: string }) => state,
    );
  await until(async () => (await read()).every((state) => state === 'delivered'), 'everything is delivered');
  expect((await service.admin('GET', `handlers/${handler._id}`)).body).not.toHaveProperty('_resumed');
});
