/**
 * Share links: what a visitor sees of one object, and of nothing else; who may share; what ends a link. Long because it tries every
 * other way in.
 */
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import mqtt from 'mqtt';
import { io } from 'socket.io-client';
import { OPERATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { refusal } from '../support/answers.js';
import { createPerson, NOT_FOUND, type Person, UNAUTHORIZED } from '../support/callers.js';
import { type Answer, type Call, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

let offsetMs = 0;
const service = useService({ env: { LOG_LEVEL: 'trace' }, now: () => Date.now() + offsetMs });
const ENDED = { ...NOT_FOUND, helper: { message: 'this link is not valid, or has expired' } };
const HOUR_MS = 3_600_000;
let count = 0;
let sharer: Person;
let group: string;
const streams: AbortController[] = [];

beforeAll(async () => {
  group = (await must(service.admin('POST', 'groups', { name: 'depot' })))._id;
  sharer = await createPerson(service, { role: OPERATOR_ROLE_ID, group });
});
afterEach(() => {
  for (const stream of streams.splice(0)) stream.abort();
});

async function must(answer: Promise<Answer>) {
  const { status, body } = await answer;
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return body;
}

const newObject = (fields: object = {}) =>
  must(service.admin('POST', 'objects', { id: `van-${++count}`, name: `Van ${count}`, group, ...fields }));
const send = (object: string, packets: object) => must(service.admin('POST', `objects/${object}/packets`, packets));
const share = (object: string, fields: object = {}, call: Call = sharer.call) =>
  must(call('POST', `objects/${object}/links`, { name: 'For the customer', ...fields }));
const open = async (secret: string, pin?: string): Promise<string> =>
  (await must(service.as(null)('POST', 'shared', { secret, pin }))).token;
const visit = async (object: string, fields: object = {}): Promise<Call> =>
  service.as(await open((await share(object, fields)).secret));

interface Stream {
  /** What came, without comments. */
  readonly events: () => { event: string; data: unknown }[];
  readonly isEnded: () => boolean;
}

/** Listens with the token of a view until the test ends. */
async function listen(token: string, query = ''): Promise<Stream> {
  // Later listeners do not receive what was sent before.
  await service.settled();
  const controller = new AbortController();
  streams.push(controller);
  const answer = await fetch(`${service.url}/api/v1/shared/events${query}`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: controller.signal,
  });
  if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
  let text = '';
  let isEnded = false;
  const read = async (): Promise<void> => {
    for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) text += Buffer.from(chunk);
  };
  read()
    .catch(() => undefined)
    .finally(() => {
      isEnded = true;
    });
  await until(() => text.includes(': live'), 'the stream is live');
  return {
    isEnded: () => isEnded,
    events: () =>
      [...text.matchAll(/event: (.*)\ndata: (.*)\n\n/g)].map(([, event, data]) => ({
        event: event as string,
        data: JSON.parse(data as string),
      })),
  };
}

