/** Which webhooks receive an event, while what decides it changes. */
import { describe, expect, test } from '@jest/globals';
import { createAccounts, findScopeObjects } from '../../src/accounts/accounts.js';
import type { Change } from '../../src/core/change.js';
import { LIMITS } from '../../src/core/limits.js';
import { findObjectIds } from '../../src/entities/object-ids.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { createRegistry } from '../../src/webhooks/registry.js';
import { useService } from '../support/fixture.js';
import { useReceiver, useWebhooks } from '../support/receiver.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, { webhookReplayCheckMs: 20, webhookReplayAhead: 200, historyPage: 3, partitionTickMs: 100 });
const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1', OPS_PORT: '0' } });
const receiver = useReceiver();
const { createObject, createHandler, remove } = useWebhooks(service, receiver);
const PASSWORD = 'correct horse battery';

let count = 0;
/** A user with these rights, in a group of its own beneath this one or the first; and calls as that user. */
async function createUser(credentials: readonly string[], fields: object = {}) {
  const login = `limited-${++count}`;
  const { body: role } = await service.admin('POST', 'roles', { name: login, credentials });
  const { body: user } = await service.admin('POST', 'users', { login, password: PASSWORD, role: role._id, ...fields });
  return { ...user, call: service.as(await service.tokenOf(login, PASSWORD)) };
}
const handlersOf = ['POST /handlers', 'GET /handlers/*', 'DELETE /handlers/*', 'POST /handlers/*/replay'];

/** What would be done by now if it did not wait for anything. */
async function givePlentyOfTime(): Promise<void> {
  for (let nth = 0; nth < 20; nth++) await service.client.db().command({ ping: 1 });
}

test('keeps a handler that is created while all of them are read', async () => {
  const database = databaseOf(service.client);
  const accounts = createAccounts(database, () => false);
  let open = (): void => undefined;
  let gate: Promise<void> | null = new Promise((resolve) => {
    open = resolve;
  });
  let isReached = false;
  const registry = createRegistry({
    database,
    async findAccount(userId) {
      const former = gate;
      gate = null;
      isReached = true;
      await former;
      return accounts.findAccount(userId);
    },
    findObjects: (scope, keys) => findObjectIds(database, scope, keys),
    findScopeObjects: (scopes) => findScopeObjects(database, scopes),
    onChange: () => undefined,
    onResume: () => undefined,
  });
  const first = await createHandler();
  const loading = registry.load();
  await until(() => isReached);
  const second = await createHandler();
  const change = { store: 'handlers', id: second._id, kind: 'created' } as Change;
  const applying = registry.apply(change);
  await Promise.race([applying, givePlentyOfTime()]);
  open();
  await Promise.all([loading, applying]);
  expect([first, second].map(({ _id }) => registry.find(_id)?.stored.id)).toEqual([first._id, second._id]);
  for (const handler of [first, second]) await remove(handler);
});

test('follows an own id from one object to another, though a handler names it as well', async () => {
  const former = await createObject({ id: 'truck-17' });
  const later = await createObject({ id: 'spare' });
  const user = await createUser([...handlersOf, 'GET /objects/truck-17']);
  const { body: limited } = await user.call('POST', 'handlers', { url: receiver.url });
  const named = await createHandler({ objects: ['truck-17'] });
  await service.settled();
  const send = async (n: number) => {
    for (const { _id } of [former, later]) await service.admin('POST', `objects/${_id}/packets`, { n });
  };
  await send(1);
  await receiver.got(2);
  await service.admin('PATCH', `objects/${former._id}`, { id: 'sold' });
  await service.admin('PATCH', `objects/${later._id}`, { id: 'truck-17' });
  await service.settled();
  await send(2);
  const packets = () => receiver.received.filter(({ body }) => body.type === 'object-packet');
  await until(() => packets().length >= 4);
  expect(packets().map(({ body }) => [body.data._oid, body.data.n])).toEqual([
    ...[1, 1].map((n) => [former._id, n]),
    ...[2, 2].map((n) => [later._id, n]),
  ]);
  for (const handler of [limited, named]) await remove(handler);
});

