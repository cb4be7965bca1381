/** The messages of webhooks in the AsyncAPI document: docs/reference/webhooks.md. */

import { PRESENCE_EVENTS } from '../core/event-names.js';
import { LIMITS } from '../core/limits.js';
import { type Part, schemaRef } from '../platform/http/schema.js';

const TEXT: Part = { type: 'string' };
const TIMESTAMP: Part = { ...TEXT, format: 'date-time', description: 'When it happened' };
const POSITION: Part = {
  ...TEXT,
  description: 'The position of the live event; absent if the event was read from storage',
};

const HEADERS: Part = {
  type: 'object',
  properties: {
    'webhook-id': { ...TEXT, description: 'The same for each attempt: ignore an id that you have processed' },
    'webhook-timestamp': {
      ...TEXT,
      pattern: '^[0-9]+$',
      description: 'The time of the attempt, in seconds since the epoch',
    },
    'webhook-signature': { ...TEXT, description: '`v1,` and a signature for each valid secret, separated by spaces' },
  },
  required: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
};

/** One message: `data` is the first argument of the live event. */
const messageOf = (type: string, data: Part): Part => ({
  type: 'object',
  properties: { type: { const: type }, timestamp: TIMESTAMP, position: POSITION, data },
  required: ['type', 'timestamp', 'data'],
});

const PARTS = {
  servers: {
    receivers: {
      host: '{host}',
      protocol: 'https',
      variables: { host: { default: 'example.com' } },
      description: 'The `url` of a handler',
    },
  },
  securitySchemes: {
    signature: {
      type: 'httpApiKey',
      in: 'header',
      name: 'webhook-signature',
      description: 'HMAC-SHA256 of `webhook-id`, `webhook-timestamp` and the body with the secret of the handler',
    },
  },
};

interface Event {
  readonly name: string;
  readonly payload: Part;
}

/** The messages for these live events, and those that only webhooks have. */
export function createWebhookMessages(
  events: readonly Event[],
): Record<'servers' | 'channels' | 'messages' | 'operations' | 'securitySchemes', Part> {
  const presence = PRESENCE_EVENTS.map((name) => messageOf(name, schemaRef('Packet')));
  const test = messageOf('webhook-test', { type: 'object', properties: { handler: TEXT }, required: ['handler'] });
  const single = { anyOf: [...events.map(({ name, payload }) => messageOf(name, payload)), ...presence] };
  const items = { type: 'array', items: single, maxItems: LIMITS.webhookBatch };
  const bodies: Record<string, { summary: string; payload: Part }> = {
    webhook: { summary: 'One event, in the mode `object`', payload: single },
    'webhook-batch': {
      summary: 'Several events in their order, in the mode `batch`',
      payload: messageOf('batch', items),
    },
    'webhook-test': { summary: 'The message of `POST /handlers/:id/test`', payload: test },
  };
  const names = Object.keys(bodies);
  return {
    ...PARTS,
    channels: {
      webhooks: {
        address: null,
        title: 'Webhooks',
        description:
          'Vigil sends a POST to the `url` of a handler, signed as Standard Webhooks describes, and repeats it until the ' +
          'receiver answers with a status of 200 to 299.',
        servers: [{ $ref: '#/servers/receivers' }],
        messages: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/messages/${name}` }])),
      },
    },
    messages: Object.fromEntries(
      names.map((name) => [
        name,
        { name, title: name, contentType: 'application/json', headers: HEADERS, ...bodies[name] },
      ]),
    ),
    operations: {
      call: {
        action: 'send',
        channel: { $ref: '#/channels/webhooks' },
        summary: 'Each event goes to the handlers that select it and whose owner may see the object',
        messages: names.map((name) => ({ $ref: `#/channels/webhooks/messages/${name}` })),
        security: [{ $ref: '#/components/securitySchemes/signature' }],
        bindings: { http: { method: 'POST' } },
      },
    },
  };
}
