/** What routes declare, compared with what the service does. */
import { expect, test } from '@jest/globals';
import { ROUTES } from '../../../src/openapi/all-routes.js';
import { isForAll, toRouteSegments } from '../../../src/platform/http/caller.js';
import { isList } from '../../../src/platform/http/rate-limit.js';

const routes = ROUTES.map(
  ({ method, path, limit, auth }) => [`${method} ${path}`, { method, path, limit, auth }] as const,
);
const limited = routes.filter(([, { auth }]) => auth !== 'none');

test('finds many routes', () => expect(limited.length).toBeGreaterThan(30));

test.each(limited)('declares what %s costs', (_name, { method, path, limit }) => {
  // The limiter sees a path without the prefix.
  const rest = path.replace(/^\/(?:api\/v1|objects)(?=\/)/, '');
  expect(isList({ method, path: rest }) ? 'list' : 'request').toBe(limit);
});

test.each(limited)('declares who may call %s', (_name, { path, auth }) => {
  const segments = toRouteSegments(path);
  expect(auth).toBe(isForAll(segments) || segments[0] === 'account' ? 'caller' : 'permission');
});
