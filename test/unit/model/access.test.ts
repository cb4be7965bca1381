/** Who may do what: credentials on paths, what can be granted, and who receives an event. */
import { describe, expect, test } from '@jest/globals';
import { audienceOf, isCredential, mayCall, permittedObjects, toSegments } from '../../../src/core/access.js';
import { mayGrant } from '../../../src/core/grants.js';
import { fc } from '../../support/runs.js';

const holder = (credentials: string[], scopes: string[] | null = null) => ({ credentials, scopes });

describe('a credential', () => {
  test.each<[credential: string, asked: string, permitted: boolean]>([
    ['* /*', 'GET /objects', true],
    ['* /*', 'DELETE /users/1/access/2', true],
    ['* /*', 'GET /', true],
    ['GET /*', 'GET /objects/1/packets', true],
    ['GET /*', 'POST /objects', false],
    ['GET /*', 'HEAD /objects', true],
    ['* /objects', 'GET /objects', true],
    ['* /objects', 'GET /objects/1', false],
    ['GET /objects/*', 'GET /objects', true],
    ['GET /objects/*', 'GET /objects/1', true],
    ['GET /objects/*', 'GET /objects/1/packets/2', true],
    ['GET /objects/*', 'GET /objectsx', false],
    ['GET /objects/*', 'GET /models', false],
    ['GET /objects/*', 'PATCH /objects/1', false],
    ['GET /objects/car', 'GET /objects/car', true],
    ['GET /objects/car', 'GET /objects/Car', false],
    ['GET /objects/car', 'GET /objects/carx', false],
    ['GET /objects/car', 'GET /objects/car/packets', false],
    ['GET /objects/car', 'GET /objects', false],
    ['POST /objects/*/commands/*', 'POST /objects/1/commands/open', true],
    ['POST /objects/*/commands/*', 'POST /objects/1/commands', true],
    ['POST /objects/*/commands/*', 'POST /objects/1/packets', false],
    ['POST /objects/*/commands/*', 'POST /objects/commands/open', false],
    ['POST /objects/*/commands/open', 'POST /objects/1/commands/open', true],
    ['POST /objects/*/commands/open', 'POST /objects/1/2/commands/open', false],
    ['GET /*/*', 'GET /objects/1', true],
    ['GET /*/*', 'GET /objects', true],
    ['GET /*/x', 'GET /objects/x', true],
    ['GET /*/x', 'GET /x', false],
    ['GET /api/v1/objects/*', 'GET /objects/1', true],
    ['GET /api/v1/*', 'GET /objects', true],
    ['GET /api/v1', 'GET /objects', false],
    ['GET /objects/', 'GET /objects', true],
    ['GET //objects', 'GET /objects', true],
    ['GET /', 'GET /objects', false],
    // As others write them: no slash in front, a name for any one segment.
    ['GET objects', 'GET /objects', true],
    ['GET objects', 'GET /objects/1', false],
    ['GET models/:id', 'GET /models/1', true],
    ['GET models/:id', 'GET /models', false],
    ['GET models/:id', 'GET /models/1/access', false],
    ['POST objects/:id/commands/:command', 'POST /objects/1/commands/open', true],
    ['POST objects/:id/commands/:command', 'POST /objects/1/commands', false],
    ['POST objects/:id/*', 'POST /objects/1/commands/open', true],
    ['GET /objects/:id', 'GET /objects/1', true],
    ['GET api/v1/objects/:id', 'GET /objects/1', true],
    ['GET :store/:id', 'GET /objects/1', true],
    ['GET /objects/:object', 'GET /objects/1', false],
    ['GET /objects/%3Aid', 'GET /objects/1', false],
    ['GET /objects/%3Aid', 'GET /objects/:id', true],
    // What is no credential permits nothing.
    ['get /*', 'GET /objects', false],
    ['GET *', 'GET /objects', false],
    ['GET  /*', 'GET /objects', false],
    ['*', 'GET /objects', false],
    ['', 'GET /objects', false],
    ['GET /.*', 'GET /objects', false],
  ])('decides: %j, %s: %p', (credential, asked, permitted) => {
    const [method, path] = asked.split(' ') as [string, string];
    expect(mayCall(holder([credential]), method, toSegments(path))).toBe(permitted);
  });

  test.each<[path: string, segments: string[]]>([
    ['/objects/1', ['objects', '1']],
    ['/objects/1/', ['objects', '1']],
    ['//objects///1', ['objects', '1']],
    ['/%6fbjects/a%2Fb', ['objects', 'a/b']],
    ['/objects/%D0%BA', ['objects', 'к']],
    ['/', []],
  ])('decides the same for each spelling of a path: %s', (path, segments) =>
    expect(toSegments(path)).toEqual(segments),
  );

  test('permits nothing on a path with invalid encoding', () => {
    expect(() => toSegments('/objects/%E0%A4%A')).toThrow(URIError);
    expect(() => toSegments('/objects/%ED%A0%80')).toThrow(URIError);
  });

  test.each<[role: string[], scopes: string[] | null, permitted: boolean]>([
    [['* /*'], null, true],
    [['* /*'], ['GET /objects/*'], true],
    [['* /*'], ['GET /models'], false],
    [['* /*'], [], false],
    [['GET /models'], ['* /*'], false],
    [[], ['* /*'], false],
    [[], null, false],
    [['GET /models', 'GET /objects/*'], ['GET /x', 'GET /objects'], false],
    [['GET /models', 'GET /objects/*'], ['GET /x', 'GET /objects/1'], true],
  ])('permits a token no more than its user: role %j, scopes %j: %p', (role, scopes, permitted) => {
    expect(mayCall(holder(role, scopes), 'GET', ['objects', '1'])).toBe(permitted);
  });
});

