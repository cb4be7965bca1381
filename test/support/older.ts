/** The data of Vigil as it was before it kept a record of migrations: written straight into the database. */
import { type Db, ObjectId } from 'mongodb';
import { createPasswords } from '../../src/auth/passwords.js';
import { BUILT_IN_MODELS, BUILT_IN_ROLES, DEFAULT_MODEL_ID } from '../../src/model/builtin.js';
import { ADMIN } from './fixture.js';

export const OLDER = {
  object: '5f0000000000000000000001',
  /** Given a moment ago, and two days ago. */
  newCommand: '5f0000000000000000000002',
  oldCommand: '5f0000000000000000000003',
  token: '5f0000000000000000000004',
} as const;

const [ROOT, USER] = [new ObjectId('000000000000000000000001'), new ObjectId('000000000000000000000002')];

export async function writeOlderData(db: Db, nowMs: number): Promise<void> {
  const passwords = await createPasswords();
  const common = { owner: USER, group: ROOT, branch: [ROOT], access: [], time: nowMs };
  const model = new ObjectId(DEFAULT_MODEL_ID);
  const object = new ObjectId(OLDER.object);
  const withIds = (entities: readonly object[]) =>
    entities.map((entity) => ({
      ...entity,
      _id: new ObjectId((entity as { _id: string })._id),
      ...common,
      _builtin: true,
    }));
  for (const name of ['objects', 'commands', 'users']) {
    await db.createCollection(name, { changeStreamPreAndPostImages: { enabled: true } });
  }
  await db.collection('objects').createIndex({ branch: 1, _id: 1 });
  await db.collection('groups').insertOne({ _id: ROOT, name: 'root', parent: null, ...common });
  await db.collection('models').insertMany(withIds(BUILT_IN_MODELS));
  await db.collection('roles').insertMany(withIds(BUILT_IN_ROLES));
  await db.collection('users').insertOne({
    ...{ _id: USER, login: ADMIN.login, name: ADMIN.login, active: true, ...common },
    ...{ role: new ObjectId('000000000000000000000020'), _password: await passwords.hash(ADMIN.password) },
  });
  await db.collection('objects').insertOne({
    ...{ _id: object, id: 'older-1', name: 'Older', model, models: { id: model }, status: '', active: true, ...common },
  });
  await db.collection('packets').insertOne({
    ...{ _ts: nowMs * 1_000, time: nowMs, online: true, _oid: object, id: 'older-1', _gid: ROOT, speed: 7 },
  });
  const queuedAt = (queued: number) => ({ status: 'queued', times: { queued }, ...common, time: queued });
  const wanted = { object, command: 'stop', params: {} };
  await db.collection('commands').insertMany([
    { _id: new ObjectId(OLDER.newCommand), ...wanted, ...queuedAt(nowMs) },
    { _id: new ObjectId(OLDER.oldCommand), ...wanted, ...queuedAt(nowMs - 2 * 86_400_000) },
  ]);
  await db.collection<{ _id: string; time: number }>('installation').insertOne({ _id: 'first start', time: nowMs });
}
