/** Security events: their content, their audience, and the absence of secrets. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID, OPERATOR_ROLE_ID, ROOT_GROUP_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson, openSession, type Person, withCookie } from '../support/callers.js';
import { type Answer, type Call, startTestService, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

// Nearly every test waits for it.
Object.assign(LIMITS, { auditDelayMs: 200 });

const service = useService();
const events = () => service.client.db().collection('audit');
const make = async (path: string, fields: object, call: Call = service.admin) =>
  entityOf(await call('POST', path, fields));

let groups: { north: string; south: string };
let marker: Person;
let admins: { north: Person; south: Person };
beforeAll(async () => {
  groups = { north: (await make('groups', { name: 'north' }))._id, south: (await make('groups', { name: 's' }))._id };
  const admin = (group: string) => createPerson(service, { group, role: ADMINISTRATOR_ROLE_ID });
  marker = await createPerson(service);
  admins = { north: await admin(groups.north), south: await admin(groups.south) };
});

// biome-ignore lint/suspicious/noExplicitAny: events of every shape
type AuditEvent = any;

/** The events since the last call. It causes one more event: what happened before it is stored with it. */
let since = new ObjectId('0'.repeat(24));
async function takeEvents(): Promise<AuditEvent[]> {
  const path = `/labels/mark-${new ObjectId()}`;
  await marker.call('DELETE', path.slice(1));
  await until(() => events().findOne({ path }), 'the mark to be stored');
  const found = await events()
    .find({ _id: { $gt: since }, path: { $not: /^\/labels\/mark-/ } }, { sort: { time: 1, _id: 1 } })
    .toArray();
  since = (await events().findOne({ path }))?._id as ObjectId;
  return found;
}

/** The event of one request. */
async function eventOf(act: () => Promise<Answer>): Promise<AuditEvent> {
  const requestId = (await act()).headers['x-request-id'];
  await until(() => events().findOne({ requestId }), 'the event to be stored');
  const found = await events().find({ requestId }).toArray();
  expect(found).toHaveLength(1);
  return found[0];
}