describe('the syntax of credentials', () => {
  test.each<[text: string, is: boolean]>([
    ['GET /objects/*', true],
    ['* /*', true],
    ['PATCH /', true],
    ['GET objects', true],
    ['GET models/:id', true],
    ['GET *', false],
    ['GET ', false],
    ['GET', false],
    ['get /x', false],
    ['GET /a b', false],
    ['GET  /a', false],
    [' GET /a', false],
    ['GET /a\n', false],
    ['', false],
    [`GET /${'x'.repeat(251)}`, true],
    [`GET /${'x'.repeat(252)}`, false],
  ])('accepts or refuses %j: %p', (text, is) => expect(isCredential(text)).toBe(is));
});

describe('the right to grant permissions', () => {
  test.each<[held: string[], granted: string[], covered: boolean]>([
    [['* /*'], ['* /*'], true],
    [['* /*'], [], true],
    [[], [], true],
    [[], ['GET /'], false],
    [['* /*'], ['GET /objects/*', 'POST /x'], true],
    [['GET /*'], ['* /objects'], false],
    [['GET /*'], ['GET /objects/*'], true],
    [['GET /objects/*'], ['GET /*'], false],
    [['GET /objects/*'], ['GET /objects'], true],
    [['GET /objects/*'], ['GET /objects/1/packets'], true],
    [['GET /objects/*'], ['GET /objects/*/packets'], true],
    [['GET /objects/*/packets'], ['GET /objects/*'], false],
    [['GET /objects/1'], ['GET /objects/*'], false],
    [['GET /objects/*'], ['GET objects/:id'], true],
    [['GET objects/:id'], ['GET /objects/1'], true],
    [['GET objects/:id'], ['GET objects/:other'], true],
    [['GET objects/:id'], ['GET /objects/*'], false],
    [['GET objects/:id'], ['GET /objects'], false],
    [['GET /objects/1'], ['GET objects/:id'], false],
    [['GET /objects/:object'], ['GET objects/:id'], false],
    [['GET /objects/1/*'], ['GET /objects/*/packets'], false],
    [['GET /objects/*/packets'], ['GET /objects/1/packets'], true],
    [['GET /api/v1/objects/*'], ['GET /objects/1'], true],
    [['GET /objects/*'], ['GET /api/v1/objects/1'], true],
    [['GET /objects/*'], ['GET /objects/', 'GET //objects/1'], true],
    [['GET /a', 'GET /b'], ['GET /a', 'GET /b'], true],
    [['GET /a', 'GET /b'], ['GET /a', 'GET /c'], false],
    [['* /*'], ['nonsense'], false],
  ])('covers: held %j, granted %j: %p', (held, granted, covered) =>
    expect(mayGrant(holder(held), granted)).toBe(covered),
  );

  test('limits a token to its scopes when it grants', () => {
    expect(mayGrant(holder(['* /*'], ['GET /objects/*']), ['GET /objects/1'])).toBe(true);
    expect(mayGrant(holder(['* /*'], ['GET /objects/*']), ['GET /models'])).toBe(false);
    expect(mayGrant(holder(['GET /objects/*'], ['* /*']), ['GET /models'])).toBe(false);
  });

  test('grants no calls that the grantor may not make', () => {
    const segment = fc.constantFrom('a', 'b', '*');
    const credential = fc
      .tuple(fc.constantFrom('GET', 'POST', '*'), fc.array(segment, { maxLength: 3 }))
      .map(([method, parts]) => `${method} /${parts.join('/')}`);
    const credentials = fc.array(credential, { minLength: 1, maxLength: 3 });
    const path = fc.array(fc.constantFrom('a', 'b'), { maxLength: 3 });
    let granted = 0;
    fc.assert(
      fc.property(
        ...([credentials, fc.option(credentials), credentials, fc.constantFrom('GET', 'POST'), path] as const),
        (held, scopes, wanted, method, segments) => {
          if (!mayGrant(holder(held, scopes), wanted) || !mayCall(holder(wanted), method, segments)) return;
          granted++;
          expect(mayCall(holder(held, scopes), method, segments)).toBe(true);
        },
      ),
      { numRuns: 20_000 },
    );
    expect(granted).toBeGreaterThan(100);
  });
});

describe('the objects whose events a caller receives', () => {
  test.each<[credentials: string[], scopes: string[] | null, objects: 'all' | string[]]>([
    [['* /*'], null, 'all'],
    [['GET /*'], null, 'all'],
    [['GET /objects/*'], null, 'all'],
    [['GET /objects'], null, []],
    [['GET objects/:id'], null, 'all'],
    [['POST /*'], null, []],
    [['GET /objects/car', 'GET /objects/van/*', 'POST /objects/bus'], null, ['car', 'van']],
    [['GET /objects/*'], ['GET /objects/car'], ['car']],
    [['GET /objects/car', 'GET /objects/van'], ['GET /objects/van', 'GET /objects/bus'], ['van']],
    [['GET /objects/*/packets'], null, []],
    [[], null, []],
  ])('depends on role %j and scopes %j: %j', (credentials, scopes, objects) => {
    expect(permittedObjects(holder(credentials, scopes))).toEqual(objects);
  });
});

test('addresses each recipient of an event once', () => {
  const user = '000000000000000000000001';
  const group = '000000000000000000000002';
  expect(audienceOf({ owner: user, branch: [group], access: [user] })).toEqual([`group:${group}`, `user:${user}`]);
});