describe('A link', () => {
  test('shows a visitor its object live, with name, values and times, and no bookkeeping', async () => {
    const model = await must(
      service.admin('POST', 'models', {
        name: 'van',
        group,
        data: {
          id: 'van',
          name: 'Van',
          type: 'subsystem',
          children: [
            { id: 'speed', name: 'Speed', type: 'argument', dataType: 'number', unit: 'km/h' },
            {
              id: 'fuel',
              name: 'Fuel',
              type: 'argument',
              dataType: 'number',
              unit: 'l',
              thresholds: [{ to: 5, tone: 'critical' }],
            },
            {
              id: 'temperature',
              type: 'argument',
              states: [{ value: -7, label: 'Broken', tone: 'unknown' }],
              thresholds: [{ from: 8, tone: 'critical', label: 'Too warm' }],
            },
          ],
        },
      }),
    );
    const { _id, id, name } = await newObject({ model: model._id, status: 'on tour', config: { plate: 'DAH 1' } });
    const time = Date.now();
    await send(_id, [
      { time: time - 1_000, lat: 48.1, lon: 11.5, temperature: 4 },
      { time, lat: 48.2, lon: 11.5, speed: 50 },
    ]);
    const link = await share(_id);
    expect(link).toEqual({
      success: true,
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      name: 'For the customer',
      object: _id,
      user: sharer.id,
      time: expect.any(Number),
      expiresAt: expect.any(Number),
      fields: null,
      history: 'none',
      hasPin: false,
      views: 0,
      lastViewed: null,
      secret: expect.stringMatching(/^[\w-]{48}$/),
    });
    const token = await open(link.secret);
    expect(await must(service.as(token)('GET', 'shared'))).toEqual({
      success: true,
      name: 'For the customer',
      expiresAt: link.expiresAt,
      history: 'none',
      object: { name, status: 'on tour' },
      state: { lat: 48.2, lon: 11.5, speed: 50, time, online: true },
      latest: {
        lat: { value: 48.2, time },
        lon: { value: 11.5, time },
        speed: { value: 50, time },
        temperature: { value: 4, time: time - 1_000 },
      },
      parameters: [
        { id: 'speed', name: 'Speed', unit: 'km/h' },
        {
          id: 'temperature',
          name: null,
          unit: null,
          states: [{ value: -7, label: 'Broken', tone: 'unknown' }],
          thresholds: [{ from: 8, to: null, tone: 'critical', label: 'Too warm' }],
        },
      ],
    });
    const stream = await listen(token);
    await send(_id, { time: time + 1, speed: 60 });
    await must(service.admin('PATCH', `objects/${_id}`, { status: 'there', config: { plate: 'DAH 2' } }));
    await until(() => stream.events().length >= 2);
    expect(stream.events()).toEqual([
      { event: 'object-packet', data: { speed: 60, time: time + 1, online: true } },
      { event: 'object-update', data: { before: { status: 'on tour' }, after: { status: 'there' } } },
    ]);
    const seen = JSON.stringify([await must(service.as(token)('GET', 'shared')), stream.events()]);
    for (const hidden of [_id, id, group, sharer.id, 'DAH']) expect(seen).not.toContain(hidden);
  });

  test('is counted, listed without its secret, and revoked, which ends its streams and tokens at once', async () => {
    const { _id } = await newObject();
    const { secret, _id: linkId } = await share(_id, { pin: '2468', fields: ['speed'] });
    const token = await open(secret, '2468');
    const again = await open(secret, '2468');
    const [listed, ...others] = await must(sharer.call('GET', `objects/${_id}/links`));
    expect(others).toEqual([]);
    expect(listed).toMatchObject({
      _id: linkId,
      views: 2,
      lastViewed: expect.any(Number),
      hasPin: true,
      fields: ['speed'],
    });
    const stored = await service.client
      .db()
      .collection('tokens')
      .findOne({ _id: new ObjectId(linkId as string) });
    expect(JSON.stringify([listed, stored])).not.toContain(secret);
    expect(JSON.stringify(await must(service.admin('GET', 'tokens')))).not.toMatch(/secretHash|pinHash|argon2/);
    const streamsOfBoth = [await listen(token), await listen(again)];
    expect(await must(sharer.call('DELETE', `objects/${_id}/links/${linkId}`))).toEqual({ success: true });
    await until(() => streamsOfBoth.every((stream) => stream.isEnded()), 'the streams end');
    expect((await service.as(token)('GET', 'shared')).body).toEqual(UNAUTHORIZED);
    expect((await service.as(null)('POST', 'shared', { secret, pin: '2468' })).body).toEqual(ENDED);
    expect(await must(sharer.call('GET', `objects/${_id}/links`))).toEqual([]);
  });

  test('says that it has expired, and nothing else, like one that never was', async () => {
    const { _id } = await newObject();
    const { secret, expiresAt } = await share(_id, { expiresIn: '1 h', pin: '1111' });
    const token = await open(secret, '1111');
    offsetMs = expiresAt - Date.now() + 1_000;
    try {
      const wrong = `${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}`;
      for (const one of [secret, wrong, 'A'.repeat(48), 'x', '', 17, null, { $ne: 1 }]) {
        const answer = await service.as(null)('POST', 'shared', { secret: one });
        expect([one, answer.status, answer.body]).toEqual([one, 404, ENDED]);
      }
      expect((await service.as(token)('GET', 'shared')).body).toEqual(UNAUTHORIZED);
      expect(await must(service.admin('GET', `objects/${_id}/links`))).toEqual([]);
    } finally {
      offsetMs = 0;
    }
  });

  test('leaves its secret in no line of the log, and its events in the audit', async () => {
    const { _id } = await newObject();
    // Longer than what the ids in a log have by chance.
    const pin = '975310864213';
    const { secret, _id: linkId } = await share(_id, { pin });
    await open(secret, pin);
    expect((await service.as(null)('POST', 'shared', { secret, pin: '1234' })).status).toBe(401);
    await must(sharer.call('DELETE', `objects/${_id}/links/${linkId}`));
    const audited = async () => must(service.admin('GET', `audit?where.entity=${linkId}`));
    await until(async () => (await audited()).length >= 4);
    expect((await audited()).map(({ action, user }: { action: string; user: string }) => [action, user])).toEqual([
      ['link created', sharer.id],
      ['link opened', sharer.id],
      ['link refused', sharer.id],
      ['link revoked', sharer.id],
    ]);
    const log = service.logLines.join('');
    for (const hidden of [secret, pin]) expect(log).not.toContain(hidden);
  });
});

