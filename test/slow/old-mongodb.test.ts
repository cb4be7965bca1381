/** A MongoDB that is too old: the start says so and ends, whether the driver still speaks to it or not. */
import { expect, test } from '@jest/globals';
import { isListed, startFailing } from '../support/failed-start.js';
import { startOldMongod } from './old-mongod.js';

test.each([
  ['7.0.14', 21, 'it is 7.0.14'],
  ['4.0.28', 7, 'wire version 7'],
])('refuses MongoDB %s', async (version, wireVersion, reason) => {
  const { uri, stop } = await startOldMongod(version, wireVersion);
  const env = { MONGODB_URI: uri, SECRET: 'test-secret-0123456789-abcdefghijklmnop', MQTT_PORT: '' };
  const { code, said } = await startFailing(env);
  stop();
  const expected = 'The MongoDB of MONGODB_URI is too old, 8.0 or newer is needed: ';
  expect({ code, said }).toEqual({ code: 1, said: expect.stringMatching(`^${expected}.*${reason}`) });
  expect(isListed(said)).toBe(true);
});
