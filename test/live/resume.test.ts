/** A client that reconnects with a position receives the later events once, in order, and then live events. */
import { expect, test } from '@jest/globals';
import { ADMIN, openListener, startTestService, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();

test('sends missed events after a reconnect, then live events', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const first = await service.listen(token);
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
  await service.admin('POST', 'objects/car/packets', { n: 1 });
  await service.settled();
  const [received] = first.take();
  first.close();
  await service.admin('POST', 'objects/car/packets', [{ n: 2 }, { n: 3 }]);
  await service.admin('PATCH', 'objects/car', { status: 'away' });
  const back = await openListener(service.url, token, { since: received?.position ?? '' });
  await service.admin('POST', 'objects/car/packets', { n: 4 });
  await until(() => back.received().some(({ payload }) => payload.n === 4), 'the last packet');
  await service.settled();
  await back.subscribe({});
  expect(back.take().map(({ name, payload }) => payload.n ?? name)).toEqual([2, 3, 'object-update', 4]);
  back.close();
});

test.each([
  ['malformed', 'no position!', 'unknown position'],
  ['of nowhere', 'Z0FBQUFBQUFBQUFB', 'history gone'],
])('reports a gap for a position that is %s, and continues live', async (_, since, reason) => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const listener = await openListener(service.url, token, { since });
  const hasReceived = async () => (await listener.subscribe({})) && listener.received().length > 0;
  await until(hasReceived, 'the gap');
  expect(listener.take().map(({ name, payload }) => ({ name, payload }))).toEqual([
    { name: 'gap', payload: { reason, from: since } },
  ]);
  await service.admin('POST', 'objects', { id: `o-${reason.length}`, name: 'O' });
  await service.admin('POST', `objects/o-${reason.length}/packets`, { n: 5 });
  await until(hasReceived, 'the packet');
  expect(listener.take().map(({ payload }) => payload.n)).toEqual([5]);
  listener.close();
});

test('replays missed events with the current permissions', async () => {
  const admin = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const { body: group } = await service.admin('POST', 'groups', { name: 'Tenant' });
  const login = { login: 'guest', password: 'guest-password' };
  const { body: guest } = await service.admin('POST', 'users', { ...login, group: group._id });
  const objects: Record<string, string> = {};
  for (const id of ['kept', 'taken', 'given', 'foreign']) {
    objects[id] = (await service.admin('POST', 'objects', { id, name: id })).body._id;
  }
  for (const id of ['kept', 'taken']) await service.admin('POST', `objects/${id}/access`, { user: guest._id });
  await service.admin('POST', 'objects/kept/packets', { n: 0 });
  await service.settled();
  const since = admin.take().at(-1)?.position ?? '';
  for (const id of Object.keys(objects)) await service.admin('POST', `objects/${id}/packets`, { n: 1 });
  await service.admin('DELETE', `objects/taken/access/${guest._id}`);
  await service.admin('POST', 'objects/given/access', { user: guest._id });
  await service.settled();
  const token = await service.tokenOf(login.login, login.password);
  const back = await openListener(service.url, token, { since }, 'everything');
  await until(async () => (await back.subscribe({})) && back.received().length >= 4);
  expect(back.take().map(({ name, payload }) => [name, payload._oid ?? payload.id])).toEqual([
    ['object-packet', objects.kept],
    ['object-packet', objects.given],
    ['object-removed', objects.taken],
    ['object-created', objects.given],
  ]);
  back.close();
});

// The position of a client may belong to a change without events.
const SILENT: [store: string, write: () => Promise<unknown>][] = [
  ['labels', () => service.admin('POST', 'labels', { name: 'L' })],
  ['tokens', () => service.tokenOf(ADMIN.login, ADMIN.password)],
  ['sessions', () => service.as(null)('POST', 'auth', ADMIN)],
];

test.each(SILENT)('continues on another instance from a position after a change of %s', async (store, write) => {
  const id = `after-${store}`;
  await service.admin('POST', 'objects', { id, name: id });
  // The last change so far may be one of this store as well: that of the test before.
  await service.settled();
  const before = service.changes.length;
  await write();
  await until(() => service.changes.slice(before).some((change) => change.store === store), `a change of ${store}`);
  const { body: start } = await service.admin('GET', 'events');
  await service.admin('POST', `objects/${id}/packets`, { n: 1 });
  const other = await startTestService({}, service.mongodbUri);
  const { body: page } = await other.admin('GET', `events?since=${start.position}`);
  expect([page.gap, page.events.map(({ data }: { data: { n: number } }) => data.n)]).toEqual([undefined, [1]]);
  await other.service.stop();
  await other.client.close();
});