describe('Fields', () => {
  test('restrict values, object, history and live events alike, nested ones too', async () => {
    const { _id } = await newObject({ status: 'secret status', config: { plate: 'DAH 1', driver: 'Ada' } });
    const time = Date.now();
    const packet = { lat: 48, engine: { rpm: 900, fault: 'x' }, cargo: 'gold' };
    await send(_id, { time, ...packet });
    const fields = ['lat', 'engine.rpm', 'config.plate', 'missing'];
    const { secret } = await share(_id, { fields, history: '24 h' });
    const token = await open(secret);
    const stream = await listen(token);
    const shown = { lat: 48, engine: { rpm: 900 }, online: true };
    expect(await must(service.as(token)('GET', 'shared'))).toMatchObject({
      object: { config: { plate: 'DAH 1' } },
      state: { ...shown, time },
      latest: { lat: { value: 48, time }, 'engine.rpm': { value: 900, time } },
    });
    expect(await must(service.as(token)('GET', 'shared/packets'))).toEqual([{ ...shown, time }]);
    await send(_id, { time: time + 1, ...packet });
    await must(service.admin('PATCH', `objects/${_id}`, { status: 'another secret', name: 'Secret' }));
    await must(service.admin('PATCH', `objects/${_id}`, { config: { driver: 'Grace' } }));
    await must(service.admin('PATCH', `objects/${_id}`, { config: { plate: 'DAH 2', driver: 'Eve' } }));
    await send(_id, { time: time + 2, cargo: 'silver' });
    await until(() => stream.events().length >= 3);
    const plates = (before: string, after: string) => ({
      event: 'object-update',
      data: { before: { config: { plate: before } }, after: { config: { plate: after } } },
    });
    expect(stream.events()).toEqual([
      { event: 'object-packet', data: { ...shown, time: time + 1 } },
      plates('DAH 1', 'DAH 2'),
      { event: 'object-packet', data: { time: time + 2, online: true } },
    ]);
    const everything = JSON.stringify([
      stream.events(),
      await must(service.as(token)('GET', 'shared')),
      await must(service.as(token)('GET', 'shared/packets')),
    ]);
    for (const hidden of ['gold', 'silver', 'fault', 'Ada', 'Grace', 'ecret', 'cargo']) {
      expect(everything).not.toContain(hidden);
    }
  });

  test('never show the login of a device, which is in config', async () => {
    const auth = { username: 'unit login', password: 'a key of the machine' };
    const { _id } = await newObject({ config: { plate: 'DAH 1', auth } });
    const token = await open((await share(_id, { fields: ['config'] })).secret);
    const stream = await listen(token);
    expect((await must(service.as(token)('GET', 'shared'))).object).toEqual({ config: { plate: 'DAH 1' } });
    await must(service.admin('PATCH', `objects/${_id}`, { config: { auth: { password: 'another key' } } }));
    await must(service.admin('PATCH', `objects/${_id}`, { config: { plate: 'DAH 2', auth: { username: 'unit 2' } } }));
    await until(() => stream.events().length >= 1);
    const plate = (text: string) => ({ config: { plate: text } });
    expect(stream.events()).toEqual([
      { event: 'object-update', data: { before: plate('DAH 1'), after: plate('DAH 2') } },
    ]);
  });

  test('cannot be asked for by a query of a visitor', async () => {
    const { _id } = await newObject();
    await send(_id, { time: Date.now(), lat: 48, cargo: 'gold' });
    const call = await visit(_id, { fields: ['lat'], history: '24 h' });
    const plain = (await call('GET', 'shared/packets')).text;
    for (const query of [
      'where.cargo=silver',
      'only=cargo',
      'sortBy=cargo',
      'search=silver',
      'format=csv',
      'meta=true',
      'offset=1',
    ]) {
      expect([query, (await call('GET', `shared/packets?${query}`)).text]).toEqual([query, plain]);
    }
    expect((await call('GET', 'shared?only=config,cargo&latest=true')).text).not.toMatch(/gold|config/);
  });
});

