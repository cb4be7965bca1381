/** An instance that has not heard of a handler's new hands yet withholds none of their messages: it waits until it has. */
import { expect, test } from '@jest/globals';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { createBreaker } from '../../src/webhooks/breaker.js';
import type { Delivery, DeliveryResult } from '../../src/webhooks/deliveries.js';
import { deliver, UNTRIED_WAIT_MS } from '../../src/webhooks/delivery.js';
import { loadHandler } from '../../src/webhooks/handlers.js';
import type { Webhook } from '../../src/webhooks/webhook.js';
import { useService } from '../support/fixture.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8' } });

test('waits with a message of new hands, and withholds one of former hands', async () => {
  const database = databaseOf(service.client);
  const { body: handler } = await service.admin('POST', 'handlers', { url: 'http://127.0.0.1:1/' });
  const before = await loadHandler(database, handler._id);
  await service.admin('PATCH', `handlers/${handler._id}`, { url: 'http://127.0.0.1:2/' });
  const after = await loadHandler(database, handler._id);
  expect(after?.handover).not.toBe(before?.handover);
  const tried = async (known: typeof before, handover: string | null) => {
    const results: DeliveryResult[] = [];
    const waits: (number | null)[] = [];
    const parts = {
      database,
      results: { store: async (result: DeliveryResult) => void results.push(result) },
      findAudience: () => null,
      onOutcome: () => undefined,
      onGone: () => undefined,
      log: { warn: () => undefined },
      now: Date.now,
    };
    const breaker = createBreaker(() => undefined);
    const delivery = { id: 'a'.repeat(24), objectId: 'b'.repeat(24), attempts: 0, handover } as Delivery;
    const attempt = {
      webhook: { stored: known, rights: null } as Webhook,
      receiver: { breaker, running: 1 } as never,
      inBreaker: breaker.start(),
      group: [delivery],
      isBatch: false,
      signal: new AbortController().signal,
    };
    await deliver(parts, attempt, (waitMs) => void waits.push(waitMs));
    return { waits, states: results.map(({ state }) => state) };
  };
  expect(await tried(before, after?.handover ?? null)).toEqual({ waits: [UNTRIED_WAIT_MS], states: [] });
  expect(await tried(after, before?.handover ?? null)).toEqual({ waits: [null], states: ['withheld'] });
});
