/**
 * The entrance of sources: keys, tenants, unknown devices, batches, and what is sent again.
 * Long because all of it has one service, whose log is searched for keys in the end.
 */
import { describe, expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID, DEFAULT_MODEL_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson, openSession } from '../support/callers.js';
import { useService } from '../support/fixture.js';
import { sendHttp } from '../support/http-call.js';
import { basic, useSources } from '../support/sources.js';
import { until } from '../support/until.js';

const service = useService({ env: { LOG_LEVEL: 'debug', TRUST_PROXY: '1' } });

const { createSource, createObject, newName, packetsOf, post, get, send } = useSources(service);

describe('the key', () => {
  test('is shown once, and never stored as it is', async () => {
    const source = await createSource();
    expect(source.key).toMatch(/^[\w-]{32}$/);
    const { text } = await service.admin('GET', `sources/${source.id}`);
    const { text: list } = await service.admin('GET', 'sources');
    const stored = await service.client.db().collection('sources').findOne({ id: source.id });
    for (const shown of [text, list, JSON.stringify(stored)]) expect(shown).not.toContain(source.key);
  });

  test('is accepted in the path, in the query, as a password of any user, and as a token', async () => {
    const source = await createSource();
    const object = await createObject();
    const answers = [
      await post(`${source.id}/${source.key}`, { id: object.id, a: 1 }),
      await post(`${source.id}?key=${source.key}`, { id: object.id, a: 2 }),
      await post(source.id, { id: object.id, a: 3 }, basic('any', source.key)),
      await post(source.id, { id: object.id, a: 4 }, { Authorization: `Bearer ${source.key}` }),
    ];
    for (const { status, body } of answers) expect([status, body]).toEqual([200, { success: true, count: 1 }]);
    expect((await packetsOf(object)).map(({ a }) => a)).toEqual([1, 2, 3, 4]);
  });

  test('ends with the next one', async () => {
    const source = await createSource();
    const object = await createObject();
    expect((await send(source, { id: object.id, a: 1 })).status).toBe(200);
    const { body } = await service.admin('POST', `sources/${source.id}/key`);
    expect(body).toEqual({ key: expect.stringMatching(/^[\w-]{32}$/), success: true });
    expectRefusal(await send(source, { id: object.id, a: 2 }), 401);
    expect((await send({ ...source, key: body.key }, { id: object.id, a: 3 })).status).toBe(200);
  });

  test('is renewed only by those who may send packets and whose group contains the source', async () => {
    const { body: group } = await service.admin('POST', 'groups', { name: 'key' });
    const { body: other } = await service.admin('POST', 'groups', { name: 'other' });
    const person = (role: string, { _id }: { _id: string }) => createPerson(service, { role, group: _id });
    const own = await person(ADMINISTRATOR_ROLE_ID, group);
    const viewer = await person(VIEWER_ROLE_ID, group);
    const foreign = await person(ADMINISTRATOR_ROLE_ID, other);
    const source = await createSource({}, own.call);
    const path = `sources/${source._id}/key`;
    expect((await viewer.call('POST', path)).status).toBe(403);
    expect((await foreign.call('POST', path)).status).toBe(404);
    await service.admin('POST', `sources/${source._id}/access`, { user: foreign.id });
    expectRefusal(await foreign.call('POST', path), 403, 'belongs to a group that is not yours');
    expect((await service.as(null)('POST', path)).status).toBe(401);
    for (const call of [own.call, service.admin]) expect((await call('POST', path)).status).toBe(200);
  });

  test('ends with the source', async () => {
    const source = await createSource();
    expect((await service.admin('DELETE', `sources/${source._id}`)).status).toBe(200);
    expectRefusal(await send(source, { id: 'x', a: 2 }), 401);
  });

  test('is in no log line, no error and no event of the audit', async () => {
    const source = await createSource();
    await createObject();
    await send(source, 'nonsense');
    await send(source, { id: 'nobody', a: 1 });
    await get(`${source.id}/${source.key}?id=1`);
    await get(`${source.id}/wrong-${source.key}`);
    await post(`${source.id}/wrong-${source.key}/more`, {});
    await post(`${source.id}?key=${source.key}`, { id: 'nobody', a: 1 });
    const isKnown = async () => {
      const { body } = await service.admin('GET', `audit?where.entity=${source._id}`);
      return body.some(({ action }: { action: string }) => action === 'unknown device');
    };
    await until(isKnown);
    const { text: audit } = await service.admin('GET', 'audit');
    const { text: refused } = await service.admin('GET', `sources/${source._id}/refused`);
    for (const shown of [audit, refused, service.logLines.join('')]) expect(shown).not.toContain(source.key);
  });

  /** A sender behind the proxy of a site. */
  const from = (address: string) => ({ 'X-Forwarded-For': address });

  test('is refused with 429 if too many were wrong at its address, also for an unknown source, unless it is the right one', async () => {
    const source = await createSource();
    const object = await createObject();
    const site = from('203.0.113.7');
    for (const name of [source.id, 'no-such-source']) {
      const statuses: number[] = [];
      while (!statuses.includes(429) && statuses.length < 50) {
        statuses.push((await post(`${name}/wrong`, {}, site)).status);
      }
      expect(statuses).toEqual([...Array(LIMITS.loginFailuresPerAccount).fill(401), 429]);
    }
    expect((await post(`${source.id}/${source.key}`, { id: object.id, a: 1 }, site)).status).toBe(200);
    expect((await post(`${source.id}/wrong`, {}, from('203.0.113.8'))).status).toBe(401);
  });

  test('does not lock the logins of its address when it is wrong', async () => {
    const person = await createPerson(service, { role: VIEWER_ROLE_ID });
    const site = from('203.0.113.9');
    let last = 0;
    for (let at = 0; last !== 429 && at < 500; at++) last = (await post(`fleet-${at}/wrong`, {}, site)).status;
    expect(last).toBe(429);
    expect(await openSession(service, person, site)).toMatch(/^sid=/);
  });

  test('is asked for where there is none', async () => {
    const { id } = await createSource();
    expectRefusal(await post(id, {}), 401);
    expectRefusal(await get(id), 401);
  });
});

