/** Commands to devices behind sources: what their systems are sent, and what the journal says then. */
import { describe, expect, test } from '@jest/globals';
import { expectRefusal } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { PEER_KEY as KEY, uplinkOf, useCommandPeer } from '../support/command-peer.js';
import { startSecond, useService } from '../support/fixture.js';
import { useSources } from '../support/sources.js';
import { until } from '../support/until.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8', LOG_LEVEL: 'warn' } });
const sources = useSources(service);
const { createSource, createObject, newName, send } = sources;
const { peer, connect, command, read, becomes } = useCommandPeer(service, sources);

/** One answer of this status, and then successes. */
function nextOf(status: number): () => number {
  const answers = [status];
  return () => answers.shift() ?? 200;
}

describe('a command', () => {
  test.each<[string, string, object, number, object]>([
    [
      'traccar',
      'engineStop',
      { a: 1 },
      200,
      { path: '/api/commands/send', body: { deviceId: 17, type: 'engineStop', attributes: { a: 1 } }, network: 'sent' },
    ],
    ['traccar', 'engineStop', {}, 202, { path: '/api/commands/send', network: 'queued' }],
    [
      'ttn',
      'valve',
      { fPort: 15, data: 'AQ==' },
      200,
      {
        path: '/devices/ID/down/push',
        body: { downlinks: [{ f_port: 15, confirmed: false, priority: 'NORMAL', frm_payload: 'AQ==' }] },
        network: 'queued',
      },
    ],
    [
      'ttn',
      'valve',
      { confirmed: true, open: true },
      200,
      {
        path: '/devices/ID/down/push',
        body: { downlinks: [{ f_port: 1, confirmed: true, decoded_payload: { open: true } }] },
      },
    ],
    [
      'chirpstack',
      'valve',
      { fPort: 2, data: 'AQ==' },
      200,
      {
        path: '/api/devices/ID/queue',
        body: { queueItem: { fPort: 2, confirmed: false, data: 'AQ==' } },
        network: 'queued',
      },
    ],
    ['chirpstack', 'valve', { open: 1 }, 200, { body: { queueItem: { fPort: 1, object: { open: 1 } } } }],
  ])('is sent as the system of the device takes it, and is what that says: %s %s %j %i', async (...row) => {
    const [kind, name, params, status, expected] = row;
    const { path, body, network } = expected as { path?: string; body?: object; network?: string };
    const { id } = await connect(kind);
    peer.status = () => status;
    const commandId = await command(id, name, params);
    await becomes(commandId, 'sent');
    expect(peer.got).toHaveLength(1);
    if (path !== undefined) expect(peer.got[0]?.path).toBe(path.replace('ID', id));
    if (body !== undefined) expect(peer.got[0]?.body).toMatchObject(body);
    const stored = await read(commandId);
    if (network !== undefined) expect(stored.network).toBe(network);
    // Nobody has confirmed it.
    expect(stored.times).toEqual({ queued: expect.any(Number), sent: expect.any(Number) });
    const header = kind === 'chirpstack' ? 'grpc-metadata-authorization' : 'authorization';
    expect(peer.got[0]?.headers[header]).toBe(`Bearer ${KEY}`);
  });

  test.each<[string, string, object, string]>([
    ['ttn', 'nothing to send', {}, 'nothing to send'],
    ['ttn', 'a port that does not exist', { fPort: 300, data: 'AQ==' }, 'fPort: expected 1 to 223'],
    ['chirpstack', 'no base64', { data: 'no base64!' }, 'data: expected base64'],
    ['chirpstack', 'no boolean', { confirmed: 'yes', data: 'AQ==' }, 'confirmed: expected true or false'],
  ])('fails with the reason if it cannot be one: %s, %s', async (kind, _name, params, reason) => {
    const { id } = await connect(kind);
    const commandId = await command(id, 'go', params);
    await becomes(commandId, 'failed');
    const { result, times } = await read(commandId);
    expect(result.message).toContain(reason);
    expect(Object.keys(times)).toEqual(['queued', 'failed']);
    expect(peer.got).toEqual([]);
  });

  test('fails if the system refuses it, and the next one is sent', async () => {
    const { id } = await connect('traccar');
    peer.status = nextOf(400);
    const refused = await command(id, 'nonsense');
    const next = await command(id, 'engineResume');
    await becomes(next, 'sent');
    expect(await read(refused)).toMatchObject({ status: 'failed', result: { status: 400 } });
  });

  test('waits and is sent again, before later ones, if the system does not answer for now', async () => {
    const { id } = await connect('traccar');
    // It does not answer until the next command has come, however often it is tried.
    peer.status = () => 503;
    const first = await command(id, 'one');
    await until(() => peer.got.length > 0, 'the first try');
    const second = await command(id, 'two');
    expect((await read(first)).status).toBe('queued');
    peer.status = () => 200;
    await becomes(second, 'sent');
    const tries = peer.got.map(({ body }) => body.type);
    expect(tries.length).toBeGreaterThan(2);
    expect(tries).toEqual([...Array(tries.length - 1).fill('one'), 'two']);
    expect((await read(first)).status).toBe('sent');
  });

  test('is in one log line with the others of its source that cannot be sent now', async () => {
    const { source, id } = await connect('traccar');
    const objects = [{ id }, await createObject(), await createObject()];
    for (const one of objects) expect((await send(source, uplinkOf('traccar', one.id))).status).toBe(200);
    peer.status = () => 503;
    for (const one of objects) await command(one.id, 'one');
    await until(() => peer.got.length >= objects.length, 'a try of each');
    for (const one of objects) await service.admin('DELETE', `objects/${one.id}`);
    const isOfSource = (line: string) => line.includes('failed to send a command') && line.includes(source._id);
    await until(() => service.logLines.some(isOfSource), 'a log line');
    expect(service.logLines.filter(isOfSource)).toHaveLength(1);
  });

  test('is sent after the first packet of its device if it came before', async () => {
    const source = await createSource({ kind: 'traccar', commandUrl: peer.url });
    const { id } = await createObject();
    const early = await command(id, 'early');
    expect((await send(source, uplinkOf('traccar', id))).status).toBe(200);
    await becomes(early, 'sent');
    expect(peer.got[0]?.headers.authorization).toBeUndefined();
  });

  test('is sent once by several instances, in its order', async () => {
    const endings: (() => unknown)[] = [];
    await startSecond(service, endings, { env: { WEBHOOK_NETWORKS: '127.0.0.0/8' } });
    try {
      const { id } = await connect('traccar');
      const names = Array.from({ length: 12 }, (_, at) => `c${at}`);
      let last = '';
      for (const name of names) last = await command(id, name);
      await becomes(last, 'sent');
      expect(peer.got.map(({ body }) => body.type)).toEqual(names);
    } finally {
      for (const end of endings.reverse()) await end();
    }
  });

  test('is not sent through a source that takes none any more', async () => {
    const { source, id } = await connect('traccar');
    expect((await service.admin('PATCH', `sources/${source._id}`, { commandUrl: null })).status).toBe(200);
    const held = await command(id, 'held');
    const { id: other } = await connect('traccar');
    await becomes(await command(other, 'go'), 'sent');
    expect((await read(held)).status).toBe('queued');
    expect(peer.got.map(({ body }) => body.type)).toEqual(['go']);
  });
});

