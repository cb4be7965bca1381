/** Commands that phones with OwnTracks get in the answers to what they send. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { type ClientSession, ObjectId } from 'mongodb';
import { returnFromAnswer, takeForAnswer } from '../../src/commands/network-store.js';
import { LIMITS } from '../../src/core/limits.js';
import { connectDatabase } from '../../src/platform/mongo/schema/connect.js';
import { expectRefusal } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { testUri, useService } from '../support/fixture.js';
import { useSources } from '../support/sources.js';
import { until } from '../support/until.js';

const service = useService({ env: { LOG_LEVEL: 'warn' } });
const { createSource, createObject, newName, send } = useSources(service);

const CONFIGURATION = { _type: 'configuration', monitoring: 2 };

async function command(object: { _id: string }, name: string, params: object = {}): Promise<string> {
  const { headers } = await service.admin('POST', `objects/${object._id}/commands/${name}`, params);
  return (headers.location as string).split('/').at(-1) as string;
}

const read = async (id: string) => (await service.admin('GET', `commands/${id}`)).body;

let second = 0;
const locationOf = ({ id }: { id: string }) => ({
  _type: 'location',
  lat: 52.5,
  lon: 13.4,
  tst: 1_795_500_000 + ++second,
  topic: `owntracks/jane/${id}`,
});

describe('a phone behind a source with commands', () => {
  test('gets those that wait, in their order, once, in the form of OwnTracks', async () => {
    const source = await createSource({ kind: 'owntracks', map: { commands: true } });
    const object = await createObject();
    const ids = [
      await command(object, 'setConfiguration', { configuration: CONFIGURATION }),
      await command(object, 'reportLocation'),
    ];
    expect((await send(source, { _type: 'card', tid: object.id })).text).toBe('[]');
    const answer = await send(source, locationOf(object));
    expect([answer.status, answer.body]).toEqual([
      200,
      [
        { _type: 'cmd', action: 'setConfiguration', configuration: CONFIGURATION },
        { _type: 'cmd', action: 'reportLocation' },
      ],
    ]);
    expect((await send(source, locationOf(object))).text).toBe('[]');
    for (const id of ids) {
      const { status, network, times } = await read(id);
      expect({ status, network, times }).toEqual({
        status: 'sent',
        network: 'sent',
        times: { queued: expect.any(Number), sent: expect.any(Number) },
      });
    }
  });

  test('gets the others with its next answer, if there are many', async () => {
    const source = await createSource({ kind: 'owntracks', map: { commands: true } });
    const object = await createObject();
    for (let at = 0; at <= LIMITS.sourceCommandsPerAnswer; at++) await command(object, `command-${at}`);
    const counts: number[] = [];
    for (let sent = 0; sent < 3; sent++) counts.push((await send(source, locationOf(object))).body.length);
    expect(counts).toEqual([LIMITS.sourceCommandsPerAnswer, 1, 0]);
  });

  test('gets them also where its payload cannot be stored', async () => {
    const source = await createSource({ kind: 'owntracks', map: { commands: true } });
    const object = await createObject();
    await command(object, 'reportLocation');
    const unstorable = { ...locationOf(object), tst: 'soon' };
    expect((await send(source, unstorable)).body).toEqual([{ _type: 'cmd', action: 'reportLocation' }]);
  });
});

test('keeps commands queued where the source does not give them', async () => {
  const source = await createSource({ kind: 'owntracks' });
  const object = await createObject();
  const id = await command(object, 'reportLocation');
  expect((await send(source, locationOf(object))).text).toBe('[]');
  expect(await read(id)).toMatchObject({ status: 'queued' });
});

test('lets commands wait again whose answer did not go out, unless they ended', async () => {
  const source = await createSource({ kind: 'owntracks', map: { commands: true } });
  const object = await createObject();
  const [first, ended] = [await command(object, 'a'), await command(object, 'b')] as const;
  const database = await connectDatabase(testUri(service.client.db().databaseName));
  const to = { objectId: object._id, sourceId: source._id };
  const taken = await takeForAnswer(database, to, { answerId: 'one', most: 20 }, Date.now());
  expect(taken.map(({ _id }) => _id)).toEqual([first, ended]);
  const outcome = await service.admin('POST', `objects/${object._id}/commands/${ended}/result`, { status: 'done' });
  expect(outcome.status).toBe(200);
  await returnFromAnswer(database, ['one']);
  await database.client.close();
  const { status, times, network } = await read(first);
  expect({ status, times, network }).toEqual({ status: 'queued', times: { queued: expect.any(Number) } });
  expect((await read(ended)).status).not.toBe('queued');
  expect((await send(source, locationOf(object))).body).toEqual([{ _type: 'cmd', action: 'a' }]);
});

test('lets a command wait again whose phone has gone before the answer', async () => {
  const source = await createSource({ kind: 'owntracks', map: { commands: true } });
  const object = await createObject();
  const id = await command(object, 'reportLocation');
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const text = JSON.stringify(locationOf(object));
  const head = `POST /api/v1/in/${source.id}/${source.key} HTTP/1.1\r\nHost: vigil\r\nContent-Length: ${text.length}`;
  // What this transaction has changed nobody else changes before its end: the answer waits.
  const session = service.client.startSession();
  session.startTransaction();
  const commands = service.client.db().collection('commands');
  await commands.updateOne({ _id: new ObjectId(id) }, { $set: { held: true } }, { session });
  const { statuses, stop } = await watchStatuses(id);
  socket.write(`${head}\r\n\r\n${text}`);
  const isStored = async () => (await service.admin('GET', `objects/${object.id}/packets?meta=true`)).body.count === 1;
  await until(isStored, 'the location');
  socket.resetAndDestroy();
  await session.abortTransaction();
  await session.endSession();
  await until(() => statuses.length === 2, 'the command to wait again');
  await stop();
  expect(statuses).toEqual(['sent', 'queued']);
  const { status, times } = await read(id);
  expect({ status, times }).toEqual({ status: 'queued', times: { queued: expect.any(Number) } });
  expect((await send(source, locationOf(object))).body).toEqual([{ _type: 'cmd', action: 'reportLocation' }]);
});

test('returns what it has taken if the database fails before it has all, also if it fails again', async () => {
  const source = await createSource({ kind: 'owntracks', map: { commands: true } });
  const object = await createObject();
  const ids = [await command(object, 'a'), await command(object, 'b')] as const;
  const heldSecond = await hold(ids[1]);
  const answer = send(source, locationOf(object));
  await until(async () => (await read(ids[0])).status === 'sent', 'the first command to be taken');
  const heldFirst = await hold(ids[0]);
  await interrupt({ 'command.findAndModify': 'commands' });
  expectRefusal(await answer, 503);
  await interrupt({ op: 'update' });
  for (const session of [heldFirst, heldSecond]) {
    await session.abortTransaction();
    await session.endSession();
  }
  await until(async () => (await read(ids[0])).status === 'queued', 'the first command to wait again');
  expect((await read(ids[0])).times).toEqual({ queued: expect.any(Number) });
  expect((await send(source, locationOf(object))).body).toMatchObject([{ action: 'a' }, { action: 'b' }]);
});

test('lets a command wait again that the database takes only after the answer was given up', async () => {
  const source = await createSource({ kind: 'owntracks', map: { commands: true } });
  const object = await createObject();
  const id = await command(object, 'reportLocation');
  const { statuses, stop } = await watchStatuses(id);
  const session = await hold(id);
  const { databaseOperationMs } = LIMITS;
  // Longer than a busy machine takes to store the location, after which the command is asked for.
  Object.assign(LIMITS, { databaseOperationMs: 3_000 });
  expectRefusal(await send(source, locationOf(object)), 503);
  Object.assign(LIMITS, { databaseOperationMs });
  expect((await read(id)).status).toBe('queued');
  await session.abortTransaction();
  await session.endSession();
  await until(() => statuses.length === 2, 'the command to be taken, and to wait again');
  await stop();
  expect(statuses).toEqual(['sent', 'queued']);
  expect((await send(source, locationOf(object))).body).toEqual([{ _type: 'cmd', action: 'reportLocation' }]);
});

/** The statuses that a command gets from now on. */
async function watchStatuses(id: string): Promise<{ statuses: unknown[]; stop: () => Promise<void> }> {
  const commands = service.client.db().collection('commands');
  const changes = commands.watch([{ $match: { 'documentKey._id': new ObjectId(id) } }]);
  const statuses: unknown[] = [];
  changes.on('change', (change) => {
    if ('updateDescription' in change) statuses.push(change.updateDescription.updatedFields?.status);
  });
  await once(changes, 'resumeTokenChanged');
  return { statuses, stop: () => changes.close() };
}

