/** Two instances on a sharded cluster with packets on both shards. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { entityOf, expectRefusal } from '../support/answers.js';
import { ADMIN, openListener, startTestService, type TestService } from '../support/fixture.js';
import { type Cluster, findPrograms, startCluster } from '../support/sharded-cluster.js';
import { until } from '../support/until.js';

const programs = await findPrograms();
const OBJECTS = 8;

let cluster: Cluster;
let first: TestService;
let second: TestService;
let objects: string[];

beforeAll(async () => {
  if (programs === null) return;
  cluster = await startCluster(programs);
  const uri = cluster.uri('vigil');
  first = await startTestService({}, uri);
  second = await startTestService({}, uri);
});

afterAll(async () => {
  await second?.service.stop();
  await second?.client.close();
  await first?.stop();
  await cluster?.stop();
});

const shard = (uri: string) =>
  promisify(execFile)(process.execPath, ['dist/scripts/shard.js'], {
    env: { PATH: process.env.PATH, MONGODB_URI: uri },
  });

(programs === null ? describe.skip : describe)('a sharded cluster', () => {
  test('declares the shard key with npm run shard, also a second time', async () => {
    for (let n = 0; n < 2; n++) {
      const { stdout } = await shard(cluster.uri('vigil'));
      expect(stdout).toContain('spread over 2 shards by object and time');
    }
    await expect(shard(cluster.uri('nothing'))).rejects.toMatchObject({
      stderr: expect.stringContaining('start Vigil'),
    });
  });

  test('keeps own ids of objects unique on every instance', async () => {
    objects = [];
    for (let n = 0; n < OBJECTS; n++) {
      const made = entityOf(await first.admin('POST', 'objects', { id: `car-${n}`, name: `Car ${n}` }));
      objects.push(made._id);
    }
    expectRefusal(await second.admin('POST', 'objects', { id: 'car-0', name: 'Another' }), 409);
    // The later half of the objects goes to the other shard.
    const middle = { _oid: new ObjectId(objects[OBJECTS / 2]), time: -1 };
    await cluster.command({ split: 'vigil.packets', middle });
    const known = first.client.db('config').collection<{ _id: string; primary: string }>('databases');
    const home = (await known.findOne({ _id: 'vigil' }))?.primary;
    const to = cluster.shards.find((name) => name !== home);
    await cluster.command({ moveChunk: 'vigil.packets', find: middle, to });
  });

  test('stores packets on both shards, reads them in order, and stores repeated ones once', async () => {
    for (const id of objects) {
      const packets = Array.from({ length: 50 }, (_, n) => ({ time: 1_700_000_000_000 + (49 - n) * 1_000, n: 49 - n }));
      expect((await first.admin('POST', `objects/${id}/packets`, packets)).body).toMatchObject({ count: 50 });
    }
    const counts = await first.client
      .db()
      .collection('packets')
      .aggregate([{ $collStats: { count: {} } }])
      .toArray();
    expect(counts.map(({ count }) => count).sort()).toEqual([200, 200]);
    for (const id of objects) {
      const { body } = await second.admin('GET', `objects/${id}/packets?begin=1700000010000&end=1700000019000&only=n`);
      expect(body.map(({ n }: { n: number }) => n)).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
      const meta = await second.admin('GET', `objects/${id}/packets?meta=true`);
      expect(meta.body).toMatchObject({ count: 50, first: { n: 0 }, last: { n: 49 } });
      expect((await second.admin('GET', `objects/${id}`)).body.state).toMatchObject({ n: 49 });
    }
    // Sent again with the time it had: the same packet.
    const again = { _id: new ObjectId().toHexString(), time: 1_700_000_100_000, n: 100 };
    for (const instance of [first, second]) {
      expect((await instance.admin('POST', `objects/${objects[0]}/packets`, again)).status).toBe(200);
    }
    expect((await first.admin('GET', `objects/${objects[0]}/packets?meta=true`)).body.count).toBe(51);
    expect((await first.admin('GET', `objects/${objects[0]}/packets/${again._id}`)).body).toMatchObject({ n: 100 });
    // With the same `_id`, but of another object: on the same shard, and on the other one.
    for (const id of [objects[1], objects.at(-1)]) {
      for (const instance of [first, second]) {
        const { status, body } = await instance.admin('POST', `objects/${id}/packets`, again);
        expect([status, body._id, body._oid]).toEqual([200, again._id, id]);
      }
      expect((await second.admin('GET', `objects/${id}/packets?meta=true`)).body.count).toBe(51);
    }
  });

  test('serves changes, commands, groups, stores and lists', async () => {
    const [id] = objects as [string];
    expect((await first.admin('PATCH', `objects/${id}`, { status: 'on tour', config: { hz: 5 } })).status).toBe(200);
    const together = objects.map((each, nth) => first.admin('PATCH', `objects/${each}`, { note: `n ${nth}` }));
    expect((await Promise.all(together)).map(({ body }) => body.note)).toEqual(objects.map((_, nth) => `n ${nth}`));
    expect((await second.admin('POST', `objects/${id}/commands/go`, { speed: 5 })).body).toEqual({ success: true });
    expect((await first.admin('GET', `commands?where.object=${id}`)).body).toHaveLength(1);
    const group = entityOf(await first.admin('POST', 'groups', { name: 'Depot' }));
    const below = entityOf(await first.admin('POST', 'groups', { name: 'Shed', parent: group._id }));
    const other = entityOf(await first.admin('POST', 'groups', { name: 'Yard' }));
    expect((await first.admin('PATCH', `groups/${group._id}`, { parent: other._id })).status).toBe(200);
    expect((await second.admin('GET', `groups/${below._id}`)).body.branch).toContain(other._id);
    expect((await first.admin('POST', 'stores', { name: 'tyres', schema: { type: 'object' } })).status).toBe(200);
    entityOf(await first.admin('POST', 'tyres', { size: 17 }));
    expect((await second.admin('GET', 'objects?search=car&limit=3&only=id')).body).toHaveLength(3);
  });

  test('sends live events of both shards in order from both instances, also after an absence', async () => {
    const token = await first.tokenOf(ADMIN.login, ADMIN.password);
    const listeners = [await first.listen(token), await second.listen(token)];
    const sent: number[] = [];
    for (let n = 0; n < 20; n++) {
      await first.admin('POST', `objects/${objects[n % OBJECTS]}/packets`, { live: n });
      sent.push(n);
    }
    const liveOf = (received: readonly { payload: { live?: number } }[]) =>
      received.flatMap(({ payload }) => payload.live ?? []);
    for (const { received } of listeners) {
      await until(() => liveOf(received()).length >= sent.length, 'all events');
      expect(liveOf(received())).toEqual(sent);
    }
    const position = listeners[0]?.received().at(-1)?.position ?? '';
    for (const { close } of listeners) close();
    await first.admin('POST', `objects/${objects[0]}/packets`, { live: 20 });
    await first.admin('POST', `objects/${objects.at(-1)}/packets`, { live: 21 });
    const back = await openListener(second.url, token, { since: position });
    await until(() => liveOf(back.received()).length >= 2, 'what was missed');
    expect(back.received().map(({ name, payload }) => payload.live ?? name)).toEqual([20, 21]);
    back.close();
  });

  test('removes the packets of a removed object from all shards', async () => {
    const id = objects.at(-1);
    expect((await first.admin('DELETE', `objects/${id}`)).status).toBe(200);
    const left = () =>
      first.client
        .db()
        .collection('packets')
        .countDocuments({ _oid: new ObjectId(id) });
    await until(async () => (await left()) === 0, 'its packets are removed');
  });
});
