/** Alarms of rules whose owner, or whose object, is elsewhere now: what the owner sees no more ends, and what he sees stays. */
import { expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { entityOf } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Call, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const HOT = { param: 't', op: '>', value: 8 };
let count = 0;

const createGroup = async (parent?: string): Promise<string> =>
  entityOf(await service.admin('POST', 'groups', { name: `group ${count++}`, ...(parent && { parent }) }))._id;

const createOwner = (group: string): Promise<Person> => createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group });

async function createObject(group: string): Promise<string> {
  const id = `lost-${count++}`;
  return entityOf(await service.admin('POST', 'objects', { id, name: id, group }))._id;
}

const send = async (objectId: string, t: number): Promise<void> =>
  void entityOf(await service.admin('POST', `objects/${objectId}/packets`, { t }));

const alarmsOf = async (call: Call, objectId: string) =>
  (await call('GET', `alarms?where.object=${objectId}&sortBy=raised`)).body as {
    status: string;
    clearReason?: string;
  }[];

const alarmsWith = (objectId: string, ...statuses: string[]): Promise<void> =>
  until(async () => {
    const alarms = await alarmsOf(service.admin, objectId);
    return alarms.map(({ status }) => status).join() === statuses.join();
  }, `alarms ${statuses.join()}`);

/** Resolves when all packets that were sent before are evaluated: a later one raises an alarm of its own rule. */
async function settle(): Promise<void> {
  for (let index = 0; index < 3; index++) await service.settled();
  const { _id: objectId } = entityOf(await service.admin('POST', 'objects', { id: `lost-${count++}`, name: 'x' }));
  entityOf(await service.admin('POST', 'rules', { name: 'settle', when: HOT, select: { objects: [objectId] } }));
  await send(objectId, 9);
  await alarmsWith(objectId, 'raised');
}

interface Scene {
  readonly owner: Person;
  /** The group of the owner, one below it, the one of the object, and one elsewhere. */
  readonly group: string;
  readonly below: string;
  readonly own: string;
  readonly elsewhere: string;
  readonly objectId: string;
}

/** A rule of the owner has raised an alarm; `isShared`: because the object, which is elsewhere, is shared with him. */
async function raise({ isShared = false, selectsGroup = false } = {}): Promise<Scene> {
  const group = await createGroup();
  const below = await createGroup(group);
  const elsewhere = await createGroup();
  const own = await createGroup(isShared ? elsewhere : below);
  const owner = await createOwner(group);
  const objectId = await createObject(own);
  if (isShared) entityOf(await service.admin('POST', `objects/${objectId}/access`, { user: owner.id }));
  const select = selectsGroup ? { group: below } : { objects: [objectId] };
  entityOf(await owner.call('POST', 'rules', { name: 'rule', when: HOT, select }));
  await service.settled();
  await send(objectId, 9);
  await alarmsWith(objectId, 'raised');
  return { owner, group, below, own, elsewhere, objectId };
}

/** Moves the group of the object. */
const move = async ({ own }: Scene, parent: string): Promise<void> =>
  void entityOf(await service.admin('PATCH', `groups/${own}`, { parent }));

const setRole = async ({ owner }: Scene, role: string): Promise<void> =>
  void entityOf(await service.admin('PATCH', `users/${owner.id}`, { role }));

type Act = (scene: Scene) => Promise<unknown>;

test.each<[string, Parameters<typeof raise>[0], Act, Act]>([
  [
    'is moved to a group that the owner does not see',
    {},
    (scene) => move(scene, scene.elsewhere),
    (scene) => move(scene, scene.below),
  ],
  [
    'is shared with the owner no more',
    { isShared: true },
    ({ objectId, owner }) => service.admin('DELETE', `objects/${objectId}/access/${owner.id}`),
    ({ objectId, owner }) => service.admin('POST', `objects/${objectId}/access`, { user: owner.id }),
  ],
  [
    'leaves the group that the rule selects',
    { selectsGroup: true },
    (scene) => move(scene, scene.group),
    (scene) => move(scene, scene.below),
  ],
  [
    'its owner may read no more',
    {},
    async (scene) => {
      const role = { name: `role ${count++}`, credentials: ['GET /rules/*', 'GET /rules'] };
      await setRole(scene, entityOf(await service.admin('POST', 'roles', role))._id);
    },
    (scene) => setRole(scene, ADMINISTRATOR_ROLE_ID),
  ],
])(
  'ends the alarm of an object that %s, and begins another one when that is over',
  async (_about, how, lose, regain) => {
    const scene = await raise(how);
    await lose(scene);
    await alarmsWith(scene.objectId, 'cleared');
    expect(await alarmsOf(service.admin, scene.objectId)).toMatchObject([{ clearReason: 'object not selected' }]);
    await send(scene.objectId, 10);
    await settle();
    expect(await alarmsOf(service.admin, scene.objectId)).toHaveLength(1);
    await regain(scene);
    await settle();
    await send(scene.objectId, 11);
    await alarmsWith(scene.objectId, 'cleared', 'raised');
  },
);