describe('History', () => {
  const at = (hours: number) => Math.round(Date.now() - hours * HOUR_MS);

  test('is none by default, also not by packets that come late', async () => {
    const { _id } = await newObject();
    const time = Date.now();
    await send(_id, [
      { time: at(1), speed: 1 },
      { time, speed: 2 },
    ]);
    const token = await open((await share(_id)).secret);
    expect(await must(service.as(token)('GET', 'shared/packets?begin=0'))).toEqual([]);
    const stream = await listen(token, '?since=AAAA');
    await send(_id, { time: at(2), speed: 99 });
    await send(_id, { time: time + 5, speed: 3 });
    await until(() => stream.events().length >= 1);
    expect(stream.events()).toEqual([{ event: 'object-packet', data: { speed: 3, time: time + 5, online: true } }]);
  });

  test('is that of the last 24 hours at most', async () => {
    const { _id } = await newObject();
    const packets = [
      { time: at(25), speed: 1 },
      { time: at(23), speed: 2 },
      { time: at(1), speed: 3 },
    ];
    await send(_id, packets);
    const token = await open((await share(_id, { history: '24 h' })).secret);
    const speeds = async (query: string) =>
      (await must(service.as(token)('GET', `shared/packets${query}`))).map(({ speed }: { speed: number }) => speed);
    expect(await speeds('')).toEqual([2, 3]);
    expect(await speeds(`?begin=${at(48)}`)).toEqual([2, 3]);
    expect(await speeds(`?begin=${at(48)}&end=${at(24.5)}`)).toEqual([]);
    expect(await speeds(`?begin=${at(2)}`)).toEqual([3]);
    expect(await speeds('?limit=1')).toEqual([2]);
    const stream = await listen(token);
    await send(_id, { time: at(30), speed: 98 });
    await send(_id, { time: at(2), speed: 4 });
    await until(() => stream.events().length >= 1);
    expect(stream.events()).toMatchObject([{ data: { speed: 4 } }]);
  });
});