describe('the security log', () => {
  let person: Person;
  let cookie: string;
  let object: string;
  beforeAll(async () => {
    person = await createPerson(service, { group: groups.north, role: ADMINISTRATOR_ROLE_ID });
    cookie = await openSession(service, person);
    object = (await make('objects', { id: `o-${new ObjectId()}`, name: 'x' }, person.call))._id;
    // Identical events would be combined with these.
    await takeEvents();
  });
  const credentials = () => ({ login: person.login, password: person.password });
  const by = (method: string, path: string, body?: object) => () => person.call(method, path, body);
  const newUser = () => ({ login: `u-${new ObjectId()}`, password: 'long enough', group: groups.north });

  test.each<[string, () => () => Promise<Answer>, object]>([
    ['login', () => () => service.as(null)('POST', 'auth', credentials()), { path: '/auth' }],
    ['login', () => () => service.as(null)('POST', 'auth/token', credentials()), { path: '/auth/token' }],
    ['logout', () => () => withCookie(service, cookie)('DELETE', 'auth'), { path: '/auth', method: 'DELETE' }],
    ['token issued', () => by('POST', 'tokens', { name: 'x' }), { path: '/tokens', entity: expect.any(String) }],
    ['rights changed', () => by('POST', 'users', newUser()), { path: '/users', fields: null }],
    ['rights changed', () => by('POST', 'roles', { name: 'x', credentials: [] }), { path: '/roles' }],
    ['rights changed', () => by('POST', 'groups', { name: 'x' }), { path: '/groups' }],
    [
      'share changed',
      () => by('POST', `objects/${object}/access`, { user: person.id }),
      { path: expect.stringMatching(/^\/objects\/[0-9a-f]{24}\/access$/) },
    ],
    [
      'share changed',
      () => by('DELETE', `objects/${object}/access/${person.id}`),
      { path: expect.stringMatching(/^\/objects\/[0-9a-f]{24}\/access\/[0-9a-f]{24}$/) },
    ],
  ])('contains %s (%#): who, what, when and from where', async (action, act, more) => {
    const startMs = Date.now();
    const event = await eventOf(act());
    expect(event).toMatchObject({
      action,
      login: person.login,
      user: new ObjectId(person.id),
      address: expect.stringContaining('127.0.0.1'),
      requestId: expect.stringMatching(/^[\w-]{8,}$/),
      count: 1,
      branch: [new ObjectId(ROOT_GROUP_ID), new ObjectId(groups.north)],
      ...more,
    });
    expect(event.time).toBeGreaterThanOrEqual(startMs);
    expect(event._expires.getTime() - event.time).toBe(90 * 86_400_000);
    const lines = service.logLines.map((line) => JSON.parse(line)).filter(({ module }) => module === 'audit');
    expect(lines.find(({ requestId }) => requestId === event.requestId)).toMatchObject({
      action,
      userId: person.id,
      path: event.path,
    });
  });

  test('contains the changed fields of users, roles and groups with their values, but no password', async () => {
    const user = await make('users', newUser(), person.call);
    const role = await make('roles', { name: 'x', credentials: [] }, person.call);
    const group = await make('groups', { name: 'x' }, person.call);
    for (const [path, body, before, after] of [
      [`users/${user._id}`, { name: 'renamed', password: 'canary-of-a-password' }, {}, { name: 'renamed' }],
      [`roles/${role._id}`, { credentials: ['GET /x'] }, { credentials: [] }, { credentials: ['GET /x'] }],
      [`groups/${group._id}`, { name: 'y' }, { name: 'x' }, { name: 'y' }],
    ] as const) {
      const event = await eventOf(by('PATCH', path, body));
      expect(event).toMatchObject({ action: 'rights changed', entity: path.split('/')[1], fields: Object.keys(body) });
      expect([event.before, event.after]).toEqual([before, after]);
    }
    for (const path of [`users/${user._id}`, `roles/${role._id}`, `groups/${group._id}`]) {
      expect(await eventOf(by('DELETE', path))).toMatchObject({ action: 'rights changed', method: 'DELETE' });
    }
    const token = await make('tokens', { name: 'x' }, person.call);
    expect(await eventOf(by('DELETE', `tokens/${token._id}`))).toMatchObject({
      action: 'token revoked',
      entity: token._id,
    });
    const stored = JSON.stringify(await events().find().toArray());
    expect(stored).not.toMatch(/canary|eyJ|long enough/);
    expect(service.logLines.filter((line) => line.includes('canary'))).toEqual([]);
  });

  test('contains failed logins with the name, and logins refused after too many failures', async () => {
    const { login } = await createPerson(service, { group: groups.north });
    const attempt = () => service.as(null)('POST', 'auth', { login, password: 'canary-of-a-guess' });
    const branch = [new ObjectId(ROOT_GROUP_ID), new ObjectId(groups.north)];
    expect(await eventOf(attempt)).toMatchObject({ action: 'login failed', login, user: null, branch });
    for (let at = 1; at < LIMITS.loginFailuresPerAccount; at++) expect((await attempt()).status).toBe(401);
    expect(await eventOf(attempt)).toMatchObject({ action: 'login refused', login, branch });
  });

  test('contains failed logins of unknown users without the name, which may be a misplaced password', async () => {
    const login = `canary-of-a-name\n{"level":60}-${new ObjectId()}`;
    const event = await eventOf(() => service.as(null)('POST', 'auth', { login, password: 'x' }));
    expect(event).toMatchObject({ action: 'login failed', login: null, branch: [new ObjectId(ROOT_GROUP_ID)] });
    expect(service.logLines.filter((line) => line.includes('canary'))).toEqual([]);
  });

  test('contains forbidden requests of callers and of pages of foreign origins', async () => {
    const viewer = await createPerson(service, { group: groups.north });
    const path = `labels?token=canary-of-a-query`;
    expect(await eventOf(() => viewer.call('POST', path, { name: 'x' }))).toMatchObject({
      action: 'forbidden',
      login: viewer.login,
      method: 'POST',
      path: '/labels',
    });
    const sid = await openSession(service, viewer);
    const origin = { Origin: 'https://evil.example', Cookie: sid };
    expect(await eventOf(() => service.as(null)('DELETE', 'auth', undefined, origin))).toMatchObject({
      action: 'forbidden',
      user: new ObjectId(viewer.id),
    });
    expect(JSON.stringify(await events().find().toArray())).not.toContain('canary');
  });

  test('contains requests in any spelling of the path', async () => {
    for (const path of ['/api/v1/%74okens', '/API/v1/Tokens/', '/api/v1/TOKENS?x=1']) {
      const event = await eventOf(by('POST', path, { name: 'x' }));
      expect([event.action, event.path]).toEqual(['token issued', '/tokens']);
    }
    const user = await make('users', newUser(), person.call);
    for (const path of [`/api/v1/%75%73ers/${user._id}`, `/api/v1/USERS/${user._id}`]) {
      const event = await eventOf(by('PATCH', path, { name: 'x' }));
      expect([event.action, event.path]).toEqual(['rights changed', `/users/${user._id}`]);
    }
  });
});

