/** What the measurements fill a database with has the form of what the service stores. */
import { expect, test } from '@jest/globals';
import { newObject, newPacket, objectId, sizeOf } from '../../scripts/bench/data.js';
import { fill } from '../../scripts/bench/fill.js';
import { startTestService, testUri } from '../support/fixture.js';

test('what is filled in has the form of what the service stores', async () => {
  const uri = testUri();
  const name = new URL(uri).pathname.slice(1);
  await fill(uri, [name], sizeOf(0.01));
  const service = await startTestService({}, uri);
  try {
    await service.admin('POST', 'objects', newObject('made'));
    await service.admin('POST', 'objects/made/packets', newPacket(Date.now()));
    const formOf = (value: object | null) =>
      JSON.stringify(Object.entries(value ?? {}).map(([key, member]) => [key, Object(member).constructor.name]));
    const [objects, packets] = ['objects', 'packets'].map((store) => service.client.db().collection(store));
    const [filled, made] = [await objects?.findOne({ id: 'truck-0' }), await objects?.findOne({ id: 'made' })];
    expect(formOf(filled ?? null)).toBe(formOf(made ?? null));
    const [old, fresh] = [await packets?.findOne({ id: 'truck-0' }), await packets?.findOne({ id: 'made' })];
    expect(formOf(old ?? null)).toBe(formOf(fresh ?? null));
    const { body } = await service.admin('GET', `objects/${objectId(0)}`);
    expect(body).toMatchObject({ id: 'truck-0', state: { id: 'truck-0' } });
  } finally {
    await service.stop();
  }
});