/** Nobody else changes a command until this transaction ends. */
async function hold(id: string): Promise<ClientSession> {
  const session = service.client.startSession();
  session.startTransaction();
  const commands = service.client.db().collection('commands');
  await commands.updateOne({ _id: new ObjectId(id) }, { $set: { held: true } }, { session });
  return session;
}

/** Ends an operation of the service on commands that waits, which then fails. */
async function interrupt(operation: object): Promise<void> {
  const { databaseName } = service.client.db();
  const $match = { ns: `${databaseName}.commands`, ...operation };
  const admin = service.client.db('admin');
  const running = () => admin.aggregate([{ $currentOp: {} }, { $match }]).toArray();
  await until(async () => (await running()).length > 0, `an operation that waits: ${JSON.stringify(operation)}`);
  for (const { opid } of await running()) await admin.command({ killOp: 1, op: opid });
}

test('is set, and its key renewed, only by those who may read and send commands of every object', async () => {
  const credentials = ['* /sources/*', 'GET /*', 'POST /objects/*/packets'];
  const { body: role } = await service.admin('POST', 'roles', { name: newName(), credentials });
  const { call } = await createPerson(service, { role: role._id });
  const fields = { id: newName(), name: 'x', kind: 'owntracks', map: { commands: true } };
  expectRefusal(await call('POST', 'sources', fields), 403);
  const plain = await createSource({ kind: 'owntracks' }, call);
  expectRefusal(await call('PATCH', `sources/${plain._id}`, { map: { commands: true } }), 403);
  const given = await createSource({ kind: 'owntracks', map: { commands: true } });
  expectRefusal(await call('POST', `sources/${given._id}/key`), 403);
});

test.each([
  ['osmand', { commands: true }, 'map.commands: the kind osmand has no map'],
  ['owntracks', { commands: 'yes' }, 'map.commands: expected true or false'],
])('is refused of %s as %j', async (kind, map, why) => {
  expectRefusal(await service.admin('POST', 'sources', { id: newName(), name: 'x', kind, map }), 400, why);
});
