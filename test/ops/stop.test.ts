/** The stop of the service, and the connections that are open then. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { startTestService } from '../support/fixture.js';

// Longer than a test lasts: a stop that waits for connections never ends.
Object.assign(LIMITS, { stopMs: 3_600_000 });

test('does not wait for connections on which nothing was ever sent', async () => {
  const service = await startTestService();
  const { hostname, port } = new URL(service.url);
  const unused = connect(Number(port), hostname);
  unused.on('error', () => undefined);
  await once(unused, 'connect');
  const closed = once(unused, 'close');
  await service.stop();
  await closed;
});
