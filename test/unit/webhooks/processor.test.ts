/** What webhooks make of a change. */
import { expect, test } from '@jest/globals';
import type { Change } from '../../../src/core/change.js';
import { parseWebhook, type WebhookSettings } from '../../../src/core/webhook.js';
import { createProcessor, type MessageTask, type ProcessorOptions } from '../../../src/webhooks/processor.js';
import type { Webhook } from '../../../src/webhooks/webhook.js';
import { positionOf } from '../../support/holdings.js';

const objectId = 'a'.repeat(24);
const TEXT = 'x'.repeat(60_000);

function createWebhook(nth: number, fields: { only?: string[] } = {}): Webhook {
  const settings = parseWebhook({ url: 'http://127.0.0.1/', ...fields }) as WebhookSettings;
  const stored = { id: String(nth).padStart(24, '0'), fields: { time: -1e12 } } as unknown as Webhook['stored'];
  return { stored, settings, rights: null, objects: null, groupAddress: null };
}

/** A processor of these webhooks, to which all events go. */
const processorOf = (webhooks: readonly Webhook[]) =>
  createProcessor({
    registry: { mayMatch: () => true, match: () => webhooks, isLater: () => false },
    findAudience: () => ['user:u1'],
    findFacts: () => null,
    now: () => 0,
  } as unknown as ProcessorOptions);

function packet(n: number): Change {
  const after = { _id: `p${n}`, _oid: objectId, time: n, text: TEXT };
  return {
    store: 'packets',
    kind: 'created',
    id: `p${n}`,
    before: null,
    after,
    changed: null,
    objectId,
    accessFields: null,
    accessFieldsBefore: null,
    json: Buffer.from(JSON.stringify(after)),
    bytes: 1,
    position: positionOf(n),
  };
}

test('keeps the text of a packet once for all webhooks that get the same', () => {
  const webhooks = Array.from({ length: 100 }, (_, nth) => createWebhook(nth, nth % 2 ? { only: ['text'] } : {}));
  const processor = processorOf(webhooks);
  const beforeBytes = process.memoryUsage().heapUsed;
  const kept = Array.from({ length: 30 }, (_, n) => processor.plan(packet(n), () => true) as readonly MessageTask[]);
  // One each would be 180 MB.
  expect(process.memoryUsage().heapUsed - beforeBytes).toBeLessThan(60_000_000);
  expect(kept.flat()).toHaveLength(3_000);
  expect(new Set(kept.flat().map(({ delivery }) => delivery.body)).size).toBe(30);
});

test('gives each webhook the fields that it wants', () => {
  const processor = processorOf([
    createWebhook(0),
    createWebhook(1, { only: ['speed'] }),
    createWebhook(2, { only: ['text'] }),
  ]);
  const tasks = processor.plan(packet(7), () => true) as readonly MessageTask[];
  expect(tasks.map(({ delivery }) => Object.keys(JSON.parse(delivery.body).data))).toEqual([
    ['_id', '_oid', 'time', 'text'],
    ['_id', '_oid', 'time', 'text'],
  ]);
  expect(tasks.map(({ delivery }) => delivery.handlerId.at(-1))).toEqual(['0', '2']);
});

/** A packet whose members are counted when they are decoded. */
function countingPacket(): { readonly change: Change; readonly decoded: string[] } {
  const decoded: string[] = [];
  const change = packet(7);
  const count = (name: 'after' | 'json') => {
    const value = change[name];
    Object.defineProperty(change, name, {
      get() {
        decoded.push(name);
        return value;
      },
    });
  };
  count('after');
  count('json');
  return { change, decoded };
}

test('decodes no packet of an object that no webhook may match', () => {
  const { change, decoded } = countingPacket();
  const processor = createProcessor({ registry: { mayMatch: () => false } } as unknown as ProcessorOptions);
  expect(processor.plan(change, () => true)).toEqual([]);
  expect(decoded).toEqual([]);
});

test('decodes a packet once for all webhooks that ask whether it reports presence', () => {
  const webhooks = Array.from({ length: 50 }, (_, nth) => {
    const webhook = createWebhook(nth);
    return { ...webhook, settings: { ...webhook.settings, events: new Set(['offline' as const]) } };
  });
  const { change, decoded } = countingPacket();
  expect(processorOf(webhooks).plan(change, () => true)).toEqual([]);
  expect(decoded).toEqual(['after']);
});