describe('Series', () => {
  const series = (call: Call, params: string, query = '') =>
    call('GET', `shared/series?params=${encodeURIComponent(params)}${query}`);
  const refused = (reason: string) => ({ status: 400, body: refusal(400, reason) });
  const hourAgo = () => Date.now() - HOUR_MS;

  test('are those of the last 24 hours, in no more points than asked for', async () => {
    const { _id } = await newObject();
    const first = hourAgo();
    const packets = Array.from({ length: 300 }, (_, index) => ({ time: first + index * 1_000, speed: index }));
    await send(_id, [{ time: first - 25 * HOUR_MS, speed: 999 }, ...packets]);
    const call = await visit(_id, { history: '24 h' });
    const { time, speed } = await must(series(call, 'speed', '&points=24&from=0&begin=0&every=1%20s&fn=sum'));
    expect(time).toHaveLength(24);
    expect(Object.keys(speed)).toEqual(['last', 'min', 'max']);
    expect([Math.min(...speed.min.filter(Number.isFinite)), Math.max(...speed.max)]).toEqual([0, 299]);
    expect((await must(series(call, 'speed', '&points=100000'))).time.length).toBeLessThanOrEqual(1_000);
  });

  test('are empty without history, whatever is asked for', async () => {
    const { _id } = await newObject();
    await send(_id, [{ time: hourAgo(), speed: 1 }, { speed: 2 }]);
    const call = await visit(_id);
    expect((await must(series(call, 'speed,fuel', '&from=0'))) as object).toEqual({
      time: [],
      speed: null,
      fuel: null,
    });
  });

  test.each([
    { fields: ['speed', 'engine'], params: 'engine.rpm', isShown: true },
    { fields: ['speed', 'engine.rpm'], params: 'engine.rpm', isShown: true },
    { fields: ['speed', 'engine.rpm'], params: 'speed,cargo', isShown: false },
    { fields: ['speed', 'engine.rpm'], params: 'engine.fault', isShown: false },
    { fields: ['speed', 'engine.rpm'], params: 'engine', isShown: false },
    { fields: ['speed', 'engine.rpm'], params: 'engine.rpmx', isShown: false },
    { fields: ['speed', 'engine.rpm'], params: 'speedx', isShown: false },
    { fields: [], params: 'speed', isShown: false },
    { fields: null, params: 'cargo', isShown: true },
    { fields: null, params: '_ts', isShown: false },
    { fields: null, params: '_oid', isShown: false },
    { fields: null, params: 'online', isShown: false },
  ])('show $params where the link shows $fields: $isShown', async ({ fields, params, isShown }) => {
    const { _id } = await newObject();
    await send(_id, { speed: 1, cargo: 2, speedx: 5, engine: { rpm: 900, rpmx: 901, fault: 3 } });
    const call = await visit(_id, { fields, history: '24 h' });
    const answer = await series(call, params);
    if (isShown) expect(answer).toMatchObject({ status: 200, body: { [params]: { last: expect.any(Array) } } });
    else expect(answer).toMatchObject(refused(`params: the link does not show "${params.split(',').at(-1)}"`));
  });

  test.each(['*', 'eng*', 'speed,c*go'])('know no patterns: %s', async (params) => {
    const { _id } = await newObject();
    const call = await visit(_id, { fields: ['speed'], history: '24 h' });
    expect(await series(call, params)).toMatchObject(refused('params: a share link knows no patterns'));
  });

  test('need parameters', async () => {
    const call = await visit((await newObject())._id, { history: '24 h' });
    const wanted = 'params: expected the names of parameters, separated by commas';
    expect(await call('GET', 'shared/series')).toMatchObject(refused(wanted));
  });
});

