/** Whoever may see an object sees its packed history, and nobody else: also after it or its group has moved. */
import { expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { useService } from '../support/fixture.js';
import { packHistory, readHistory } from '../support/packed.js';

const service = useService();
const START = Date.UTC(2026, 0, 1);
const PASSWORD = 'needs a long one';
const database = () => databaseOf(service.client);
const post = async (path: string, body: object) => (await service.admin('POST', path, body)).body;

test('shows packed packets to whom the object belongs, before and after its group moves, as they were stored', async () => {
  const north = await post('groups', { name: 'North' });
  const south = await post('groups', { name: 'South' });
  const depot = await post('groups', { name: 'Depot', parent: north._id });
  const callers = new Map<string, ReturnType<typeof service.as>>();
  for (const [login, group] of Object.entries({ ada: north._id, bob: south._id })) {
    await post('users', { login, password: PASSWORD, group });
    callers.set(login, service.as(await service.tokenOf(login, PASSWORD)));
  }
  const { _id } = await post('objects', { id: `truck-${new ObjectId()}`, name: 'Truck', group: depot._id });
  const packets = Array.from({ length: 30 }, (_, nth) => ({ time: START + nth, nth }));
  await post(`objects/${_id}/packets`, packets);
  const before = await readHistory(database(), _id);
  const statuses = async () => {
    const found: number[] = [];
    for (const call of callers.values()) found.push((await call('GET', `objects/${_id}/packets`)).status);
    return found;
  };
  expect(await statuses()).toEqual([200, 404]);
  await packHistory(database(), _id);
  expect(await statuses()).toEqual([200, 404]);
  expect((await service.admin('PATCH', `groups/${depot._id}`, { parent: south._id })).status).toBe(200);
  expect(await statuses()).toEqual([404, 200]);
  expect(await readHistory(database(), _id)).toEqual(before);
});