test('keeps the alarm of an object that moves where the owner sees it, and shows it to those who see the object now', async () => {
  const scene = await raise();
  const { owner, group, below, objectId } = scene;
  const beside = await createGroup(group);
  const former = await createOwner(below);
  const present = await createOwner(beside);
  const seen = async ({ call }: Person): Promise<number> => (await alarmsOf(call, objectId)).length;
  expect([await seen(former), await seen(present)]).toEqual([1, 0]);
  await move(scene, beside);
  await until(async () => (await seen(present)) === 1, 'the alarm is seen');
  expect(await seen(former)).toBe(0);
  await settle();
  expect(await alarmsOf(owner.call, objectId)).toMatchObject([{ status: 'raised' }]);
  await send(objectId, 1);
  await alarmsWith(objectId, 'cleared');
});

test('ends the alarms of an owner who is removed, and raises no others', async () => {
  const { owner, objectId } = await raise();
  expect((await service.admin('DELETE', `users/${owner.id}`)).status).toBe(200);
  await alarmsWith(objectId, 'cleared');
  expect(await alarmsOf(service.admin, objectId)).toMatchObject([{ clearReason: 'rights' }]);
  await send(objectId, 10);
  await settle();
  expect(await alarmsOf(service.admin, objectId)).toHaveLength(1);
});

test('ends, with its object, the alarm that the last packet raised', async () => {
  const { objectId } = await raise();
  await send(objectId, 1);
  await send(objectId, 9);
  // Packets that are evaluated after the removal raise nothing.
  await alarmsWith(objectId, 'cleared', 'raised');
  expect((await service.admin('DELETE', `objects/${objectId}`)).status).toBe(200);
  await alarmsWith(objectId, 'cleared', 'cleared');
  expect(await alarmsOf(service.admin, objectId)).toMatchObject([
    { clearReason: 'condition' },
    { clearReason: 'object removed' },
  ]);
});

test('leaves no alarm of an object that is removed just after a packet, whichever is looked at first', async () => {
  const { objectId } = await raise();
  await send(objectId, 1);
  await send(objectId, 9);
  expect((await service.admin('DELETE', `objects/${objectId}`)).status).toBe(200);
  // What is known of the object goes with its removal, after all of its packets.
  const states = service.client.db().collection<{ _id: string }>('alarmStates');
  const known = { $or: [{ _id: objectId }, { object: objectId }] };
  await until(async () => (await states.countDocuments(known)) === 0, 'the states of the object to go');
  const alarms = await alarmsOf(service.admin, objectId);
  expect(alarms.length).toBeGreaterThan(0);
  for (const { status } of alarms) expect(status).toBe('cleared');
});

test('shows at the rule that its owner may read no objects, as long as that is so', async () => {
  const owner = await createOwner(await createGroup());
  const { _id: ruleId } = entityOf(await owner.call('POST', 'rules', { name: 'rule', when: HOT }));
  const reasonIs = (reason: unknown): Promise<void> =>
    until(async () => {
      const { disabledReason } = entityOf(await service.admin('GET', `rules/${ruleId}`));
      return disabledReason === reason;
    }, `the reason ${reason}`);
  const credentials = ['GET /rules/*'];
  const role = entityOf(await service.admin('POST', 'roles', { name: `role ${count++}`, credentials }))._id;
  entityOf(await service.admin('PATCH', `users/${owner.id}`, { role }));
  await reasonIs('its owner, or who set it up, may read no objects');
  entityOf(await service.admin('PATCH', `users/${owner.id}`, { role: ADMINISTRATOR_ROLE_ID }));
  await reasonIs(undefined);
});