describe('A visitor', () => {
  test('gets no other route, object, event or socket by the token of a view', async () => {
    const { _id, id } = await newObject();
    const other = await newObject();
    await send(other._id, { speed: 7 });
    const { secret, _id: linkId } = await share(_id, { history: '24 h' });
    const token = await open(secret);
    const calls: [string, string, object?][] = [
      ['GET', `objects/${_id}`],
      ['GET', `objects/${id}`],
      ['GET', `objects/${other._id}`],
      ['GET', 'objects'],
      ['GET', `objects/${_id}/packets`],
      ['GET', `objects/${_id}/series?params=speed`],
      ['GET', `objects/${_id}/events`],
      ['GET', `series?objects=${_id}&params=speed`],
      ['GET', 'events'],
      ['GET', 'auth'],
      ['DELETE', 'auth'],
      ['GET', 'tokens'],
      ['GET', 'account/tokens'],
      ['POST', 'tokens', { name: 'x' }],
      ['GET', `objects/${_id}/links`],
      ['POST', `objects/${_id}/links`, { name: 'another' }],
      ['DELETE', `objects/${_id}/links/${linkId}`],
      ['PATCH', `objects/${_id}`, { status: 'x' }],
      ['POST', `objects/${_id}/packets`, { speed: 1 }],
      ['POST', `objects/${_id}/commands/stop`, {}],
      ['GET', 'audit'],
    ];
    for (const credential of [token, secret]) {
      for (const [method, path, body] of calls) {
        const answer = await service.as(credential)(method, path, body);
        expect([method, path, answer.status, answer.body]).toEqual([method, path, 401, UNAUTHORIZED]);
      }
      const socket = io(service.url, { extraHeaders: { Authorization: `Bearer ${credential}` }, reconnection: false });
      const refused = await new Promise((resolve) => {
        socket.once('connect', () => resolve('connected'));
        socket.once('connect_error', (error) => resolve(error.message));
      });
      socket.close();
      expect(refused).toBe('Unauthorized');
      const client = mqtt.connect(service.service.mqttUrl as string, {
        clientId: id,
        username: id,
        password: credential,
        reconnectPeriod: 0,
      });
      const answered = await new Promise((resolve) => {
        client.once('connect', () => resolve('connected'));
        client.once('error', (error) => resolve(error.message));
      });
      client.end(true);
      expect(answered).toMatch(/not authorized|bad user/i);
    }
    // A secret opens; it is no token of a view. Nor is a token of a user.
    for (const credential of [secret, sharer.token]) {
      for (const path of ['shared', 'shared/packets', 'shared/series?params=speed', 'shared/events']) {
        expect((await service.as(credential)('GET', path)).body).toEqual(UNAUTHORIZED);
      }
    }
    const stream = await listen(token);
    await send(other._id, { speed: 8 });
    await must(service.admin('POST', `objects/${_id}/commands/stop`, {}));
    await send(_id, { time: Date.now(), speed: 9 });
    await until(() => stream.events().length >= 1);
    expect(stream.events()).toMatchObject([{ event: 'object-packet', data: { speed: 9 } }]);
  });

  test('has to know the PIN, and cannot guess it: wrong ones count as failed logins', async () => {
    const { _id } = await newObject();
    const { secret } = await share(_id, { pin: '4711' });
    const openWith = (pin: unknown, address = '198.51.100.7') =>
      service.as(null)('POST', 'shared', { secret, pin }, { 'X-Forwarded-For': address });
    for (const pin of [undefined, null, '']) {
      expect((await openWith(pin)).body).toEqual({ ...UNAUTHORIZED, helper: { message: 'pin: required' } });
    }
    for (let at = 0; at < LIMITS.loginFailuresPerAccount; at++) {
      expect((await openWith(`0${100 + at}`)).body).toEqual({ ...UNAUTHORIZED, helper: { message: 'pin: wrong' } });
    }
    const refused = await openWith('4711');
    expect([refused.status, refused.body]).toEqual([429, refusal(429, 'too many failed logins')]);
    const counted = await service.client.db().collection('attempts').find().toArray();
    const keys = counted.map((one) => String((one as { key?: unknown }).key ?? one._id));
    expect(keys.some((key) => key.startsWith('address'))).toBe(true);
    expect(keys.some((key) => key.startsWith('everywhere') && key.includes('link '))).toBe(true);
  });
});

