/** Devices fetch their commands over HTTP and answer them: once, in order, in time, on any instance. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { DEVICE_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, eventsOf, expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import {
  ADMIN,
  type Answer,
  type Call,
  type Listener,
  startTestService,
  type TestService,
  useService,
} from '../support/fixture.js';
import { until } from '../support/until.js';

let startMs = Date.now();
let nowMs = startMs;
const now = () => nowMs;
const service = useService({ now });
let there: TestService;
let listener: Listener;
let device: Person;
let object: { _id: string; id: string };

beforeAll(async () => {
  there = await startTestService({ now }, service.mongodbUri);
  listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
});
afterAll(async () => {
  await there.service.stop();
  await there.client.close();
});
beforeEach(async () => {
  startMs = Math.max(nowMs, Date.now());
  nowMs = startMs;
  const id = `thing-${new ObjectId()}`;
  object = entityOf(await service.admin('POST', 'objects', { id, name: 'x' }));
  device = await createPerson(service, { role: DEVICE_ROLE_ID, object: object._id });
  await received();
});

const path = (rest = '') => `objects/${object.id}/commands${rest}`;
const received = async () => {
  await service.settled();
  return eventsOf(listener.take());
};
async function send(command = 'go', params: object = {}, query = ''): Promise<string> {
  const { status, headers } = await service.admin('POST', path(`/${command}${query}`), params);
  expect(status).toBe(200);
  return (headers.location as string).split('/').at(-1) as string;
}
const fetchQueued = async (query = '', call: Call = device.call) =>
  (await call('GET', path(`?status=queued&only=command,params${query}`))).body;
const answer = (id: string, body: unknown, call: Call = device.call) => call('POST', path(`/${id}/result`), body);
const stored = async (id: string) => entityOf(await service.admin('GET', `commands/${id}`));

describe('a device', () => {
  test('fetches waiting commands in order without changing them, and reports results', async () => {
    const ids = [await send('open', { door: 1 }), await send('close'), await send('lock')] as const;
    const waiting = [
      { _id: ids[0], command: 'open', params: { door: 1 } },
      { _id: ids[1], command: 'close', params: {} },
      { _id: ids[2], command: 'lock', params: {} },
    ];
    expect(await fetchQueued()).toEqual(waiting);
    expect(await fetchQueued()).toEqual(waiting);
    await received();
    nowMs += 5;
    const done = entityOf(await answer(ids[0], { status: 'done', result: { angle: 90 } }));
    const failed = entityOf(await answer(ids[1], { status: 'failed', result: 'jammed' }));
    const times = { queued: startMs, sent: nowMs, delivered: nowMs };
    expect(done).toMatchObject({ status: 'done', result: { angle: 90 } });
    expect(done.times).toEqual({ ...times, done: nowMs });
    expect(failed.times).toEqual({ ...times, failed: nowMs });
    expect([await stored(ids[0]), await stored(ids[1])]).toEqual([done, failed]);
    expect(await fetchQueued()).toEqual(waiting.slice(2));
    const toEventCommand = ({ _id, command, params, status, times, expires, result }: typeof done) => ({
      _id,
      command,
      params,
      status,
      times,
      expires,
      result,
    });
    expect(await received()).toEqual([
      { name: 'object-command-res', payload: { id: object._id, command: toEventCommand(done) } },
      { name: 'object-command-err', payload: { id: object._id, command: toEventCommand(failed) } },
    ]);
  });

  test('repeats a result without effect, and cannot change it', async () => {
    const id = await send();
    const first = await answer(id, { status: 'done', result: [1, { b: 2 }] });
    await received();
    nowMs += 1_000;
    expect((await answer(id, { status: 'done', result: [1, { b: 2 }] })).body).toEqual(first.body);
    for (const other of [
      { status: 'failed', result: [1, { b: 2 }] },
      { status: 'done' },
      { status: 'done', result: 2 },
    ]) {
      expectRefusal(await answer(id, other), 409, 'already done');
    }
    expect(await stored(id)).toEqual(entityOf(first));
    expect(await received()).toEqual([]);
  });

  test('reports a result on two instances, which is published once', async () => {
    const onOther = there.as(device.token);
    for (let round = 0; round < 20; round++) {
      const id = await send();
      await received();
      const answers = await Promise.all([
        answer(id, { status: 'done', result: 'here' }),
        answer(id, { status: 'failed', result: 'there' }, onOther),
      ]);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
      const winner = answers.find(({ status }) => status === 200) as Answer;
      expect(await stored(id)).toEqual(entityOf(winner));
      expect((await received()).length).toBe(1);
    }
  });

  test.each<[body: unknown, status: number, mention: string]>([
    [undefined, 400, 'status'],
    [{}, 400, 'status'],
    [{ status: 'expired' }, 400, 'status'],
    [{ status: 'queued', result: 1 }, 400, 'status'],
    [{ status: 'done', result: { 'a.b': 1 } }, 400, 'result'],
    [{ status: 'done', result: Array(10_000).fill('0123456789') }, 400, 'result'],
    ['[]', 400, 'object'],
    ['{', 400, 'JSON'],
  ])('gets an error that explains %j', async (body, status, mention) => {
    const id = await send();
    expectRefusal(await answer(id, body), status, mention);
    expect((await stored(id)).status).toBe('queued');
  });

  test('answers only its own commands', async () => {
    const id = await send();
    const other = entityOf(await service.admin('POST', 'objects', { id: `other-${new ObjectId()}`, name: 'x' }));
    for (const call of [device.call, service.admin]) {
      for (const wrong of ['x', 'f'.repeat(24), object._id])
        expectRefusal(await answer(wrong, { status: 'done' }, call), 404);
    }
    // Under another object: not its own to the device, not there to anyone.
    const foreign = `objects/${other._id}/commands/${id}/result`;
    expectRefusal(await device.call('POST', foreign, { status: 'done' }), 403);
    expectRefusal(await service.admin('POST', foreign, { status: 'done' }), 404);
    expectRefusal(await device.call('GET', `objects/${other._id}/commands`), 403);
    expectRefusal(await device.call('GET', `commands/${id}`), 403);
    expect((await service.admin('GET', `objects/${other._id}/commands`)).body).toEqual([]);
    expect((await stored(id)).status).toBe('queued');
  });
});

describe('the list of the commands of an object', () => {
  test('supports all list parameters, and filters by status', async () => {
    const ids = [await send('a'), await send('b'), await send('c')] as const;
    await answer(ids[0], { status: 'done' });
    await answer(ids[1], { status: 'failed' });
    const of = async (query: string) => {
      const { body } = await service.admin('GET', path(query));
      return Array.isArray(body) ? body.map(({ _id }: { _id: string }) => ids.indexOf(_id)) : body;
    };
    expect(await of('')).toEqual([0, 1, 2]);
    expect(await of('?status=done')).toEqual([0]);
    expect(await of('?status=failed,done')).toEqual([0, 1]);
    expect(await of('?status=expired')).toEqual([]);
    expect(await of('?status=queued,sent,delivered')).toEqual([2]);
    expect(await of('?sortBy=-_id&limit=2')).toEqual([2, 1]);
    expect(await of(`?after=${ids[0]}`)).toEqual([1, 2]);
    expect(await of('?where.command=b')).toEqual([1]);
    expect(await of('?meta=true&only=command&status=done')).toEqual({
      count: 1,
      first: { _id: ids[0], command: 'a' },
      last: { _id: ids[0], command: 'a' },
    });
    expect((await service.admin('GET', path())).body[2]).toEqual(await stored(ids[2]));
  });

  test.each([
    ['status=new', 'status'],
    ['status=', 'status'],
    ['status=queued,', 'status'],
    ['status=queued&status=sent', 'status'],
    ['wait=61', 'wait'],
    ['wait=-1', 'wait'],
    ['wait=', 'wait'],
    ['wait=30s', 'wait'],
    ['wait=1&wait=2', 'wait'],
    ['wait=1&meta=true', 'wait'],
    ['limit=x', 'limit'],
  ])('is refused with a named parameter: %s', async (query, mention) => {
    expectRefusal(await service.admin('GET', path(`?${query}`)), 400, mention);
  });
});

describe('the lifetime of a command', () => {
  test.each([
    ['', 86_400_000],
    ['?ttl=5000', 5_000],
    ['?ttl=10%20min', 600_000],
    ['?ttl=10+min', 600_000],
    ['?ttl=90%20days', 90 * 86_400_000],
  ])('follows the parameter: %s', async (query, ttlMs) =>
    expect((await stored(await send('go', {}, query))).expires).toBe(startMs + ttlMs),
  );

  test.each(['0', '1', '-5', '91days', 'soon', '', '5000&ttl=5000'])(
    'is refused with a named parameter: ttl=%s',
    async (ttl) => {
      expectRefusal(await service.admin('POST', path(`/go?ttl=${ttl}`)), 400, 'ttl');
      expect((await service.admin('GET', path())).body).toEqual([]);
    },
  );

  test('ends the command: it is no longer delivered, expires with an event, and accepts no result', async () => {
    const short = await send('short', {}, '?ttl=10s');
    const delivered = await send('delivered', {}, '?ttl=10s');
    const long = await send('long', {}, '?ttl=11s');
    const journal = service.client.db().collection('commands');
    const taken = { $set: { status: 'delivered', 'times.delivered': startMs } };
    await journal.updateOne({ _id: new ObjectId(delivered) }, taken);
    nowMs += 9_999;
    expect((await fetchQueued()).map(({ _id }: { _id: string }) => _id)).toEqual([short, long]);
    await received();
    nowMs += 1;
    expect((await fetchQueued()).map(({ _id }: { _id: string }) => _id)).toEqual([long]);
    const isExpired = async (id: string) => (await stored(id)).status === 'expired';
    await until(async () => (await isExpired(short)) && (await isExpired(delivered)), 'both expired');
    expect((await stored(short)).times).toEqual({ queued: startMs, expired: nowMs });
    expect((await stored(delivered)).times).toEqual({ queued: startMs, delivered: startMs, expired: nowMs });
    expectRefusal(await answer(short, { status: 'done' }), 409, 'already expired');
    expectRefusal(await answer(delivered, { status: 'done' }), 409, 'already expired');
    expect((await stored(long)).status).toBe('queued');
    type CommandEvent = { name: string; payload: { id: string; command: { _id: string; status: string } } };
    const events = ((await received()) as CommandEvent[]).filter(({ payload }) => payload.id === object._id);
    expect(events.map(({ name, payload }) => [name, payload.command.status])).toEqual([
      ['object-command-err', 'expired'],
      ['object-command-err', 'expired'],
    ]);
    expect(events.map(({ payload }) => payload.command._id).sort()).toEqual([short, delivered].sort());
  });
});

test('limits the waiting commands of an object', async () => {
  const _ids = Array.from({ length: LIMITS.commandsWaiting - 1 }, () => new ObjectId());
  const waiting = { object: new ObjectId(object._id), status: 'queued', expires: startMs + 86_400_000 };
  await service.client
    .db()
    .collection('commands')
    .insertMany(_ids.map((_id) => ({ _id, ...waiting, branch: [], access: [] })));
  const last = await send();
  expectRefusal(await service.admin('POST', path('/go')), 429, 'wait');
  await answer(last, { status: 'done' });
  await send();
});

test('keeps all commands across a restart', async () => {
  const ids = [await send('a'), await send('b')] as const;
  await answer(ids[0], { status: 'done', result: 5 });
  const next = await startTestService({ now }, service.mongodbUri);
  try {
    const call = next.as(device.token);
    expect(entityOf(await next.admin('GET', `commands/${ids[0]}`))).toEqual(await stored(ids[0]));
    expect(await fetchQueued('', call)).toEqual(await fetchQueued());
    expectRefusal(await answer(ids[0], { status: 'failed' }, call), 409);
    entityOf(await answer(ids[1], { status: 'done' }, call));
    expect(await fetchQueued()).toEqual([]);
  } finally {
    await next.service.stop();
    await next.client.close();
  }
});