describe('a large body', () => {
  const list = <T>(length: number, make: (at: number) => T): T[] => Array.from({ length }, (_, at) => make(at));

  test('is refused as a whole if the map makes too much of it', async () => {
    const map = { object: '$.id', ...Object.fromEntries(list(190, (at) => [`f${at}`, '$.text'])) };
    const source = await createSource({ map });
    const object = await createObject();
    const body = (length: number) => list(length, () => ({ id: object.id, text: 'x'.repeat(300) }));
    expectRefusal(await send(source, body(300)), 413, 'makes more than 16 MiB of the body');
    expect(await packetsOf(object)).toEqual([]);
    const isKept = async () => (await service.admin('GET', `sources/${source._id}/refused`)).body.length === 1;
    await until(isKept, 'the refused payload');
    // The source goes on.
    expect((await send(source, body(100))).body).toEqual({ success: true, count: 100 });
  });

  test('is stored as it is, at every object, once', async () => {
    const source = await createSource({ kind: 'flespi' });
    const objects = [await createObject(), await createObject(), await createObject()];
    const text = 'ä'.repeat(200);
    const message = (at: number) => ({ ident: objects[at % 3]?.id, timestamp: 1_795_500_000 + at, n: at, text });
    const messages = list(3_000, message);
    for (const count of [3_000, 3_000]) {
      expect((await send(source, messages)).body).toEqual({ success: true, count });
    }
    for (const [place, object] of objects.entries()) {
      const packets = await packetsOf(object);
      expect(packets.map(({ n }) => n)).toEqual(list(1_000, (at) => 3 * at + place));
      expect(new Set(packets.map((packet) => packet.text))).toEqual(new Set([text]));
    }
  });

  test.each([
    ['in the middle', (text: string) => text.replace('"n":1500,', '"n":,')],
    ['at the end', (text: string) => text.slice(0, -1)],
    ['between two messages', (text: string) => text.replace('{"n":1500,', ',{"n":1500,')],
  ])('is refused with the place of its fault: %s', async (_name, spoil) => {
    const source = await createSource({ kind: 'flespi' });
    const messages = list(3_000, (at) => ({ n: at, ident: 'x', timestamp: 1_795_500_000, text: 'x'.repeat(200) }));
    const answer = await send(source, spoil(JSON.stringify(messages)));
    expectRefusal(answer, 400, 'the body is not valid JSON');
    const { body } = await service.admin('GET', `sources/${source._id}/refused`);
    expect(body[0].payload).toMatch(/^\[\{"n":0,"ident":"x"/);
  });

  test('costs only the fields that are nested too deep', async () => {
    const source = await createSource({ kind: 'flespi' });
    const object = await createObject();
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const text = `[{"ident":"${object.id}","timestamp":1795500000,"a":1,"deep":${deep}}]`;
    expect((await send(source, text)).body).toMatchObject({ success: true, count: 1 });
    expect(await packetsOf(object)).toMatchObject([{ a: 1 }]);
  });
});

describe('who may make a source', () => {
  test('must be allowed to send packets, and to create objects where it registers devices', async () => {
    const sender = async (...more: string[]) => {
      const credentials = ['* /sources/*', 'GET /*', ...more];
      const { body: role } = await service.admin('POST', 'roles', { name: newName(), credentials });
      return (await createPerson(service, { role: role._id })).call;
    };
    const none = await sender();
    const packets = await sender('POST /objects/*/packets');
    const both = await sender('POST /objects/*');
    const fields = { id: newName(), name: 'x', kind: 'json' };
    expect((await none('POST', 'sources', fields)).status).toBe(403);
    expect((await packets('POST', 'sources', { ...fields, register: true })).status).toBe(403);
    const source = entityOf(await packets('POST', 'sources', fields));
    expect((await packets('PATCH', `sources/${source._id}`, { register: true })).status).toBe(403);
    expect((await none('POST', `sources/${source._id}/key`)).status).toBe(403);
    expect((await both('POST', 'sources', { ...fields, id: newName(), register: true })).status).toBe(200);
  });

  test.each([
    [{ kind: 'nonsense' }, 'kind: expected one of json, osmand, owntracks,'],
    [{ id: 'a/b' }, 'id: may not contain #, / or control characters'],
    [{ timezone: 'Mars/Olympus' }, 'timezone: expected a time zone such as Europe/Berlin'],
    [{ map: { speed: '.a' } }, 'map.speed: expected a path such as $.dev.id or $.t[0].v'],
    [{ map: { speed: '$..a' } }, 'map.speed: expected a path'],
    [{ map: { speed: { path: '$.a', unit: 'furlong' } } }, 'map.speed.unit: expected one of km/h, kn'],
    [{ map: { speed: { path: '$.a', factor: '2' } } }, 'map.speed.factor: expected a number'],
    [{ kind: 'osmand', map: { speed: '$.a' } }, 'map.speed: the kind osmand has no map'],
    [{ model: 'f'.repeat(24) }, 'model: there is no such entity in models'],
    [{ group: 'f'.repeat(24) }, 'group: not a group of yours'],
  ])('is told what is wrong with %j', async (fields, why) => {
    const answer = await service.admin('POST', 'sources', { id: newName(), name: 'x', kind: 'json', ...fields });
    expect([answer.status, answer.body.helper.message]).toEqual([400, expect.stringContaining(why)]);
  });

  test('is told of an id that is taken, and of a map that a change makes wrong', async () => {
    const { id, _id } = await createSource({ map: { speed: '$.a' } });
    expect((await service.admin('POST', 'sources', { id, name: 'x', kind: 'json' })).status).toBe(409);
    const answer = await service.admin('PATCH', `sources/${_id}`, { kind: 'osmand' });
    expect([answer.status, answer.body.helper.message]).toEqual([400, 'map.speed: the kind osmand has no map']);
  });
});

describe('the objects of a source', () => {
  test('are those of its group and of the groups below it, and no others', async () => {
    const { body: ours } = await service.admin('POST', 'groups', { name: 'ours' });
    const { body: below } = await service.admin('POST', 'groups', { name: 'below', parent: ours._id });
    const { body: theirs } = await service.admin('POST', 'groups', { name: 'theirs' });
    const source = await createSource({ group: ours._id });
    const objects = await Promise.all([ours, below, theirs].map((group) => createObject({ group: group._id })));
    const statuses: number[] = [];
    for (const { id } of objects) statuses.push((await send(source, { id, a: 1 })).status);
    expect(statuses).toEqual([200, 200, 404]);
    const above = await createObject();
    expect((await send(source, { id: above.id, a: 1 })).status).toBe(404);
    expect(await packetsOf(objects[2] as never)).toEqual([]);
  });

  test('stay those of its group where its owner is in another one', async () => {
    const { body: group } = await service.admin('POST', 'groups', { name: 'tenant' });
    const { call } = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: group._id });
    const source = await createSource({}, call);
    const { id } = await createObject();
    expect((await send(source, { id, a: 1 })).status).toBe(404);
    expect((await service.admin('GET', `sources/${source.id}`)).body.group).toBe(group._id);
  });
});

