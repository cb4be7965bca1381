/** Restarts under load: the service completes every request that it accepted, and acknowledged packets are stored. */
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Binary, MongoClient, ObjectId } from 'mongodb';
import { packetIdIn } from '../../src/platform/mongo/bson/packet-key.js';
import { ADMIN, testUri } from '../support/fixture.js';
import { findFreePort } from '../support/ports.js';
import { type Process, startProcess } from '../support/process.js';
import { roundsOf } from '../support/runs.js';
import { until } from '../support/until.js';

const ROUNDS = roundsOf(50);
const WRITERS = 8;
const READERS = 4;
const ROUND_ANSWERS = 300;

const uri = testUri();
let client: MongoClient;
let env: Record<string, string>;
let service: Process;

beforeAll(async () => {
  env = {
    PORT: String(await findFreePort()),
    OPS_PORT: String(await findFreePort()),
    MONGODB_URI: uri,
    MQTT_PORT: '0',
    SECRET: randomBytes(32).toString('hex'),
    ADMIN_PASSWORD: ADMIN.password,
    STOP_DELAY: '300',
    LOG_LEVEL: 'info',
  };
  service = await startProcess(env);
  client = await new MongoClient(uri).connect();
});
afterAll(async () => {
  service?.child.kill('SIGKILL');
  await client?.db().dropDatabase();
  await client?.close();
});

const REFUSED = 'not connected';

/** The status of an answer, or the code of the error without one. */
type Outcome = number | string;

interface Asking {
  /** The log of the service contains this id of every request that reached it. */
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly token: string;
  readonly body?: string;
}

/** Sends one request on a connection that is kept alive, as programs do. */
function send(agent: Agent, asking: Asking): Promise<Outcome> {
  const { id, method, path, token, body } = asking;
  return new Promise((resolve) => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'X-Request-Id': id };
    const asked = request(`http://127.0.0.1:${env.PORT}${path}`, { method, agent, headers }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode ?? 0));
      answer.on('error', (error: NodeJS.ErrnoException) => resolve(`${error.code} in the answer`));
    });
    asked.on('error', ({ code, syscall }: NodeJS.ErrnoException) =>
      resolve(syscall === 'connect' ? REFUSED : `${code}`),
    );
    asked.end(body);
  });
}

test(
  `completes every accepted request through ${ROUNDS} restarts under load`,
  async () => {
    const login = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(ADMIN) };
    const { token } = (await (await fetch(`${service.url}/api/v1/auth/token`, login)).json()) as { token: string };
    const agent = new Agent({ keepAlive: true });
    const ask = (method: string, path: string, body?: object) => {
      const id = new ObjectId().toHexString();
      return { id, method, path: `/api/v1/${path}`, token, ...(body && { body: JSON.stringify(body) }) };
    };
    expect(await send(agent, ask('POST', 'objects', { id: 'car', name: 'Car' }))).toBe(200);

    const acknowledged: string[] = [];
    const failed: string[] = [];
    const outcomes = new Map<Outcome, number>();
    let stopping = false;
    let isRunning = true;
    const work = async (next: () => Asking): Promise<void> => {
      while (!stopping) {
        const asking = next();
        const outcome = await send(agent, asking);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        if (outcome !== 200) failed.push(asking.id);
        else if (asking.method === 'POST') acknowledged.push(asking.id);
        if (outcome === REFUSED) await until(() => stopping || isRunning, 'the next process');
      }
    };
    const write = (): Asking => {
      const _id = new ObjectId().toHexString();
      return { ...ask('POST', 'objects/car/packets', { _id, speed: 1 }), id: _id };
    };
    const read = (): Asking => ask('GET', 'objects/car');
    const workers = [
      ...Array.from({ length: WRITERS }, () => work(write)),
      ...Array.from({ length: READERS }, () => work(read)),
    ];

    let log = '';
    for (let round = 0; round < ROUNDS; round++) {
      const before = outcomes.get(200) ?? 0;
      await until(() => (outcomes.get(200) ?? 0) >= before + ROUND_ANSWERS, `${ROUND_ANSWERS} answers`);
      isRunning = false;
      const { code } = await service.stop();
      expect(code).toBe(0);
      log += service.said();
      service = await startProcess(env);
      isRunning = true;
    }
    stopping = true;
    await Promise.all(workers);
    agent.destroy();

    const stored = new Set(
      (
        await client
          .db()
          .collection('packets')
          .find({}, { projection: { _id: 1 } })
          .toArray()
      ).map(({ _id }) => packetIdIn(_id as unknown as Binary)),
    );
    // Every answer was 200. A request without an answer was not accepted: no process logged it.
    expect([...outcomes.keys()].filter((outcome) => typeof outcome === 'number' && outcome !== 200)).toEqual([]);
    expect(failed.filter((id) => log.includes(id) || stored.has(id))).toEqual([]);
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
    expect(acknowledged.length).toBeGreaterThan(ROUNDS);
    expect(log).not.toMatch(/"level":(50|60)|"aborted":true/);
  },
  ROUNDS * 900_000,
);