describe('What ends a link', () => {
  const cases: Record<string, (given: { object: string; person: Person; role: string }) => Promise<unknown>> = {
    'the removal of its object': ({ object }) => must(service.admin('DELETE', `objects/${object}`)),
    'the removal of its user': ({ person }) => must(service.admin('DELETE', `users/${person.id}`)),
    'that its user is disabled': ({ person }) => must(service.admin('PATCH', `users/${person.id}`, { active: false })),
    'another password of its user': ({ person }) =>
      must(service.admin('PATCH', `users/${person.id}`, { password: 'another password of somebody' })),
    'that its user may no longer change objects': ({ role }) =>
      must(service.admin('PATCH', `roles/${role}`, { credentials: ['GET /*', 'POST /objects/*/links'] })),
    'that its user may no longer share': ({ role }) =>
      must(service.admin('PATCH', `roles/${role}`, { credentials: ['GET /*', 'PATCH /objects/*'] })),
    'another role of its user': ({ person }) =>
      must(service.admin('PATCH', `users/${person.id}`, { role: VIEWER_ROLE_ID })),
    'that the object is no longer shared with its user': ({ object, person }) =>
      must(service.admin('DELETE', `objects/${object}/access/${person.id}`)),
  };

  test.each(Object.keys(cases))('is %s: at once, with its streams', async (name) => {
    const credentials = ['GET /*', 'PATCH /objects/*', 'POST /objects/*/links'];
    const role = await must(service.admin('POST', 'roles', { name: `sharers ${++count}`, credentials }));
    const elsewhere = await must(service.admin('POST', 'groups', { name: `elsewhere ${count}` }));
    const person = await createPerson(service, { role: role._id, group: elsewhere._id });
    const { _id: object } = await newObject();
    await must(service.admin('POST', `objects/${object}/access`, { user: person.id }));
    const { secret } = await share(object, {}, person.call);
    const token = await open(secret);
    const stream = await listen(token);
    await cases[name]?.({ object, person, role: role._id });
    await until(() => stream.isEnded(), 'the stream ends');
    expect(stream.events()).toEqual([]);
    expect((await service.as(token)('GET', 'shared')).body).toEqual(UNAUTHORIZED);
    expect((await service.as(null)('POST', 'shared', { secret })).body).toEqual(ENDED);
  });

  test('is a move of its object out of the sight of its user', async () => {
    const parent = await must(service.admin('POST', 'groups', { name: 'moved', parent: group }));
    const { _id } = await newObject({ group: parent._id });
    const { secret } = await share(_id);
    const token = await open(secret);
    const stream = await listen(token);
    const aside = await must(service.admin('POST', 'groups', { name: 'aside' }));
    await must(service.admin('PATCH', `groups/${parent._id}`, { parent: aside._id }));
    await until(() => stream.isEnded(), 'the stream ends');
    expect((await service.as(token)('GET', 'shared')).body).toEqual(UNAUTHORIZED);
    expect((await service.as(null)('POST', 'shared', { secret })).body).toEqual(ENDED);
  });

  test('is the end of the token that created it', async () => {
    const { _id } = await newObject();
    const {
      token,
      _id: tokenId,
      expiresAt,
    } = await must(service.admin('POST', 'tokens', { name: 'app', expiresIn: '1 h' }));
    const link = await share(_id, { expiresIn: '30 days' }, service.as(token));
    expect(link.expiresAt).toBe(expiresAt);
    const stream = await listen(await open(link.secret));
    await must(service.admin('DELETE', `tokens/${tokenId}`));
    await until(() => stream.isEnded(), 'the stream ends');
    expect((await service.as(null)('POST', 'shared', { secret: link.secret })).body).toEqual(ENDED);
  });
});

