/** What is left of one tenant with another: waits, commands after an unshare, tokens of tokens, shares with strangers. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID, DEVICE_ROLE_ID, OPERATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson, ended, type Person } from '../support/callers.js';
import { type Answer, type Call, useService } from '../support/fixture.js';

const service = useService();
const make = async (store: string, fields: object, call: Call = service.admin) =>
  entityOf(await call('POST', store, fields));
const objectIn = async (group: string, call: Call = service.admin) =>
  make('objects', { id: `thing-${new ObjectId()}`, name: 'x', group }, call);

let here: string;
let elsewhere: string;
let operator: Person;
beforeAll(async () => {
  here = (await make('groups', { name: 'here' }))._id;
  elsewhere = (await make('groups', { name: 'elsewhere' }))._id;
  operator = await createPerson(service, { role: OPERATOR_ROLE_ID, group: elsewhere });
});

test('lets a device wait for commands beside ten waiting viewers', async () => {
  const object = await objectIn(here);
  const device = await createPerson(service, { role: DEVICE_ROLE_ID, object: object._id, group: here });
  const path = `objects/${object._id}/commands`;
  const viewer = await createPerson(service, { group: here });
  // The short waits below take a place for a moment, too.
  const wait = async (): Promise<Answer> => {
    const answer = await viewer.call('GET', `${path}?wait=60`);
    return answer.status === 429 ? wait() : answer;
  };
  const waiting = Array.from({ length: LIMITS.commandWaitersPerObject }, wait);
  for (;;) {
    const { status } = await viewer.call('GET', `${path}?wait=0.001`);
    if (status === 429) break;
    expect(status).toBe(200);
  }
  expect((await device.call('GET', `${path}?wait=0.001`)).status).toBe(200);
  await service.admin('POST', `${path}/go`);
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(waiting.map(() => 200));
});

describe('the creator of a command to a shared object', () => {
  const give = async (call: Call, objectId: string): Promise<string> => {
    const answer = await call('POST', `objects/${objectId}/commands/open`);
    expect(answer.status).toBe(200);
    return (answer.headers.location as string).split('/').at(-1) as string;
  };
  const finish = async (objectId: string, id: string) =>
    entityOf(
      await service.admin('POST', `objects/${objectId}/commands/${id}/result`, { status: 'done', result: 'secret' }),
    );

  test('reads the result while the object is shared, and nothing afterwards', async () => {
    const { _id } = await objectIn(here);
    entityOf(await service.admin('POST', `objects/${_id}/access`, { user: operator.id }));
    const first = await give(operator.call, _id);
    const second = await give(operator.call, _id);
    await finish(_id, first);
    expect(entityOf(await operator.call('GET', `commands/${first}`)).result).toBe('secret');
    entityOf(await service.admin('DELETE', `objects/${_id}/access/${operator.id}`));
    await finish(_id, second);
    for (const id of [first, second]) expectRefusal(await operator.call('GET', `commands/${id}`), 404);
    expect((await operator.call('GET', `commands?where.object=${_id}`)).body).toEqual([]);
    expect((await operator.call('GET', 'commands?meta=true')).body.count).toBe(0);
    entityOf(await service.admin('POST', `objects/${_id}/access`, { user: operator.id }));
    expect(entityOf(await operator.call('GET', `commands/${second}`)).result).toBe('secret');
    const shown = Object.keys(entityOf(await service.admin('GET', `commands/${second}`)));
    expect(shown.filter((name) => name.startsWith('_'))).toEqual(['_id']);
  });

  test('reads no result after the group of the object has moved away', async () => {
    const parent = (await make('groups', { name: 'parent' }))._id;
    const child = (await make('groups', { name: 'child', parent }))._id;
    const above = await createPerson(service, { role: OPERATOR_ROLE_ID, group: parent });
    const { _id } = await objectIn(child);
    const id = await give(above.call, _id);
    expect(entityOf(await above.call('GET', `commands/${id}`))._id).toBe(id);
    entityOf(await service.admin('PATCH', `groups/${child}`, { parent: elsewhere }));
    await finish(_id, id);
    expectRefusal(await above.call('GET', `commands/${id}`), 404);
  });

  test('reads the result of an own object, whatever its group is', async () => {
    const { _id } = await objectIn(
      elsewhere,
      (await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: elsewhere })).call,
    );
    entityOf(await service.admin('POST', `objects/${_id}/access`, { user: operator.id }));
    const id = await give(operator.call, _id);
    entityOf(await service.admin('DELETE', `objects/${_id}/access/${operator.id}`));
    // Of its group.
    expect(entityOf(await operator.call('GET', `commands/${id}`))._id).toBe(id);
  });
});

describe('a token created with another token', () => {
  const issue = async (call: Call, fields: object = {}) => make('tokens', { name: 'x', ...fields }, call);

  test('expires no later than its parent', async () => {
    const parent = await issue(service.admin, { expiresIn: '1h' });
    const call = service.as(parent.token);
    expect((await issue(call, { expiresIn: '90 days' })).expiresAt).toBe(parent.expiresAt);
    expect((await issue(call)).expiresAt).toBe(parent.expiresAt);
    expect((await issue(call, { expiresIn: '10 min' })).expiresAt).toBeLessThan(parent.expiresAt);
  });

  test.each(['DELETE tokens/:id', 'DELETE auth'])(
    'is revoked with its parent and all descendants, by %s',
    async (how) => {
      const parent = await issue(service.admin);
      const child = await issue(service.as(parent.token));
      const grandchild = await issue(service.as(child.token));
      const beside = await issue(service.admin);
      const tokens = [parent, child, grandchild].map(({ token }) => token as string);
      const listeners = await Promise.all(tokens.map((token) => service.listen(token)));
      for (const token of tokens) expect((await service.as(token)('GET', 'auth')).status).toBe(200);
      if (how === 'DELETE auth') await service.as(parent.token)('DELETE', 'auth');
      else entityOf(await service.admin('DELETE', `tokens/${parent._id}`));
      for (const token of tokens) expectRefusal(await service.as(token)('GET', 'auth'), 401);
      for (const listener of listeners) await ended(listener);
      expect((await service.as(beside.token)('GET', 'auth')).status).toBe(200);
    },
  );

  test('outlives its revoked child', async () => {
    const parent = await issue(service.admin);
    const child = await issue(service.as(parent.token));
    entityOf(await service.as(parent.token)('DELETE', `tokens/${child._id}`));
    expect((await service.as(parent.token)('GET', 'auth')).status).toBe(200);
    expectRefusal(await service.as(child.token)('GET', 'auth'), 401);
  });

  test('hides its ancestors, and has a limited chain of them', async () => {
    let call = service.admin;
    let shown: string[] = [];
    for (let depth = 0; depth < LIMITS.tokenLineage - 1; depth++) {
      const { token, ...entity } = await issue(call);
      shown = Object.keys(entity).filter((name) => name.startsWith('_'));
      call = service.as(token);
    }
    expect(shown).toEqual(['_id']);
    const last = await issue(call);
    expectRefusal(await service.as(last.token)('POST', 'tokens', { name: 'x' }), 400, 'token');
  });
});

describe('the sharing of an entity', () => {
  test('accepts only users that the caller sees; others look like missing ones', async () => {
    const admin = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: here });
    const beside = await createPerson(service, { group: here });
    const label = await make('labels', { name: 'x' }, admin.call);
    const refused = await admin.call('POST', `labels/${label._id}/access`, { user: operator.id });
    expectRefusal(refused, 400, 'user: there is no such entity in users');
    const missing = await admin.call('POST', `labels/${label._id}/access`, { user: 'f'.repeat(24) });
    expect(missing.body).toEqual(refused.body);
    expect(entityOf(await admin.call('POST', `labels/${label._id}/access`, { user: beside.id })).access).toEqual([
      beside.id,
    ]);
    // The operator sees objects of the group, and therefore its labels.
    const stranger = await createPerson(service, { group: elsewhere });
    expectRefusal(await stranger.call('GET', `labels/${label._id}`), 404);
  });

  test('requires that the caller sees the entity', async () => {
    const admin = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: here });
    const foreign = await make('labels', { name: 'x', group: elsewhere });
    for (const user of [admin.id, operator.id, 'f'.repeat(24)]) {
      expectRefusal(await admin.call('POST', `labels/${foreign._id}/access`, { user }), 404);
    }
  });
});

describe('an added store', () => {
  let north: Person;
  let below: Person;
  let south: Person;
  beforeAll(async () => {
    north = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: here });
    const { _id } = await make('groups', { name: 'below', parent: here });
    below = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: _id });
    south = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: elsewhere });
  });

  test('exists for its group and those below and above, and for no other', async () => {
    await make('stores', { name: 'of-north' }, north.call);
    const { _id } = await make('of-north', { x: 1 }, north.call);
    await make('of-north', { x: 2 }, below.call);
    expect((await service.admin('GET', 'of-north')).body).toHaveLength(2);
    const paths: [string, string, object?][] = [
      ['GET', ''],
      ['POST', '', { x: 1 }],
      ['GET', `/${_id}`],
      ['PATCH', `/${_id}`, { x: 2 }],
      ['DELETE', `/${_id}`],
      ['PUT', ''],
    ];
    for (const [method, path, body] of paths) {
      const foreign = await south.call(method, `of-north${path}`, body);
      expectRefusal(foreign, 404);
      expect(foreign.body).toEqual((await south.call(method, `missing${path}`, body)).body);
    }
  });

  test('exists for everyone if it is a shared one of the root group', async () => {
    await make('stores', { name: 'of-all', shared: true });
    for (const { call } of [north, below, south]) await make('of-all', { x: 1 }, call);
  });

  test('is removed completely, so that its name can be reused', async () => {
    const { _id } = await make('stores', { name: 'passing' }, north.call);
    const collections = async () => (await service.client.db().listCollections().toArray()).map(({ name }) => name);
    expect(await collections()).toContain(`custom.passing.${_id}`);
    entityOf(await north.call('DELETE', `stores/${_id}`));
    expect(await collections()).not.toContain(`custom.passing.${_id}`);
    await make('stores', { name: 'passing' }, south.call);
    await make('passing', { x: 1 }, south.call);
  });

  test('is not removed while others have entities in it, and says how many', async () => {
    const { _id } = await make('stores', { name: 'held' }, north.call);
    const refusal = async () => {
      const answer = await north.call('DELETE', `stores/${_id}`);
      expectRefusal(answer, 409, 'the store is not empty: ');
      return answer.body.helper.message.split(': ')[1];
    };
    const own = await make('held', { x: 1 }, north.call);
    const others = [await make('held', { secret: 'a' }), await make('held', { secret: 'b' })];
    expect(await refusal()).toBe('remove its entities first');
    entityOf(await north.call('DELETE', `held/${own._id}`));
    expect((await north.call('GET', 'held')).body).toEqual([]);
    expect(await refusal()).toBe('it contains 2 entities of other groups, which you do not see');
    entityOf(await service.admin('DELETE', `held/${others[0]._id}`));
    expect(await refusal()).toBe('it contains an entity of other groups, which you do not see');
    entityOf(await service.admin('DELETE', `held/${others[1]._id}`));
    entityOf(await north.call('DELETE', `stores/${_id}`));
  });

  test('is checked with the schema as a change would leave it', async () => {
    const patterns = (from: number) =>
      Object.fromEntries(Array.from({ length: 15 }, (_, at) => [`p${from + at}`, { pattern: '^a' }]));
    const { _id } = await make('stores', { name: 'merged', schema: { properties: patterns(0) } });
    const more = { schema: { properties: patterns(15) } };
    expectRefusal(await service.admin('PATCH', `stores/${_id}`, more), 400, 'patterns');
    await make('merged', { p0: 'a' });
  });
});

test('refuses a socket that subscribes too often, and continues with it afterwards', async () => {
  const listener = await service.listen(operator.token);
  const objects = Array.from({ length: LIMITS.subscribedObjects / 2 }, () => String(new ObjectId()).slice(12));
  const asked = Array.from({ length: 40 }, () => listener.subscribe({ objects }));
  const answers = await Promise.all(asked);
  const refused = answers.filter(({ success }) => !success);
  expect(refused.length).toBeGreaterThan(0);
  expect(refused[0]).toEqual({
    success: false,
    code: '429',
    message: expect.stringContaining('too many subscriptions'),
  });
  expect(answers.filter(({ success }) => success).length).toBeGreaterThanOrEqual(LIMITS.subscriptionsPerSocket);
  expect(await listener.subscribe({ objects })).toEqual({ success: true, objects: [] });
  listener.close();
});
