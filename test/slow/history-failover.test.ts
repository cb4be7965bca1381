/** The database fails during a series or an export, or the service fails during a removal: no result is incomplete without a sign of it. */
import { type IncomingMessage, request } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { callApi, callUntilAvailable, logIn } from '../support/api-call.js';
import { createPerson } from '../support/callers.js';
import { ADMIN, startTestService, type TestService } from '../support/fixture.js';
import { holdCommands } from '../support/held-commands.js';
import { startInstance } from '../support/instance.js';
import { endLease } from '../support/leases.js';
import { type Member, type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

const START = Date.UTC(2026, 0, 1);
const PACKETS = 20_000;
const PER_POST = 1_000;
const SERIES = `series?params=nth&fn=count,sum,first,last&points=10&from=${START}&to=${START + PACKETS * 1_000 - 1}`;
/** A batch is held back until its server is killed; a server that steps down goes on with it after this time. */
const STEP_DOWN_MS = 2_000;
/** Longer than a busy machine needs to elect another primary. */
const PATIENT = { streamPatienceMs: 60_000 };
const { streamPatienceMs } = LIMITS;
/** The steps of a removal before its instance is killed. */
const STEPS = 2;

interface Ended {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
  readonly trailer: unknown;
}

/** An answer that the test reads when it wants to. */
interface Download {
  /** Resolves when the answer has begun. */
  readonly begun: Promise<unknown>;
  /** Reads the rest. */
  end(): Promise<Ended>;
}

function download(url: string, token: string, path: string): Download {
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    request(`${url}/api/v1/objects/car/${path}`, { headers }, resolve).once('error', reject).end();
  });
  response.catch(() => undefined);
  return {
    begun: response,
    async end() {
      const res = await response;
      const parts: Buffer[] = [];
      for await (const part of res) parts.push(part as Buffer);
      const text = Buffer.concat(parts).toString();
      const { statusCode: status = 0, headers, trailers } = res;
      return { status, retryAfter: headers['retry-after'], text, trailer: trailers['x-export'] };
    },
  };
}

interface Begun {
  readonly exporting: Download;
  readonly reading: Download;
  readonly primary: Member;
}

async function addPackets(url: string, token: string): Promise<void> {
  await callUntilAvailable(url, token, 'POST', 'objects', { id: 'car', name: 'Car' });
  for (let begin = 0; begin < PACKETS; begin += PER_POST) {
    // An export must not fit into the buffers on its way.
    const text = 'x'.repeat(1_000);
    const idOf = (nth: number): string => nth.toString(16).padStart(24, '0');
    const packet = (nth: number) => ({ _id: idOf(nth), time: START + nth * 1_000, nth, text });
    const packets = Array.from({ length: PER_POST }, (_, at) => packet(begin + at));
    // A busy machine may answer too late, or elect another primary: a packet that is sent again is stored once.
    const areStored = async () => (await callApi(url, token, 'POST', 'objects/car/packets', packets)).status === 200;
    await until(areStored, 'the packets to be stored');
  }
}

/** The numbers of the packets in NDJSON, and the other lines. */
function readNdjson(text: string): { numbers: number[]; rest: unknown[] } {
  const rows = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const isPacket = ({ nth }: { nth?: number }): boolean => nth !== undefined;
  return { numbers: rows.filter(isPacket).map(({ nth }) => nth), rest: rows.filter((row) => !isPacket(row)) };
}

const numbersBelow = (count: number): number[] => Array.from({ length: count }, (_, nth) => nth);

