/** The stop of the service, and the connections that are open then. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../src/model/limits.js';
import { startTestService } from '../support/fixture.js';

test('does not wait for connections on which nothing was ever sent', async () => {
  const service = await startTestService();
  const { hostname, port } = new URL(service.url);
  const unused = connect(Number(port), hostname);
  unused.on('error', () => undefined);
  await once(unused, 'connect');
  const startMs = performance.now();
  const closed = once(unused, 'close').then(() => performance.now() - startMs);
  await service.stop();
  expect(await closed).toBeLessThan(LIMITS.stopMs / 2);
});
