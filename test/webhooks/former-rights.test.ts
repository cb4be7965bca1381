/** Messages that wait go to nobody who has lost the right to them: when their object is removed, and when the handler changes hands. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { type Call, useService } from '../support/fixture.js';
import { OK, useReceiver, useWebhooks } from '../support/receiver.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, { partitionTickMs: 100, webhookReplayCheckMs: 20, webhookReplayAhead: 1 });
const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1', OPS_PORT: '0' } });
const receiver = useReceiver();
const { createObject, remove } = useWebhooks(service, receiver);
const PASSWORD = 'correct horse battery';

interface Entity {
  readonly _id: string;
}

interface User extends Entity {
  readonly call: Call;
  readonly role: string;
}

let count = 0;
/** A user in a group of its own, who sees what is shared. */
async function createUser(): Promise<User> {
  const name = `former-${++count}`;
  const { body: group } = await service.admin('POST', 'groups', { name });
  const { body: role } = await service.admin('POST', 'roles', { name, credentials: ['* /*'] });
  const fields = { login: name, password: PASSWORD, role: role._id, group: group._id };
  const { body: user } = await service.admin('POST', 'users', fields);
  return { _id: user._id, role: role._id, call: service.as(await service.tokenOf(name, PASSWORD)) };
}

const share = (store: string, { _id }: Entity, { _id: user }: Entity) =>
  service.admin('POST', `${store}/${_id}/access`, { user });
const unshare = (store: string, { _id }: Entity, { _id: user }: Entity) =>
  service.admin('DELETE', `${store}/${_id}/access/${user}`);

const deliveriesOf = async ({ _id }: Entity) => (await service.admin('GET', `handlers/${_id}/deliveries`)).body;
const numbers = () => receiver.received.flatMap(({ body }) => [body.data].flat().map((one) => one.n ?? one.data.n));

/** Lets the messages of these numbers wait: their receiver failed, and then the handler was frozen. */
async function freezeMessages(call: Call, handler: Entity, object: Entity, wanted: readonly number[]): Promise<void> {
  receiver.answer = (_received, res) => void res.writeHead(500).end();
  for (const n of wanted) await service.admin('POST', `objects/${object._id}/packets`, { n });
  await until(async () => {
    const rows = await deliveriesOf(handler);
    return rows.length === wanted.length && rows.some(({ attempts }: { attempts: number }) => attempts > 0);
  });
  expect((await call('PATCH', `handlers/${handler._id}`, { active: false })).status).toBe(200);
  await service.settled();
}

/** What was begun before the handler was frozen has failed by now. */
async function thaw(handler: Entity): Promise<void> {
  receiver.received.length = 0;
  receiver.answer = OK;
  expect((await service.admin('PATCH', `handlers/${handler._id}`, { active: true })).status).toBe(200);
  await until(async () => {
    const rows = await deliveriesOf(handler);
    return rows.every(({ state }: { state: string }) => state === 'delivered' || state === 'withheld');
  });
}

let user: User;
let object: Entity;
beforeEach(async () => {
  user = await createUser();
  object = await createObject();
  await share('objects', object, user);
});

describe.each(['object', 'batch'])('in the mode %s, messages of an object that was removed', (mode) => {
  const setRole = (credentials: readonly string[]) => service.admin('PATCH', `roles/${user.role}`, { credentials });
  test.each<[string, { before?: () => Promise<unknown>; after?: () => Promise<unknown> }, readonly number[]]>([
    ['to whom it was shared with', {}, [1, 2]],
    ['to whom it was shared with before, but no longer', { before: () => unshare('objects', object, user) }, []],
    ['to whose role no longer permits it', { after: () => setRole(['GET /handlers/*']) }, []],
    [
      'to who was deactivated afterwards',
      { after: () => service.admin('PATCH', `users/${user._id}`, { active: false }) },
      [],
    ],
  ])('go %s, or are withheld', async (_title, { before, after }, sent) => {
    const { body: handler } = await user.call('POST', 'handlers', {
      url: receiver.url,
      mode,
      events: ['object-packet'],
    });
    await service.settled();
    await freezeMessages(user.call, handler, object, [1, 2]);
    await before?.();
    expect((await service.admin('DELETE', `objects/${object._id}`)).status).toBe(200);
    await after?.();
    await service.settled();
    await thaw(handler);
    expect(numbers()).toEqual(sent);
    const states = (await deliveriesOf(handler)).map(({ state }: { state: string }) => state);
    expect(states).toEqual(Array(2).fill(sent.length > 0 ? 'delivered' : 'withheld'));
    await remove(handler);
  });
});

test('withholds messages of an object of which nobody knows any more who saw it', async () => {
  const { body: handler } = await user.call('POST', 'handlers', { url: receiver.url, events: ['object-packet'] });
  await service.settled();
  await freezeMessages(user.call, handler, object, [1]);
  await service.admin('DELETE', `objects/${object._id}`);
  await service.client.db().collection('removedObjects').deleteMany({});
  await thaw(handler);
  expect((await deliveriesOf(handler)).map(({ state }: { state: string }) => state)).toEqual(['withheld']);
  await remove(handler);
});

