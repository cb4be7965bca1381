/** Who may do what: credentials on paths, what can be granted, and that filter and addresses are one rule. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ObjectId } from 'mongodb';
import { scopeFilter } from '../../../src/db/documents.js';
import {
  addressesOf,
  audibleObjects,
  isCredential,
  mayCall,
  mayGrant,
  readersOf,
  scopeOf,
  toSegments,
} from '../../../src/model/access.js';
import { builtInStore } from '../../../src/model/stores.js';

const holder = (credentials: string[], scopes: string[] | null = null) => ({ credentials, scopes });

describe('a credential permits', () => {
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
  ])('%j: %s %p', (credential, asked, permitted) => {
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
  ])('the same for each spelling of a path: %s', (path, segments) => expect(toSegments(path)).toEqual(segments));

  test('nothing on a path whose encoding is broken', () => {
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
  ])('a token no more than its user: role %j, scopes %j: %p', (role, scopes, permitted) => {
    expect(mayCall(holder(role, scopes), 'GET', ['objects', '1'])).toBe(permitted);
  });
});

describe('text is a credential', () => {
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
  ])('%j: %p', (text, is) => expect(isCredential(text)).toBe(is));
});

describe('what is held covers what is granted', () => {
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
  ])('%j, %j: %p', (held, granted, covered) => expect(mayGrant(holder(held), granted)).toBe(covered));

  test('a narrowed token grants no more than its scopes', () => {
    expect(mayGrant(holder(['* /*'], ['GET /objects/*']), ['GET /objects/1'])).toBe(true);
    expect(mayGrant(holder(['* /*'], ['GET /objects/*']), ['GET /models'])).toBe(false);
    expect(mayGrant(holder(['GET /objects/*'], ['* /*']), ['GET /models'])).toBe(false);
  });

  test('nobody can call through a grant what they cannot call themselves', () => {
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

describe('the events of objects are heard', () => {
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
  ])('%j within %j: %j', (credentials, scopes, objects) => {
    expect(audibleObjects(holder(credentials, scopes))).toEqual(objects);
  });
});

/** What the filter means, said again in memory: any of the alternatives has the value, or holds it in a list. */
function fits(filter: ReturnType<typeof scopeFilter>, document: Record<string, ObjectId | ObjectId[]>): boolean {
  return (filter.$or as Record<string, ObjectId>[]).some((alternative) =>
    Object.entries(alternative).every(([field, wanted]) =>
      [document[field]].flat().some((value) => value?.equals(wanted)),
    ),
  );
}

test('who finds an entity in a list hears its events, and nobody else', () => {
  // Users and groups out of the same few ids: an id that is both must not be taken for the other.
  const id = fc.integer({ min: 1, max: 4 }).map((n) => String(n).padStart(24, '0'));
  const ids = fc.uniqueArray(id, { maxLength: 3 });
  const outcomes = { seen: 0, unseen: 0 };
  const caller = fc.record({ userId: id, groupId: id });
  fc.assert(
    fc.property(fc.record({ owner: id, branch: ids, access: ids }), caller, (entity, who) => {
      const document = {
        owner: new ObjectId(entity.owner),
        branch: entity.branch.map((one) => new ObjectId(one)),
        access: entity.access.map((one) => new ObjectId(one)),
      };
      const listed = fits(scopeFilter(builtInStore('objects'), scopeOf(who)), document);
      const heard = readersOf(entity).some((address) => addressesOf(scopeOf(who)).includes(address));
      expect(heard).toBe(listed);
      outcomes[listed ? 'seen' : 'unseen']++;
    }),
    { numRuns: 2_000 },
  );
  expect(Math.min(outcomes.seen, outcomes.unseen)).toBeGreaterThan(200);
});

test('an event goes once to each of its readers', () => {
  const [user, group] = ['000000000000000000000001', '000000000000000000000002'];
  expect(readersOf({ owner: user, branch: [group], access: [user] })).toEqual([`group:${group}`, `user:${user}`]);
});
