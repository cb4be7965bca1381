/** Names of objects that change while a device or a token is read: the reply of the database comes after the change. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { entityOf } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { openListener, startSecond, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});
let count = 0;
const make = async (path: string, fields: object) => entityOf(await service.admin('POST', path, fields));
const change = async (path: string, fields: object) => entityOf(await service.admin('PATCH', path, fields));

/** A way to the database that holds back the reply to the next command with these bytes. */
async function startSlowReplies(uri: string) {
  const state = { bytes: null as Buffer | null, isHeld: false, release: () => undefined as unknown };
  const target = new URL(uri);
  const sockets: Socket[] = [];
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    sockets.push(near, far);
    let holdsReply = false;
    near.on('data', (asked) => {
      if (state.bytes !== null && asked.includes(state.bytes) && asked.includes('find') && !asked.includes('branch')) {
        state.bytes = null;
        holdsReply = true;
      }
      far.write(asked);
    });
    far.on('data', (answer) => {
      if (!holdsReply) return near.write(answer);
      holdsReply = false;
      state.isHeld = true;
      state.release = () => near.write(answer);
    });
    near.on('error', () => undefined).on('close', () => far.destroy());
    far.on('error', () => undefined).on('close', () => near.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  endings.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const through = new URL(uri);
  through.port = String((server.address() as AddressInfo).port);
  return { state, uri: through.href };
}

type Made = Awaited<ReturnType<typeof make>>;

const isUsed = (userId: string): boolean =>
  service.changes.some(({ store, kind, after }) => store === 'tokens' && kind === 'changed' && after?.user === userId);

/** The token of a device, or of a user; both see the first object by more than its name. */
async function tokenOf(what: 'a device' | 'a token', role: string, group: string, object: Made): Promise<string> {
  if (what === 'a device') return (await createPerson(service, { role, group, object: object._id })).token;
  const { id, login, password } = await createPerson(service, { role, group });
  const scopes = [`GET /objects/${object._id}`, 'GET /objects/*', 'GET /account'];
  const { body } = await service.as(null)('POST', 'auth/token', { login, password, scopes });
  // Its use is noted once a minute, which changes it.
  expect((await service.as(body.token)('GET', 'account')).status).toBe(200);
  await until(() => isUsed(id), 'the use to be noted');
  return body.token;
}

test.each(['a device', 'a token'] as const)(
  'takes the names of a role as they are, for %s that was read while its object was renamed',
  async (what) => {
    const group = (await make('groups', { name: 'g' }))._id;
    const name = `named-${++count}`;
    const own = await make('objects', { id: name, name: 'O', group });
    const other = await make('objects', { id: `other-${count}`, name: 'O', group });
    const role = (await make('roles', { name: `r${count}`, credentials: ['GET /*', '* /tokens/*'] }))._id;
    const token = await tokenOf(what, role, group, own);
    const slow = await startSlowReplies(service.mongodbUri);
    const late = await startSecond({ ...service, mongodbUri: slow.uri }, endings);
    slow.state.bytes = Buffer.from(own._id, 'hex');
    const answer = late.as(token)('GET', 'account');
    await until(() => slow.state.isHeld, 'the reply to be held');
    await change(`objects/${own._id}`, { id: `renamed-${count}` });
    await change(`objects/${other._id}`, { id: name });
    await until(() => late.changes.some(({ id, after }) => id === other._id && after?.id === name), 'the changes');
    slow.state.release();
    expect((await answer).status).toBe(200);
    const listener = await openListener(late.url, token);
    endings.push(() => listener.close());
    late.changes.splice(0);
    await change(`roles/${role}`, { credentials: [`GET /objects/${name}`] });
    await until(() => late.changes.some(({ id }) => id === role), 'the change of the role');
    expect((await late.as(token)('GET', `objects/${own._id}`)).status).toBe(403);
    listener.take();
    for (const { _id } of [own, other]) await make(`objects/${_id}/packets`, { of: _id });
    const last = await make('objects', { id: `last-${count}`, name: 'last' });
    await until(() => late.changes.some(({ id }) => id === last._id), 'every packet');
    await listener.socket.timeout(60_000).emitWithAck('subscribe', 'refused');
    const packets = listener.take().filter(({ name }) => name === 'object-packet');
    expect(packets.map(({ payload }) => payload.of)).toEqual([other._id]);
  },
);
