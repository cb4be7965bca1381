/** Command events of sockets: creation and result, live and after a reconnect. */
import { expect, test } from '@jest/globals';
import { DEVICE_ROLE_ID, OPERATOR_ROLE_ID } from '../../src/core/builtin.js';
import { entityOf, eventsOf } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { ADMIN, openListener, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const make = async (path: string, fields: object) => entityOf(await service.admin('POST', path, fields));
const send = async (id: string, params: object = {}) => {
  const { headers } = await service.admin('POST', `objects/${id}/commands/go`, params);
  return entityOf(await service.admin('GET', headers.location as string));
};
const finish = async (id: string, command: string, body: object) =>
  entityOf(await service.admin('POST', `objects/${id}/commands/${command}/result`, body));
const shown = ({ _id, command, params, status, times, expires, result }: Record<string, unknown>) => ({
  _id,
  command,
  params,
  status,
  times,
  expires,
  ...(result !== undefined && { result }),
});

test('sends command events to all clients that see the object, and to no others', async () => {
  const north = await make('groups', { name: 'north' });
  const south = await make('groups', { name: 'south' });
  const near = await make('objects', { id: 'near', name: 'x', group: north._id });
  const far = await make('objects', { id: 'far', name: 'x', group: south._id });
  const person = (group: string, more: object = {}) =>
    createPerson(service, { group, role: OPERATOR_ROLE_ID, ...more });
  const inNorth = await person(north._id);
  const inSouth = await person(south._id);
  const guest = await person(south._id);
  const device = await person(north._id, { role: DEVICE_ROLE_ID, object: near._id });
  await make('objects', { id: 'near-2', name: 'x', group: north._id });
  entityOf(await service.admin('POST', `objects/${near._id}/access`, { user: guest.id }));
  // Later subscribers do not receive it.
  await service.settled();
  const listeners = {
    admin: await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password)),
    inNorth: await service.listen(inNorth.token),
    inSouth: await service.listen(inSouth.token),
    guest: await service.listen(guest.token),
    device: await service.listen(device.token),
  };
  const sent = await send('near', { a: 1 });
  const done = await finish('near', sent._id, { status: 'done', result: { b: 2 } });
  const other = await send('far');
  const failed = await finish('far', other._id, { status: 'failed' });
  await service.settled();
  const event = (name: string, id: string, command: object) => ({
    name,
    payload: { id, command: shown({ ...command }) },
  });
  const ofNear = [event('object-command-req', near._id, sent), event('object-command-res', near._id, done)];
  const ofFar = [event('object-command-req', far._id, other), event('object-command-err', far._id, failed)];
  const received = Object.fromEntries(Object.entries(listeners).map(([name, one]) => [name, eventsOf(one.take())]));
  expect(received).toEqual({
    admin: [...ofNear, ...ofFar],
    inNorth: ofNear,
    device: ofNear,
    inSouth: ofFar,
    guest: [...ofNear, ...ofFar],
  });
  for (const one of Object.values(listeners)) one.close();
});

test('filters command events by name', async () => {
  await make('objects', { id: 'narrow', name: 'x' });
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  expect(await listener.subscribe({ objects: ['narrow'], events: ['object-command-res'] })).toMatchObject({
    success: true,
  });
  const { _id } = await send('narrow');
  await finish('narrow', _id, { status: 'done' });
  await finish('narrow', (await send('narrow'))._id, { status: 'failed' });
  await service.settled();
  expect(listener.take().map(({ name, payload }) => [name, payload.command._id])).toEqual([
    ['object-command-res', _id],
  ]);
  listener.close();
});

test('sends missed command events in order after a reconnect', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const first = await service.listen(token);
  await make('objects', { id: 'car', name: 'x' });
  const before = await send('car');
  await service.settled();
  const since = first.take().at(-1)?.position ?? '';
  first.close();
  const ended = [await finish('car', before._id, { status: 'done', result: 1 })];
  const next = await send('car');
  ended.push(await finish('car', next._id, { status: 'failed', result: 2 }));
  const back = await openListener(service.url, token, { since });
  await until(async () => (await back.subscribe({})) && back.received().length >= 3, 'what was missed');
  expect(eventsOf(back.take())).toEqual([
    { name: 'object-command-res', payload: { id: next.object, command: shown(ended[0]) } },
    { name: 'object-command-req', payload: { id: next.object, command: shown(next) } },
    { name: 'object-command-err', payload: { id: next.object, command: shown(ended[1]) } },
  ]);
  back.close();
});
