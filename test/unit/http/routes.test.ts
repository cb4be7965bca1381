/** What routes declare, compared with what the service does. */
import { expect, test } from '@jest/globals';
import { isForAll } from '../../../src/core/route-access.js';
import { DOCUMENTED_ROUTES, ROUTES } from '../../../src/openapi/all-routes.js';
import { toRouteSegments } from '../../../src/platform/http/caller.js';
import { createLimitFinder } from '../../../src/platform/http/route-limits.js';

const routes = ROUTES.map(
  ({ method, path, limit, auth }) => [`${method} ${path}`, { method, path, limit, auth }] as const,
);
const limited = routes.filter(([, { auth }]) => auth !== 'none');

test('finds many routes', () => expect(limited.length).toBeGreaterThan(30));

const findLimit = createLimitFinder(ROUTES);
const ID = '65a000000000000000000001';

test.each(DOCUMENTED_ROUTES.map(({ method, path, limit }) => [`${method} ${path}`, limit] as const))(
  'finds what %s costs, which every route declares: %s',
  (name, limit) => {
    const [method = '', path = ''] = name.split(' ');
    expect(findLimit(method, path.replace(/:store/g, 'trucks').replace(/:\w+/g, ID))).toBe(limit);
  },
);

test.each([
  ['GET', '/api/v1/geofences', 'list'],
  ['HEAD', '/API/v1/Objects/', 'list'],
  ['GET', '/api/v1/objects/x', 'request'],
  ['GET', '/api/v1/objects/x/packets', 'list'],
  ['GET', '/api/v1/OBJECTS/x/Packets', 'list'],
  ['DELETE', '/api/v1/objects/x/packets', 'list'],
  ['GET', '/api/v1/objects/x/packets/y', 'request'],
  ['GET', '/api/v1/objects/x/events', 'list'],
  ['GET', '/api/v1/events', 'interval'],
  ['GET', '/api/v1/series', 'list'],
  ['GET', '/api/v1/account', 'request'],
  ['GET', '/api/v1/account/tokens', 'list'],
  ['GET', '/api/v1/account/sessions', 'list'],
  ['PATCH', '/api/v1/trucks', 'list'],
  ['POST', '/api/v1/trucks', 'request'],
  ['POST', '/objects/x/commands/stop', 'request'],
  ['PUT', '/api/v1/objects', null],
  ['GET', '/api/v1/objects/x/y/z/a', null],
])('takes %s %s for %s', (method, path, limit) => expect(findLimit(method, path)).toBe(limit));

test.each(limited)('declares who may call %s', (_name, { path, auth }) => {
  const segments = toRouteSegments(path);
  expect(auth).toBe(isForAll(segments) || segments[0] === 'account' ? 'caller' : 'permission');
});