describe('unknown devices', () => {
  test('are refused with 404, and recorded once with their identifier', async () => {
    const source = await createSource();
    for (let sent = 0; sent < 3; sent++) expect((await send(source, { id: 'stranger-1', a: sent })).status).toBe(404);
    const events = async () => {
      const { body } = await service.admin('GET', `audit?where.entity=${source._id}&where.action=unknown device`);
      return body as { fields: string[]; path: string; user: string }[];
    };
    await until(async () => (await events()).length > 0);
    const found = await events();
    expect(found.map(({ fields, path }) => ({ fields, path }))).toEqual([
      { fields: ['stranger-1'], path: `/in/${source.id}` },
    ]);
    const { body: refused } = await service.admin('GET', `sources/${source._id}/refused`);
    expect(refused).toHaveLength(3);
    expect(refused[0]).toEqual({
      time: expect.any(Number),
      device: 'stranger-1',
      index: 0,
      reason: 'unknown device',
      payload: '{"id":"stranger-1","a":0}',
    });
  });

  test('become objects with the model and in the group of a source that registers them', async () => {
    const { body: model } = await service.admin('POST', 'models', { name: 'Tracker' });
    const { body: group } = await service.admin('POST', 'groups', { name: 'trackers' });
    const source = await createSource({ register: true, model: model._id, group: group._id });
    const sent = Array.from({ length: 3 }, (_, a) => send(source, { id: 'newcomer', time: 1_795_500_000_000 + a, a }));
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([200, 200, 200]);
    const { body } = await service.admin('GET', 'objects/newcomer');
    const expected = { id: 'newcomer', name: 'newcomer', model: model._id, models: { id: model._id } };
    expect(body).toMatchObject({ ...expected, group: group._id, status: '', active: true });
    expect((await packetsOf(body)).map(({ a }) => a)).toEqual([0, 1, 2]);
  });

  test('become no objects where the identifier cannot be one, or belongs to another group', async () => {
    const { body: group } = await service.admin('POST', 'groups', { name: 'registering' });
    const source = await createSource({ register: true, group: group._id });
    const { id } = await createObject();
    for (const wrong of ['a/b', '*', 'f'.repeat(24), 'x'.repeat(200), id]) {
      expect([wrong, (await send(source, { id: wrong, a: 1 })).status]).toEqual([wrong, 404]);
    }
  });

  test('become at most 1,000 objects an hour, which costs known devices nothing', async () => {
    const source = await createSource({ register: true });
    const { id } = await createObject();
    const attempts = service.client.db().collection('attempts');
    await attempts.insertOne({
      key: `registered:${source._id}`,
      points: 999,
      expire: new Date(Date.now() + 3_600_000),
    });
    expect((await send(source, { id: 'last', a: 1 })).status).toBe(200);
    const { status, headers } = await send(source, { id: 'too-many', a: 1 });
    expect([status, Number(headers['retry-after'])]).toEqual([429, expect.any(Number)]);
    const { body } = await send(source, [
      { id: 'too-many', a: 1 },
      { id, a: 1 },
    ]);
    expect(body).toMatchObject({ success: true, count: 1, refused: [{ index: 0 }] });
  });
});

