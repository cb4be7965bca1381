/** The queue of lists that cost the database much: it serves callers in turn, and ends the work of clients that disconnected. */
import { type ClientRequest, request } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { ADMIN, type Answer, type Call, startTestService, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

/** Enough that a scan takes longer than a busy machine needs to send the requests. */
const LABELS = 120_000;
const PASSWORD = 'a long enough password';
// Where the machine is busy with something else, many scans, one after the other, take longer than a list may wait; and some are over
// before the last of them has come.
Object.assign(LIMITS, { listWaitMs: 120_000, listsWaitingPerCaller: 30 });
const MORE_THAN_WAIT = 60;
// Before the database is dropped: what is profiled is written into it.
afterAll(() => service.client.db().command({ profile: 0 }));
const service = useService();
/** Looks at every label that the caller sees. */
const SCAN = 'labels?search=nowhere&meta=true';
const tenants: Record<'noisy' | 'quiet', { token: string; call: Call }> = Object.create(null);

beforeAll(async () => {
  for (const name of ['noisy', 'quiet'] as const) {
    const role = entityOf(await service.admin('POST', 'roles', { name, credentials: ['* /*'] }));
    const group = entityOf(await service.admin('POST', 'groups', { name }));
    const user = { login: name, password: PASSWORD, name, role: role._id, group: group._id };
    entityOf(await service.admin('POST', 'users', user));
    const token = await service.tokenOf(name, PASSWORD);
    tenants[name] = { token, call: service.as(token) };
    const branch = [new ObjectId(group._id)];
    const labels = Array.from({ length: LABELS }, (_, nth) => ({
      name: `label ${nth} of ${name}`,
      branch,
      access: [],
    }));
    await service.client.db().collection('labels').insertMany(labels);
  }
  // Until the last of so many changes is seen, the process is late with everything.
  await service.settled();
});

/** Creates a request without waiting for its answer. */
function ask(path: string, token = tenants.noisy.token): ClientRequest {
  const headers = { Authorization: `Bearer ${token}` };
  return request(`${service.url}/api/v1/${path}`, { headers, agent: false }).on('error', () => undefined);
}

test('answers another caller while many counts of one wait', async () => {
  // Afterwards nothing of the callers has to be looked up.
  for (const { call } of Object.values(tenants)) expect((await call('GET', SCAN)).status).toBe(200);
  const asked = 24;
  const answerAnother = async (): Promise<boolean> => {
    let answered = 0;
    const counts = Array.from({ length: asked }, async () => {
      const answer = await tenants.noisy.call('GET', SCAN);
      answered++;
      return answer;
    });
    await until(async () => answered > 0 || (await countScans()) > 0, 'a count is under way');
    const before = answered;
    expect((await tenants.quiet.call('GET', SCAN)).body).toEqual({ count: 0, first: null, last: null });
    const meanwhile = answered - before;
    expect(new Set((await Promise.all(counts)).map(({ status }) => status))).toEqual(new Set([200]));
    // On a busy machine most may have been answered before.
    if (before >= asked / 4) return false;
    // After all of them, it would be many more.
    expect(meanwhile).toBeLessThan(asked / 2);
    return true;
  };
  await until(answerAnother, 'many counts to wait');
});

test('refuses the lists of one caller with 429 beyond the number that may wait, and no list of another', async () => {
  const statuses: (number | undefined)[] = [];
  const asked = Array.from({ length: LIMITS.listsWaitingPerCaller + LIMITS.scansPerCaller + MORE_THAN_WAIT }, () =>
    ask(SCAN).on('response', ({ statusCode, headers }) => {
      statuses.push(statusCode);
      if (statusCode === 429) expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    }),
  );
  try {
    for (const one of asked) one.end();
    await until(() => statuses.includes(429), 'one is refused');
    expect((await tenants.quiet.call('GET', SCAN)).status).toBe(200);
    expect((await tenants.noisy.call('GET', 'labels?limit=2')).body).toHaveLength(2);
  } finally {
    for (const one of asked) one.destroy();
  }
  const isAnswered = async () => (await tenants.noisy.call('GET', SCAN)).status === 200;
  await until(isAnswered, 'the caller is answered again');
});

/** Those of this test, not of others that use the same server. */
const isScan = () => ({ 'command.aggregate': 'labels', ns: `${service.client.db().databaseName}.labels` });

async function countScans(): Promise<number> {
  const operations = [{ $currentOp: { localOps: true } }, { $match: { ...isScan(), active: true } }];
  return (await service.client.db('admin').aggregate(operations).toArray()).length;
}

const INTERRUPTED = 11_601;

test('ends a count in the database when its client disconnects', async () => {
  const db = service.client.db();
  await db.command({ profile: 2 });
  const interrupted = { ...isScan(), errCode: INTERRUPTED };
  const endOne = async (): Promise<boolean> => {
    let isOver = false;
    const asked = ask(SCAN).on('response', (answer) => {
      isOver = true;
      answer.resume();
    });
    asked.end();
    // It may be over before it was seen.
    await until(async () => isOver || (await countScans()) > 0, 'the count is under way');
    asked.destroy();
    await until(async () => (await countScans()) === 0, 'the count has ended');
    // It may have been over just before.
    return (await db.collection('system.profile').countDocuments(interrupted)) > 0;
  };
  await until(endOne, 'a count was ended');
  await db.command({ profile: 0 });
});

test('answers all concurrent requests for the same list, also when one of the clients disconnects', async () => {
  const path = 'labels?limit=5000&only=name';
  const leaving = Array.from({ length: 5 }, () => ask(path));
  for (const one of leaving) one.end();
  const answers: Promise<Answer>[] = Array.from({ length: 5 }, () => tenants.noisy.call('GET', path));
  for (const one of leaving) one.destroy();
  for (const { status, body } of await Promise.all(answers)) expect([status, body.length]).toEqual([200, 5_000]);
});

test('counts the time of the database towards RATE_LIMIT', async () => {
  const counted = await startTestService({ env: { RATE_LIMIT: '2' } });
  try {
    const group = new ObjectId(entityOf(await counted.admin('GET', 'auth')).group as string);
    const labels = Array.from({ length: LABELS }, (_, nth) => ({ name: `label ${nth}`, branch: [group], access: [] }));
    await counted.client.db().collection('labels').insertMany(labels);
    const other = counted.as(await counted.tokenOf(ADMIN.login, ADMIN.password));
    // Twenty points in ten seconds, and a count of so many takes longer than as many ms. Ten seconds may pass between the two on a
    // busy machine; all tries together are fewer than twenty requests.
    let refused: Answer | undefined;
    for (let tries = 0; refused?.status !== 429 && tries < 5; tries++) {
      await other('GET', SCAN);
      refused = await other('GET', 'labels/000000000000000000000000');
    }
    expectRefusal(refused as Answer, 429, 'RATE_LIMIT');
  } finally {
    await counted.stop();
  }
});