test('sends what becomes visible to the owner of a handler that names it by its own id', async () => {
  const object = await createObject({ id: 'shared-later' });
  const { body: group } = await service.admin('POST', 'groups', { name: 'outside' });
  const user = await createUser([...handlersOf, 'GET /objects/shared-later'], { group: group._id });
  const { body: handler } = await user.call('POST', 'handlers', { url: receiver.url, objects: ['shared-later'] });
  await service.settled();
  await service.admin('POST', `objects/${object._id}/packets`, { n: 1 });
  await service.admin('POST', `objects/${object._id}/access`, { user: user._id });
  await service.settled();
  await service.admin('POST', `objects/${object._id}/packets`, { n: 2 });
  const packets = () => receiver.received.filter(({ body }) => body.type === 'object-packet');
  await until(() => packets().length > 0);
  expect(packets().map(({ body }) => body.data.n)).toEqual([2]);
  await remove(handler);
});

describe('a replay', () => {
  const store = ({ _id }: { _id: string }, numbers: readonly number[]) =>
    service.admin(
      'POST',
      `objects/${_id}/packets`,
      numbers.map((n) => ({ n, time: 1.6e12 + n })),
    );
  const interval = { from: 1.6e12, to: 1.6e12 + 1_000 };

  test('loses nothing while its handler is changed again and again', async () => {
    const object = await createObject();
    await store(object, [...Array(250).keys()]);
    const handler = await createHandler({ objects: [object._id] });
    await service.admin('POST', `handlers/${handler._id}/replay`, interval);
    let isOver = false;
    const changing = (async () => {
      for (let nth = 0; !isOver; nth++)
        await service.admin('PATCH', `handlers/${handler._id}`, { name: `name ${nth}` });
    })();
    try {
      await until(() => new Set(receiver.received.map(({ body }) => body.data.n)).size === 250, 'all of them');
    } finally {
      isOver = true;
      await changing;
    }
    await remove(handler);
  });

  test('is refused of a handler that is not active: it would wait in the place of others', async () => {
    const handler = await createHandler({ active: false });
    const { status, body } = await service.admin('POST', `handlers/${handler._id}/replay`, interval);
    expect([status, body.helper.message]).toEqual([409, 'the handler is not active']);
    await remove(handler);
  });

  test('leaves room for other tenants', async () => {
    const { body: group } = await service.admin('POST', 'groups', { name: 'busy' });
    const user = await createUser(['GET /*', 'POST /*', 'DELETE /*'], { group: group._id });
    const { body: object } = await user.call('POST', 'objects', { id: 'busy', name: 'x' });
    await store(object, [...Array(9).keys()]);
    receiver.answer = (_received, res) => void res.writeHead(500).end();
    Object.assign(LIMITS, { webhookReplaysPerTenant: 1, webhookReplayAhead: 1 });
    const handlers = [];
    for (let nth = 0; nth < 2; nth++) handlers.push((await user.call('POST', 'handlers', { url: receiver.url })).body);
    await service.settled();
    const statuses = [];
    for (const { _id } of handlers) statuses.push((await user.call('POST', `handlers/${_id}/replay`, interval)).status);
    expect(statuses).toEqual([200, 429]);
    const own = await createHandler();
    expect((await service.admin('POST', `handlers/${own._id}/replay`, interval)).status).toBe(200);
    for (const handler of [...handlers, own]) await remove(handler);
  });
});

test('sends only what both its owner and the user who changed its address may see', async () => {
  const { body: group } = await service.admin('POST', 'groups', { name: 'editors' });
  const editor = await createUser(['GET /*', 'PATCH /handlers/*'], { group: group._id });
  const hidden = await createObject();
  const seen = await createObject({ group: group._id });
  const handler = await createHandler({ objects: [hidden._id, seen._id] });
  await service.admin('POST', `handlers/${handler._id}/access`, { user: editor._id });
  const send = async (n: number) => {
    for (const { _id } of [hidden, seen]) await service.admin('POST', `objects/${_id}/packets`, { n });
  };
  const numbersOf = ({ _id }: { _id: string }) =>
    receiver.received.filter(({ body }) => body.data._oid === _id).map(({ body }) => body.data.n);
  await send(1);
  await until(() => numbersOf(hidden).length + numbersOf(seen).length === 2);
  expect((await editor.call('PATCH', `handlers/${handler._id}`, { url: `${receiver.url}theirs` })).status).toBe(200);
  await service.settled();
  await send(2);
  await service.admin('POST', `objects/${seen._id}/packets`, { n: 3 });
  await until(() => numbersOf(seen).length === 3);
  expect([numbersOf(hidden), numbersOf(seen)]).toEqual([[1], [1, 2, 3]]);
  await remove(handler);
});