describe('events of changed entities', () => {
  const config = { plate: 'M-1', auth: { username: 'van', password: 'canary-of-a-device' }, apiKey: 'canary-of-a-key' };
  const newObject = (call: Call, more: object = {}) =>
    make('objects', { id: `c-${new ObjectId()}`, name: 'Van', config, ...more }, call);

  test('contain the changed members of an object with their former and new values', async () => {
    const { call } = admins.north;
    const { _id } = await newObject(call);
    const patch = {
      name: 'Van',
      status: 'x',
      config: { plate: 'M-2', driver: 'Ann', auth: { password: 'canary-of-another' }, apiKey: 'canary-of-a-new-key' },
    };
    const event = await eventOf(() => call('PATCH', `objects/${_id}`, patch));
    expect(event).toMatchObject({ action: 'entity changed', entity: _id, fields: ['status', 'config'] });
    expect(event.before).toEqual({ status: '', config: { plate: 'M-1' } });
    expect(event.after).toEqual({ status: 'x', config: { plate: 'M-2', driver: 'Ann' } });
    const listed = (await call('GET', `audit?where.entity=${_id}`)).body;
    expect(listed).toMatchObject([{ before: event.before, after: event.after }]);
    expect(JSON.stringify(await events().find().toArray()) + service.logLines.join()).not.toContain('canary');
  });

  test('contain the parameters of a model by their ids, and one event for each object of a bulk request', async () => {
    const { call } = admins.north;
    const argument = (id: string, unit: string) => ({ id, name: id, type: 'argument', dataType: 'number', unit });
    const dataOf = (...children: object[]) => ({ id: 'root', name: 'root', type: 'subsystem', children });
    const data = dataOf(argument('speed', 'km/h'), argument('in1.voltage', 'V'));
    const model = await make('models', { name: 'tracker', data }, call);
    const changed = dataOf(argument('speed', 'mph'), argument('in1.voltage', 'V'));
    const event = await eventOf(() => call('PATCH', `models/${model._id}`, { data: changed }));
    expect([event.before, event.after]).toEqual([
      { data: { children: { speed: { unit: 'km/h' } } } },
      { data: { children: { speed: { unit: 'mph' } } } },
    ]);
    const vans = [await newObject(call, { model: model._id }), await newObject(call, { model: model._id })];
    await takeEvents();
    const answer = await call('PATCH', `objects?where.model=${model._id}`, { description: 'sold' });
    expect(answer.body).toMatchObject({ done: 2 });
    const found = (await takeEvents()).map(({ entity, after }) => ({ entity, after }));
    expect(found).toHaveLength(2);
    for (const { _id } of vans) expect(found).toContainEqual({ entity: _id, after: { description: 'sold' } });
  });

  test('contain no values of an entity outside the group of its user, whose administrators do not see it', async () => {
    const { _id } = await newObject(admins.south.call);
    expect((await service.admin('POST', `objects/${_id}/access`, { user: admins.north.id })).status).toBe(200);
    const event = await eventOf(() => admins.north.call('PATCH', `objects/${_id}`, { description: 'seen' }));
    expect(event).toMatchObject({ action: 'entity changed', entity: _id, fields: ['description'] });
    expect(event).not.toHaveProperty('after');
    expect(event).not.toHaveProperty('before');
  });
});

test('contains neither ordinary requests nor other errors', async () => {
  const { call } = admins.north;
  await takeEvents();
  const { _id } = (await call('POST', 'objects', { id: `day-${new ObjectId()}`, name: 'x' })).body;
  for (const [method, path, body] of [
    ['GET', 'users'],
    ['GET', `objects/${_id}`],
    ['PATCH', `objects/${_id}`, { status: 'x' }],
    ['POST', `objects/${_id}/packets`, { a: 1 }],
    ['POST', `objects/${_id}/commands/stop`, {}],
    ['POST', 'users', { login: 1 }],
    ['PATCH', `users/${'f'.repeat(24)}`, { name: 'x' }],
    ['DELETE', `roles/${'f'.repeat(24)}`],
    ['DELETE', `objects/${_id}`],
    ['GET', 'audit'],
  ] as const) {
    await call(method, path, body);
  }
  expect(await takeEvents()).toEqual([]);
});