describe('the address for commands', () => {
  test('is set only by those who may read and send commands of every object', async () => {
    const personWith = async (...more: string[]) => {
      const credentials = ['* /sources', '* /sources/*', 'POST /objects/*/packets', ...more];
      const { body: role } = await service.admin('POST', 'roles', { name: newName(), credentials });
      return (await createPerson(service, { role: role._id })).call;
    };
    const own = await personWith('GET /objects/*/commands');
    const source = { id: newName(), name: 'x', kind: 'traccar' };
    const commandUrl = 'https://example.com';
    const refusal = 'rights that you do not have';
    expectRefusal(await own('POST', 'sources', { ...source, commandUrl }), 403, refusal);
    const { status, body } = await own('POST', 'sources', source);
    expect(status).toBe(200);
    expectRefusal(await own('PATCH', `sources/${body._id}`, { commandUrl }), 403, refusal);
    const dispatcher = await personWith('GET /objects/*/commands', 'POST /objects/*/commands/*');
    expect((await dispatcher('POST', 'sources', { ...source, id: newName(), commandUrl })).status).toBe(200);
  });
});

describe('the key for commands', () => {
  test('is in no answer, and goes to no other address', async () => {
    const { source, id } = await connect('traccar');
    const { text, body } = await service.admin('GET', `sources/${source._id}`);
    expect(text).not.toContain(KEY);
    expect(body.commandUrl).toBe(peer.url);
    // What was read can be sent back.
    expect((await service.admin('PATCH', `sources/${source._id}`, body)).status).toBe(200);
    await becomes(await command(id, 'one'), 'sent');
    expect(peer.got[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
    const elsewhere = peer.url.replace('127.0.0.1', 'localhost');
    const changed = await service.admin('PATCH', `sources/${source._id}`, { commandUrl: elsewhere });
    expect(changed.text).not.toContain(KEY);
    await becomes(await command(id, 'two'), 'sent');
    expect(peer.got[1]?.headers.authorization).toBeUndefined();
    const { text: audit } = await service.admin('GET', 'audit');
    const { text: list } = await service.admin('GET', 'sources?where._commandKey.key=x');
    for (const shown of [audit, list, service.logLines.join('')]) expect(shown).not.toContain(KEY);
  });

  test.each<[object, string]>([
    [{ kind: 'osmand', commandUrl: 'https://example.com' }, 'commandUrl: only of the kinds traccar, chirpstack, ttn'],
    [{ kind: 'traccar', commandUrl: 'ftp://example.com' }, 'commandUrl'],
    [{ kind: 'traccar', commandUrl: 'https://a:b@example.com' }, 'commandUrl: without user name and password'],
    [{ kind: 'traccar', commandUrl: 'https://example.com?a=b' }, 'commandUrl: without a query'],
    [{ kind: 'traccar', commandKey: 'x' }, 'commandKey: only together with commandUrl'],
    [{ kind: 'traccar', commandUrl: 'https://example.com', commandKey: 'a\r\nb' }, 'commandKey'],
  ])('is refused with %j', async (fields, why) => {
    expectRefusal(await service.admin('POST', 'sources', { id: newName(), name: 'x', ...fields }), 400, why);
  });
});
