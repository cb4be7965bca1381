/** Objects whose ids were stored before ids had one form, with blanks around them or in NFD, are found by them as before. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import type { MqttClient } from 'mqtt';
import { DEVICE_ROLE_ID } from '../../src/core/builtin.js';
import { useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const clients: MqttClient[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.end(true);
});

let count = 0;
/** An object that is stored with this id. */
async function store(id: string): Promise<string> {
  const _id = await createObject(service.admin, `stored-${++count}`);
  await service.client
    .db()
    .collection('objects')
    .updateOne({ _id: new ObjectId(_id) }, { $set: { id } });
  await service.settled();
  return _id;
}

const pathOf = (id: string): string => `objects/${encodeURIComponent(id)}`;

describe.each([
  ['blanks in front', () => ` lkw ${++count}`],
  ['blanks behind', () => `lkw ${++count}  `],
  ['a wide blank', () => `lkw ${++count}\u3000`],
  ['a byte order mark', () => `\ufefflkw ${++count}`],
  ['NFD', () => `Kühlhaus ${++count}`.normalize('NFD')],
  ['Hangul in NFD', () => `서울 ${++count}`.normalize('NFD')],
  ['both', () => ` Zürich ${++count} `.normalize('NFD')],
])('an id with %s', (_, nextId) => {
  test('is read, changed, written to, listed and removed', async () => {
    const id = nextId();
    const _id = await store(id);
    const read = await service.admin('GET', pathOf(id));
    expect([read.status, read.body._id, read.body.id]).toEqual([200, _id, id]);
    expect((await service.admin('GET', `${pathOf(id)}?only=name`)).body._id).toBe(_id);
    expect((await service.admin('PATCH', pathOf(id), { status: 'seen' })).body).toMatchObject({
      _id,
      id,
      status: 'seen',
    });
    expect((await service.admin('POST', `${pathOf(id)}/packets`, { a: 1 })).status).toBe(200);
    expect((await service.admin('GET', `${pathOf(id)}/packets`)).body).toMatchObject([{ a: 1, id }]);
    expect((await service.admin('POST', `${pathOf(id)}/commands/stop`)).body).toEqual({ success: true });
    const found = await service.admin('GET', `objects?where.id=${encodeURIComponent(id)}`);
    expect(found.body).toMatchObject([{ _id, id }]);
    expect((await service.admin('DELETE', pathOf(id))).body).toMatchObject({ _id, id });
    expect((await service.admin('GET', pathOf(id))).status).toBe(404);
  });

  test('does not stand in the way of the same id in its right form, which comes first', async () => {
    const id = nextId();
    const former = await store(id);
    const { body } = await service.admin('POST', 'objects', { id, name: 'x' });
    expect(body.id).not.toBe(id);
    expect((await service.admin('GET', pathOf(id))).body._id).toBe(body._id);
    expect((await service.admin('GET', `objects/${former}`)).body.id).toBe(id);
  });

  test('lets its device in, by password over MQTT and by its user over HTTP', async () => {
    const id = nextId();
    const _id = await store(id);
    const device = await connectDevice(service.service.mqttUrl as string, id);
    clients.push(device);
    await device.publishAsync('base/state', JSON.stringify({ b: 2 }), { qos: 1 });
    await service.admin('POST', 'users', {
      login: `device-${_id}`,
      password: 'long enough',
      role: DEVICE_ROLE_ID,
      object: _id,
    });
    const asDevice = service.as(await service.tokenOf(`device-${_id}`, 'long enough'));
    // Rights by such an id could mean another object.
    expect((await asDevice('POST', `objects/${_id}/packets`, { b: 3 })).status).toBe(200);
    const read = async () => (await service.admin('GET', `objects/${_id}/packets?where.b=2,3`)).body.length;
    await until(async () => (await read()) === 2, 'both packets');
  });
});
