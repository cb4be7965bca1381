/** The client loses and doubles no event, however often its connections break. */
import { expect, test } from '@jest/globals';
import type { EventTransport } from '../../src/client/client.js';
import { useService } from '../support/fixture.js';
import { reconnectOften } from '../support/reconnecting.js';

const RECONNECTIONS = 1_000;
const PATIENCE_MS = 600_000;
const TRANSPORTS: readonly EventTransport[] = ['server-sent-events', 'websocket'];

const service = useService();

test.each(TRANSPORTS)(
  `receives every event once through ${RECONNECTIONS} reconnections in Node.js, by %s`,
  async (transport) => {
    const { sent, received } = await reconnectOften(service, transport, RECONNECTIONS);
    expect(received).toEqual(sent);
  },
  PATIENCE_MS,
);
