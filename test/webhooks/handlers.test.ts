/** Changes of handlers: the rights of a webhook are those of the user who set its address. */
import { expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { type Caller, scopeOf } from '../../src/core/access.js';
import type { JsonObject } from '../../src/core/json.js';
import { builtInStore } from '../../src/core/stores.js';
import { changeEntity } from '../../src/entities/write.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { type HandlerHookDeps, handlerHooks } from '../../src/webhooks/handler-hooks.js';
import { ADMIN, useService } from '../support/fixture.js';
import { useReceiver, useWebhooks } from '../support/receiver.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8', OPS_PORT: '0' } });
const receiver = useReceiver();
const { createHandler, remove } = useWebhooks(service, receiver);

test('does not undo another’s change of the address with the address that was there before', async () => {
  const handler = await createHandler();
  const database = databaseOf(service.client);
  const admin = await service.client.db().collection('users').findOne({ login: ADMIN.login });
  const other = { userId: String(new ObjectId()), groupId: String(admin?.group), scopes: null } as Caller;
  const hooks = handlerHooks({ database } as HandlerHookDeps);
  const prepared = await hooks.preparePatch?.(other, handler._id, { url: handler.url, name: 'Renamed' });
  await service.admin('PATCH', `handlers/${handler._id}`, { url: `${receiver.url}new` });
  const find = () =>
    service.client
      .db()
      .collection('handlers')
      .findOne({ _id: new ObjectId(handler._id) });
  const between = await find();
  const change = { patch: prepared as JsonObject, nowMs: Date.now() };
  await changeEntity(database, builtInStore('handlers'), scopeOf(other), handler._id, change);
  expect(await find()).toMatchObject({ url: `${receiver.url}new`, name: 'Renamed', _editor: between?._editor });
  expect((await service.admin('PATCH', `handlers/${handler._id}`, { url: `${receiver.url}new` })).status).toBe(200);
  await remove(handler);
});

test.each([
  [{ url: 'http://127.0.0.1:9/elsewhere' }, true],
  [{ headers: { Authorization: 'Bearer mine' } }, true],
  [{ headers: { 'x-account': 'theirs' } }, false],
  [{ name: 'Renamed' }, false],
])('makes who patches %j answer for where it goes: %j', async (patch, isAnswering) => {
  const handler = await createHandler({ headers: { 'x-account': 'theirs' } });
  const login = `editor-${Math.random()}`;
  const { body: role } = await service.admin('POST', 'roles', { name: login, credentials: ['GET /*', 'PATCH /*'] });
  const { body: user } = await service.admin('POST', 'users', { login, password: ADMIN.password, role: role._id });
  const call = service.as(await service.tokenOf(login, ADMIN.password));
  expect((await call('PATCH', `handlers/${handler._id}`, patch)).status).toBe(200);
  const handlers = service.client.db().collection('handlers');
  const stored = await handlers.findOne({ _id: new ObjectId(handler._id) });
  expect(String(stored?._editor.user) === user._id).toBe(isAnswering);
  await remove(handler);
});

test.each(['ftp://a.example', 'nonsense', '', 'example.com/hook', 'javascript:alert(1)', 5])(
  'refuses the url %p, and says what is expected',
  async (url) => {
    const { status, body } = await service.admin('POST', 'handlers', { name: 'Wrong', url });
    const expected = 'url: expected an address such as https://example.com/webhook, of http or https';
    expect([status, body.helper.message]).toEqual([400, expected]);
  },
);