describe('a queue', () => {
  const other = (path: string) => `${receiver.url}${path}`;
  let handler: Entity;
  let second: User;
  const patch = (call: Call, fields: object) => call('PATCH', `handlers/${handler._id}`, fields);

  beforeEach(async () => {
    second = await createUser();
    const { body } = await user.call('POST', 'handlers', {
      url: receiver.url,
      name: 'Mine',
      events: ['object-packet'],
      headers: { 'x-account': 'mine' },
    });
    handler = body;
    // Both may see all of it: it is not for lack of rights that nothing is sent.
    await share('objects', object, second);
    await service.settled();
  });

  test.each<[string, () => Promise<unknown>, readonly number[]]>([
    ['its owner renames the handler', () => patch(user.call, { name: 'Ours' }), [1, 2]],
    ['its owner writes the same url again', () => patch(user.call, { url: receiver.url }), [1, 2]],
    ['its owner renews the headers', () => patch(user.call, { headers: { 'x-account': 'new' } }), [1, 2]],
    ['its owner enters another url', () => patch(user.call, { url: other('new') }), []],
    [
      'its owner changes the url with a bulk request',
      () => user.call('PATCH', 'handlers?where.name=Mine', { url: other('bulk') }),
      [],
    ],
    ['the handler is shared', () => share('handlers', handler, second), []],
    [
      'the handler was shared for a while',
      async () => {
        await share('handlers', handler, second);
        await unshare('handlers', handler, second);
      },
      [],
    ],
    [
      'another user enters headers',
      async () => {
        await share('handlers', handler, second);
        await patch(second.call, { headers: { 'x-account': 'theirs' } });
      },
      [],
    ],
    [
      'another user enters a url',
      async () => {
        await share('handlers', handler, second);
        await patch(second.call, { url: other('theirs') });
      },
      [],
    ],
    [
      'the handler had no url for a while',
      async () => {
        await patch(user.call, { url: null });
        await patch(user.call, { url: receiver.url });
      },
      [],
    ],
  ])('has the messages that it should when %s, and what happens next is sent', async (_title, act, sent) => {
    await freezeMessages(user.call, handler, object, [1, 2]);
    await act();
    await thaw(handler);
    expect(numbers()).toEqual(sent);
    await service.settled();
    await service.admin('POST', `objects/${object._id}/packets`, { n: 3 });
    await until(() => numbers().includes(3));
    expect(numbers()).toEqual([...sent, 3]);
    await remove(handler);
  });

  test('keeps its messages when the handler is shared again with the same user', async () => {
    await share('handlers', handler, second);
    await service.settled();
    await freezeMessages(user.call, handler, object, [1]);
    await share('handlers', handler, second);
    await unshare('handlers', handler, second);
    await thaw(handler);
    expect(numbers()).toEqual([1]);
    await remove(handler);
  });

  test('has nothing left to send again once it was emptied, neither what waited nor what was dead', async () => {
    await freezeMessages(user.call, handler, object, [1, 2]);
    const rows = service.client.db().collection('deliveries');
    await rows.updateOne({ state: 'pending' }, { $set: { state: 'dead' } });
    await patch(user.call, { url: other('new') });
    await until(async () => (await rows.countDocuments({ body: { $exists: true } })) === 0);
    for (const { _id, state, error } of await deliveriesOf(handler)) {
      expect([state, error]).toEqual(['withheld', expect.stringContaining('sends to another address')]);
      expect((await user.call('POST', `handlers/${handler._id}/deliveries/${_id}/retry`)).status).toBe(409);
    }
    await remove(handler);
  });

  test('is not filled again by a replay that was requested before', async () => {
    // One message at a time, and more than can be made until this instance has heard of the other hands.
    const packets = Array.from({ length: 60 }, (_, n) => ({ n, time: 1.6e12 + n }));
    await service.admin('POST', `objects/${object._id}/packets`, packets);
    await until(() => numbers().length === packets.length);
    receiver.received.length = 0;
    receiver.answer = (_received, res) => void res.writeHead(500).end();
    const interval = { from: 1.6e12, to: 1.6e12 + packets.length };
    expect((await user.call('POST', `handlers/${handler._id}/replay`, interval)).status).toBe(200);
    await until(() => receiver.received.length > 0);
    receiver.answer = OK;
    receiver.received.length = 0;
    await patch(user.call, { url: other('new') });
    await until(async () => (await service.client.db().collection('replays').countDocuments()) === 0);
    expect(numbers()).toEqual([]);
    const { body: events } = await service.admin('GET', 'audit?where.action=webhook replayed');
    expect(events.at(-1).fields).toContain(
      'incomplete=the handler was shared with another user, or sends to another address, since',
    );
    await remove(handler);
  });
});