describe('a history during faults', () => {
  let set: ReplicaSet;
  let service: TestService;
  let token: string;
  let otherToken: string;
  let whole: unknown;

  beforeAll(async () => {
    set = await startReplicaSet();
    service = await startTestService({}, set.uri('vigil'));
    token = await service.tokenOf(ADMIN.login, ADMIN.password);
    const { role, group } = entityOf(await service.admin('GET', 'auth'));
    otherToken = (await createPerson(service, { role, group })).token;
    await addPackets(service.url, token);
    whole = JSON.parse((await download(service.url, token, SERIES).end()).text);
    expect(whole).toMatchObject({ nth: { count: Array(10).fill(PACKETS / 10) } });
  });

  afterEach(() => {
    Object.assign(LIMITS, { streamPatienceMs });
  });

  afterAll(async () => {
    await service?.stop();
    await set?.stop();
  });

  /**
   * Starts an export and a series, and returns while the database holds back one of the later batches of each. They are of two callers: the
   * batches of one wait for each other.
   */
  async function startInMiddle(heldMs?: number): Promise<Begun> {
    const primary = await set.primary();
    const batches = { command: 'getMore', database: 'vigil', collection: 'packets', mode: { times: 2 } } as const;
    const { entered } = await holdCommands(primary, { ...batches, ...(heldMs && { heldMs }) });
    const exporting = download(service.url, otherToken, 'packets?format=ndjson');
    await entered(1);
    const reading = download(service.url, token, SERIES);
    await entered(2);
    return { exporting, reading, primary };
  }

  /** Starts dead members again. */
  async function heal(dead: readonly Member[]): Promise<void> {
    await Promise.all(dead.map((member) => member.start()));
    await set.whole();
    const isBack = async () => (await service.admin('GET', 'objects')).status === 200;
    await until(isBack, 'the service to answer 200');
  }

  test.each([
    ['a step-down', (primary: Member) => primary.stepDown(), STEP_DOWN_MS],
    ['a killed primary', (primary: Member) => primary.kill(), undefined],
  ] as const)('computes the exact series, and exports every packet once, across %s', async (_, fail, heldMs) => {
    Object.assign(LIMITS, PATIENT);
    const { exporting, reading, primary } = await startInMiddle(heldMs);
    await fail(primary);
    // A killed primary stays dead until both have ended: another member has continued them.
    const [series, file] = await Promise.all([reading.end(), exporting.end()]);
    await heal(primary.isUp() ? [] : [primary]);
    expect([series.status, JSON.parse(series.text)]).toEqual([200, whole]);
    expect([file.status, file.trailer]).toEqual([200, `complete; packets=${PACKETS}`]);
    expect(readNdjson(file.text)).toEqual({ numbers: numbersBelow(PACKETS), rest: [] });
  });

  test('refuses a series with 503 and ends an export as incomplete when there is no primary', async () => {
    const { exporting, reading, primary } = await startInMiddle();
    await exporting.begun;
    // A set of three without two of them has no primary until they are started again.
    const dead = [primary, ...set.members.filter((member) => member !== primary).slice(0, 1)];
    await Promise.all(dead.map((member) => member.kill()));
    const [series, file] = await Promise.all([reading.end(), exporting.end()]);
    await heal(dead);
    expect([series.status, JSON.parse(series.text).tags]).toEqual([503, ['error_unavailable']]);
    expect(Number(series.retryAfter)).toBeGreaterThanOrEqual(1);
    const { numbers, rest } = readNdjson(file.text);
    expect(numbers.length).toBeGreaterThan(0);
    expect(numbers.length).toBeLessThan(PACKETS);
    expect(numbers).toEqual(numbersBelow(numbers.length));
    expect([file.status, file.trailer]).toEqual([200, `incomplete; packets=${numbers.length}`]);
    const [message, after] = /after=(\w{24})/.exec(JSON.stringify(rest)) ?? [];
    expect([rest.length, message]).toEqual([1, `after=${after}`]);
    const others = await download(service.url, token, `packets?format=ndjson&after=${after}`).end();
    expect([...numbers, ...readNdjson(others.text).numbers]).toEqual(numbersBelow(PACKETS));
  });
});

test('continues a removal of packets after the service was killed, and records it once', async () => {
  const set = await startReplicaSet({ members: 1 });
  const instance = await startInstance(set.uri('vigil'));
  const database = await new MongoClient(set.uri('vigil')).connect();
  try {
    const token = await logIn(instance.url, ADMIN);
    await addPackets(instance.url, token);
    const call = (method: string, path: string) => callApi(instance.url, token, method, path);
    const interval = `from=${START + 1_000}&to=${START + (PACKETS - 2) * 1_000}`;
    // The next step is held back until the instance is killed.
    const steps = { command: 'delete', database: 'vigil', collection: 'packets', mode: { skip: STEPS } } as const;
    const { entered, end } = await holdCommands(await set.primary(), steps);
    expect((await call('DELETE', `objects/car/packets?${interval}`)).body.status).toBe('queued');
    await entered();
    await instance.kill();
    await end();
    const left = await database.db().collection('packets').countDocuments();
    expect(left).toBe(PACKETS - STEPS * LIMITS.packetsPerRemoval);
    await endLease(database.db(), 'removals');
    await instance.start();
    const removed = async () => (await call('GET', 'audit?where.action=packets removed')).body;
    await until(async () => (await removed()).length > 0, 'the removal to end');
    expect((await call('GET', 'objects/car/packets')).body.map(({ nth }: { nth: number }) => nth)).toEqual([
      0,
      PACKETS - 1,
    ]);
    expect(await removed()).toHaveLength(1);
  } finally {
    await instance.stop();
    await database.close();
    await set.stop();
  }
});