describe('a batch', () => {
  test('is stored without what cannot be stored, which the answer names', async () => {
    const source = await createSource();
    const object = await createObject();
    const good = { id: object.id, time: 1_795_500_000_000, a: 1 };
    const { status, body } = await send(source, [good, 5, { ...good, time: 'soon' }, { a: 1 }, { ...good, a: 2 }]);
    expect([status, body.count]).toEqual([200, 2]);
    expect(body.refused).toEqual([
      { index: 1, reason: 'expected a JSON object' },
      { index: 2, reason: expect.stringMatching(/^time: expected a time/) },
      { index: 3, reason: 'the packet names no device' },
    ]);
    expect((await packetsOf(object)).map(({ a }) => a).sort()).toEqual([1, 2]);
    const { body: refused } = await service.admin('GET', `sources/${source._id}/refused`);
    expect(refused.map(({ index }: { index: number }) => index)).toEqual([1, 2, 3]);
    const recorded = async () =>
      (await service.admin('GET', `audit?where.entity=${source._id}&where.action=message refused`)).body;
    await until(async () => (await recorded()).length > 0);
    expect(await recorded()).toMatchObject([
      {
        path: `/in/${source.id}`,
        fields: ['expected a JSON object', expect.any(String), 'the packet names no device'],
      },
    ]);
  });

  test('is a 400 where nothing of it can be stored', async () => {
    const source = await createSource();
    const answer = await send(source, [5, 6]);
    expect([answer.status, answer.body.count, answer.body.refused.length]).toEqual([400, 0, 2]);
  });

  test('is stored once when it is sent again', async () => {
    const source = await createSource();
    const object = await createObject();
    const batch = [1, 2].map((a) => ({ id: object.id, time: 1_795_500_000_000, a }));
    for (let sent = 0; sent < 3; sent++) expect((await send(source, batch)).body.count).toBe(2);
    expect(await packetsOf(object)).toHaveLength(2);
  });

  test('stores what several devices sent at the object of each', async () => {
    const source = await createSource();
    const objects = [await createObject(), await createObject()];
    const batch = objects.flatMap(({ id }) => [1, 2].map((a) => ({ id, time: 1_795_500_000_000 + a, a })));
    expect((await send(source, batch)).body).toEqual({ success: true, count: 4 });
    for (const object of objects) expect(await packetsOf(object)).toHaveLength(2);
  });
});