describe('Sharing', () => {
  test('is for those who may change the object and create links', async () => {
    const { _id } = await newObject();
    const callers: [string[], number][] = [
      [['GET /*'], 403],
      [['GET /*', 'PATCH /objects/*'], 403],
      [['GET /*', 'POST /objects/*/links'], 403],
      [['PATCH /objects/*', 'POST /objects/*/links'], 403],
      [['GET /*', 'PATCH /objects/*', 'POST /objects/*/links'], 200],
    ];
    for (const [credentials, status] of callers) {
      const role = await must(service.admin('POST', 'roles', { name: `role ${++count}`, credentials }));
      const { call } = await createPerson(service, { role: role._id, group });
      const answer = await call('POST', `objects/${_id}/links`, { name: 'x' });
      expect([credentials, answer.status]).toEqual([credentials, status]);
    }
    const foreign = await must(service.admin('POST', 'groups', { name: 'foreign' }));
    const stranger = await createPerson(service, { role: OPERATOR_ROLE_ID, group: foreign._id });
    const { _id: linkId } = await share(_id);
    expect((await stranger.call('POST', `objects/${_id}/links`, { name: 'x' })).body).toEqual(NOT_FOUND);
    expect((await stranger.call('GET', `objects/${_id}/links`)).body).toEqual(NOT_FOUND);
    expect((await stranger.call('DELETE', `objects/${_id}/links/${linkId}`)).body).toEqual(NOT_FOUND);
    // Nor by the name of another object.
    const other = await newObject();
    expect((await sharer.call('DELETE', `objects/${other._id}/links/${linkId}`)).body).toEqual(NOT_FOUND);
  });

  test('refuses what is wrong, and names it', async () => {
    const { _id } = await newObject();
    const bodies: [unknown, string][] = [
      [[], 'object'],
      [{}, 'name'],
      [{ name: ' ' }, 'name'],
      [{ name: 'x'.repeat(1_000) }, 'name'],
      [{ expiresIn: '1 s' }, 'expiresIn'],
      [{ expiresIn: '367 days' }, 'expiresIn'],
      [{ expiresIn: 'soon' }, 'expiresIn'],
      [{ expiresIn: null }, 'expiresIn'],
      [{ history: '48 h' }, 'history'],
      [{ history: true }, 'history'],
      [{ pin: 1234 }, 'pin'],
      [{ pin: '123' }, 'pin'],
      [{ pin: '1234567890123' }, 'pin'],
      [{ pin: '12a4' }, 'pin'],
      [{ fields: 'lat' }, 'fields'],
      [{ fields: [1] }, 'fields'],
      [{ fields: [''] }, 'fields'],
      [{ fields: ['$where'] }, 'fields'],
      [{ fields: ['a.__proto__.b'] }, 'fields'],
      [{ fields: Array.from({ length: 101 }, (_, at) => `p${at}`) }, 'fields'],
      ...['owner', 'access', 'branch', 'group', 'access.0', '_id'].map((path): [unknown, string] => [
        { fields: [path] },
        path,
      ]),
      [{ field: ['lat'] }, 'field'],
    ];
    for (const [body, mention] of bodies) {
      const whole =
        Array.isArray(body) || Object.keys(body as object).length === 0 ? body : { name: 'x', ...(body as object) };
      const answer = await sharer.call('POST', `objects/${_id}/links`, whole);
      expect([body, answer.status, answer.body]).toEqual([body, 400, refusal(400, mention)]);
    }
    expect(await must(sharer.call('GET', `objects/${_id}/links`))).toEqual([]);
  });

  test('cannot be widened by a change of its token', async () => {
    const { _id } = await newObject();
    await send(_id, { time: Date.now(), lat: 1, cargo: 'gold' });
    const { secret, _id: linkId } = await share(_id, { fields: ['lat'], pin: '1234' });
    await must(
      service.admin('PATCH', `tokens/${linkId}`, {
        name: 'renamed',
        _link: { fields: null, pinHash: null },
        scopes: ['* /*'],
      }),
    );
    expect((await service.as(null)('POST', 'shared', { secret })).status).toBe(401);
    const view = await must(service.as(await open(secret, '1234'))('GET', 'shared'));
    expect([view.name, view.latest.cargo, view.latest.lat.value]).toEqual(['renamed', undefined, 1]);
  });

  test('is bounded for each object', async () => {
    const { _id } = await newObject();
    const made = await share(_id);
    const tokens = service.client.db().collection('tokens');
    const found = await tokens.findOne({ _id: new ObjectId(made._id as string) });
    const { _id: _, ...like } = found ?? { _id: null };
    await tokens.insertMany(Array.from({ length: LIMITS.linksPerObject - 2 }, () => ({ ...like })));
    const atOnce = Array.from({ length: 4 }, () => sharer.call('POST', `objects/${_id}/links`, { name: 'at once' }));
    expect((await Promise.all(atOnce)).map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
    const refused = await sharer.call('POST', `objects/${_id}/links`, { name: 'one more' });
    expect([refused.status, refused.body]).toEqual([409, refusal(409, 'revoke one first')]);
  });
});