test('combines identical events into one event with a count, and stores pending events when the service stops', async () => {
  const { auditDelayMs } = LIMITS;
  // Longer than the test lasts.
  Object.assign(LIMITS, { auditDelayMs: 3_600_000 });
  const stopping = await startTestService();
  try {
    const viewer = await createPerson(stopping);
    const paths = [...Array<string>(20).fill('labels/x'), 'labels/y', 'labels/z'];
    await Promise.all(paths.map((path) => viewer.call('DELETE', path)));
    await stopping.service.stop();
    const audit = stopping.client.db().collection('audit');
    const stored = await audit.find({ action: 'forbidden' }, { sort: { path: 1 } }).toArray();
    expect(stored.map(({ path, count }) => [path, count])).toEqual([
      ['/labels/x', 20],
      ['/labels/y', 1],
      ['/labels/z', 1],
    ]);
  } finally {
    Object.assign(LIMITS, { auditDelayMs });
    await stopping.stop();
  }
});

describe('the audit store', () => {
  test('requires `* /audit` instead of `GET /*`', async () => {
    const role = async (...credentials: string[]) => (await make('roles', { name: 'x', credentials }))._id;
    const person = async (fields: object) => (await createPerson(service, { ...fields })).call;
    const scoped = async (...scopes: string[]) => service.as((await make('tokens', { name: 'x', scopes })).token);
    const [{ _id }] = await takeEvents().then(() => events().find().limit(1).toArray() as Promise<AuditEvent[]>);
    for (const [name, call, status] of [
      ['anonymous', service.as(null), 401],
      ['viewer', await person({}), 403],
      ['operator', await person({ role: OPERATOR_ROLE_ID }), 403],
      ['every method but by name', await person({ role: await role('GET /*', 'GET /audit/*', 'POST /audit') }), 403],
      ['every method elsewhere', await person({ role: await role('* /objects/*') }), 403],
      ['every method there', await person({ role: await role('* /audit/*') }), 200],
      ['an administrator', service.admin, 200],
      ['a token that may read it', await scoped('GET /audit/*'), 403],
      ['a token that may do everything there', await scoped('* /audit/*'), 200],
    ] as const) {
      for (const path of ['audit', 'AUDIT', '%61udit', 'audit?meta=true', `audit/${_id}`]) {
        for (const method of ['GET', 'HEAD']) {
          expect([name, method, path, (await call(method, path)).status]).toEqual([name, method, path, status]);
        }
      }
    }
  });

  test('is visible by the group of the user, or at the root group for unknown users', async () => {
    await takeEvents();
    for (const { login, password } of [admins.north, admins.south, { login: 'unknown', password: 'x' }]) {
      await service.as(null)('POST', 'auth', { login, password });
    }
    await takeEvents();
    const seenBy = async (call: Call) => {
      const { body } = await call('GET', 'audit');
      expect((await call('GET', 'audit?meta=true')).body.count).toBe(body.length);
      const logins = new Set(body.map(({ login }: AuditEvent) => login));
      return [admins.north.login, admins.south.login, null].map((login) => logins.has(login));
    };
    expect(await seenBy(admins.north.call)).toEqual([true, false, false]);
    expect(await seenBy(admins.south.call)).toEqual([false, true, false]);
    expect(await seenBy(service.admin)).toEqual([true, true, true]);
    const hidden = await events().findOne({ login: admins.south.login });
    expectRefusal(await admins.north.call('GET', `audit/${hidden?._id}`), 404);
  });

  test('is read-only, and does not show its expiry', async () => {
    await takeEvents();
    const [first] = (await service.admin('GET', 'audit?limit=1')).body;
    expect(Object.keys(first).sort()).toEqual(
      [
        '_id',
        'access',
        'action',
        'address',
        'branch',
        'count',
        'entity',
        'fields',
        'group',
        'login',
        'method',
        'owner',
        'path',
        'requestId',
        'time',
        'user',
      ].sort(),
    );
    const path = `audit/${first._id}`;
    for (const [method, at, body] of [
      ['POST', 'audit', { action: 'login' }],
      ['PATCH', path, { action: 'x' }],
      ['DELETE', path, undefined],
      ['POST', `${path}/access`, { user: admins.north.id }],
      ['DELETE', `${path}/access/${admins.north.id}`, undefined],
    ] as const) {
      const answer = await service.admin(method, at, body);
      expectRefusal(answer, 405);
      expect(answer.headers.allow).toBe('GET, HEAD');
    }
    expect(entityOf(await service.admin('GET', path))).toEqual(first);
    expect(entityOf(await service.admin('GET', `${path}?only=_expires,action`))).toEqual({
      _id: first._id,
      action: first.action,
    });
    for (const query of ['where._expires=1', 'sortBy=_expires']) {
      expectRefusal(await service.admin('GET', `audit?${query}`), 400, '_expires');
    }
    expect((await service.admin('GET', `audit?where.action=${first.action}&limit=1`)).body).toEqual([first]);
  });
});