describe('bodies', () => {
  test.each([
    ['{"a":', 400, 'the body is not valid JSON: it ends too early'],
    ['{"id":"x", "lat": }', 400, 'the body is not valid JSON: there is something unexpected at character 18'],
    ['{"id":"x", "lat": NaN}', 400, 'the body is not valid JSON: there is something unexpected at character 18'],
    ['{"id":"x",}', 400, 'the body is not valid JSON: there is something unexpected at character 10'],
    ['', 400, 'the body is empty: expected JSON'],
    ['['.repeat(50) + ']'.repeat(50), 400, 'expected a JSON object'],
  ])('are refused where they are %p: %d', async (text, status, why) => {
    const source = await createSource();
    const answer = await sendHttp(service.url, {
      method: 'POST',
      path: `/api/v1/in/${source.id}/${source.key}`,
      headers: { 'Content-Type': 'text/plain' },
      text,
    });
    expect([answer.status, answer.body.helper.message]).toEqual([status, why]);
  });

  test('may have any content type', async () => {
    const source = await createSource();
    const { id } = await createObject();
    for (const type of ['text/plain', 'application/octet-stream', 'application/x-www-form-urlencoded']) {
      const { status } = await post(`${source.id}/${source.key}`, { id, a: 1 }, { 'Content-Type': type });
      expect([type, status]).toEqual([type, 200]);
    }
  });

  test('are at most as large as those with packets', async () => {
    const source = await createSource();
    const answer = await send(source, `{"a":"${'x'.repeat(17 * 1024 * 1024)}"}`).catch(() => ({ status: 413 }));
    expect(answer.status).toBe(413);
  });

  test('are refused with the name of another kind that they look like', async () => {
    const source = await createSource({ kind: 'osmand' });
    const answer = await send(source, { _type: 'location', lat: 52.5, lon: 13.4, tst: 1_795_500_000, tid: 'JJ' });
    expect([answer.status, answer.body.helper.message]).toEqual([400, expect.stringContaining('looks like OwnTracks')]);
    const { body: refused } = await service.admin('GET', `sources/${source._id}/refused`);
    expect(refused[0].reason).toContain('looks like OwnTracks');
  });
});

test('has the default model where none is named', async () => {
  const { _id } = await createSource();
  expect((await service.admin('GET', `sources/${_id}`)).body).toMatchObject({
    model: DEFAULT_MODEL_ID,
    register: false,
  });
});
