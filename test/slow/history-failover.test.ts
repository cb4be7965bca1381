/** The database fails in the middle of a series or an export, or the service during a removal: nothing is silently short. */
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callApi, logIn } from '../support/api-call.js';
import { ADMIN, startTestService, type TestService, testUri } from '../support/fixture.js';
import { startInstance } from '../support/instance.js';
import { type Member, type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

const START = Date.UTC(2026, 0, 1);
const PACKETS = 40_000;
const PER_POST = 10_000;
const SERIES = `series?params=nth&fn=count,sum,first,last&points=10&from=${START}&to=${START + PACKETS * 1_000 - 1}`;
// Five seconds for the database, and some for a machine that has other things to do.
const LONGEST_ANSWER_MS = 9_000;
// Longer than it takes, on a busy machine too, to hear that a batch is being read and to hurt the database then.
const BLOCKED_MS = 1_500;

interface Ended {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
  readonly trailer: unknown;
  readonly ms: number;
}

/** An answer whose reader decides when to read on. */
interface Download {
  /** Resolves when the answer has begun. */
  readonly begun: Promise<unknown>;
  /** Reads the rest. */
  end(): Promise<Ended>;
}

function download(url: string, token: string, path: string): Download {
  const startMs = performance.now();
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
      const ms = performance.now() - startMs;
      return { status, retryAfter: headers['retry-after'], text, trailer: trailers['x-export'], ms };
    },
  };
}

async function addPackets(url: string, token: string): Promise<void> {
  await callApi(url, token, 'POST', 'objects', { id: 'car', name: 'Car' });
  for (let begin = 0; begin < PACKETS; begin += PER_POST) {
    // Long enough that an export does not fit into the buffers on its way.
    const text = 'x'.repeat(400);
    const packet = (_: unknown, at: number) => ({ time: START + (begin + at) * 1_000, nth: begin + at, text });
    const packets = Array.from({ length: PER_POST }, packet);
    expect((await callApi(url, token, 'POST', 'objects/car/packets', packets)).status).toBe(200);
  }
}

/** The numbers of the packets in NDJSON, and its last line when that is no packet. */
function readNdjson(text: string): { numbers: number[]; rest: unknown[] } {
  const rows = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const isPacket = ({ nth }: { nth?: number }): boolean => nth !== undefined;
  return { numbers: rows.filter(isPacket).map(({ nth }) => nth), rest: rows.filter((row) => !isPacket(row)) };
}

const numbersBelow = (count: number): number[] => Array.from({ length: count }, (_, nth) => nth);

describe('a history under faults', () => {
  let set: ReplicaSet;
  let service: TestService;
  let token: string;
  let whole: unknown;

  beforeAll(async () => {
    set = await startReplicaSet();
    service = await startTestService({}, set.uri('vigil'));
    token = await service.tokenOf(ADMIN.login, ADMIN.password);
    await addPackets(service.url, token);
    whole = JSON.parse((await download(service.url, token, SERIES).end()).text);
    expect(whole).toMatchObject({ nth: { count: Array(10).fill(PACKETS / 10) } });
  }, 180_000);

  afterAll(async () => {
    await service?.stop();
    await set?.stop();
  }, 60_000);

  /** Starts a download, and returns when one of its later batches is being read: the cursor is open. */
  async function startInMiddle(path: string): Promise<{ reading: Download; primary: Member }> {
    const primary = await set.primary();
    const data = { failCommands: ['getMore'], appName: 'vigil', blockConnection: true, blockTimeMS: BLOCKED_MS };
    const commands = { ...data, namespace: 'vigil.packets' };
    const { count } = await primary.command({ configureFailPoint: 'failCommand', mode: { times: 1 }, data: commands });
    const reading = download(service.url, token, path);
    await primary.command({ waitForFailPoint: 'failCommand', timesEntered: count + 1, maxTimeMS: 20_000 });
    return { reading, primary };
  }

  /** Brings dead members back. */
  async function heal(dead: readonly Member[]): Promise<void> {
    for (const member of dead) member.start();
    await set.whole();
    const isBack = async () => (await service.admin('GET', 'objects')).status === 200;
    await until(isBack, 'the service to go on', 30_000);
  }

  test.each([
    ['a step-down', (primary: Member) => primary.stepDown(), 0],
    ['a killed primary', (primary: Member) => primary.kill(), 1],
  ] as const)(
    'waits for the election after %s, and computes the exact series',
    async (_, hurt, deaths) => {
      const { reading, primary } = await startInMiddle(SERIES);
      await hurt(primary);
      const { status, text, ms } = await reading.end();
      await heal(deaths === 1 ? [primary] : []);
      expect([status, JSON.parse(text)]).toEqual([200, whole]);
      expect(ms).toBeLessThan(LONGEST_ANSWER_MS);
    },
    120_000,
  );

  test.each([
    ['a step-down', (primary: Member) => primary.stepDown(), 0],
    ['a killed primary', (primary: Member) => primary.kill(), 1],
  ] as const)(
    'waits for the election after %s, and exports every packet once',
    async (_, hurt, deaths) => {
      const { reading, primary } = await startInMiddle('packets?format=ndjson');
      await hurt(primary);
      const { status, text, trailer } = await reading.end();
      await heal(deaths === 1 ? [primary] : []);
      expect([status, trailer]).toEqual([200, `complete; packets=${PACKETS}`]);
      expect(readNdjson(text)).toEqual({ numbers: numbersBelow(PACKETS), rest: [] });
    },
    120_000,
  );

  test('refuses a series with 503 without a primary, and ends an export that has begun with a trailer that says so', async () => {
    const exporting = await startInMiddle('packets?format=ndjson');
    const { reading, primary } = await startInMiddle(SERIES);
    await exporting.reading.begun;
    // A set of three without two of them elects nobody.
    const dead = [primary, ...set.members.filter((member) => member !== primary).slice(0, 1)];
    await Promise.all(dead.map((member) => member.kill()));
    const [series, file] = await Promise.all([reading.end(), exporting.reading.end()]);
    await heal(dead);
    expect([series.status, JSON.parse(series.text).tags]).toEqual([503, ['error_unavailable']]);
    expect(Number(series.retryAfter)).toBeGreaterThanOrEqual(1);
    expect(series.ms).toBeLessThan(LONGEST_ANSWER_MS);
    const { numbers, rest } = readNdjson(file.text);
    expect(numbers.length).toBeGreaterThan(0);
    expect(numbers.length).toBeLessThan(PACKETS);
    expect(numbers).toEqual(numbersBelow(numbers.length));
    expect([file.status, file.trailer]).toEqual([200, `incomplete; packets=${numbers.length}`]);
    const [message, after] = /after=(\w{24})/.exec(JSON.stringify(rest)) ?? [];
    expect([rest.length, message]).toEqual([1, `after=${after}`]);
    const others = await download(service.url, token, `packets?format=ndjson&after=${after}`).end();
    expect([...numbers, ...readNdjson(others.text).numbers]).toEqual(numbersBelow(PACKETS));
  }, 180_000);
});

test('continues a removal of packets after the service was killed, and records it once', async () => {
  const instance = await startInstance(testUri());
  try {
    const token = await logIn(instance.url, ADMIN);
    await addPackets(instance.url, token);
    const call = (method: string, path: string) => callApi(instance.url, token, method, path);
    const countOf = async (): Promise<number> => (await call('GET', 'objects/car/packets?meta=true')).body.count;
    const interval = `from=${START + 1_000}&to=${START + (PACKETS - 2) * 1_000}`;
    expect((await call('DELETE', `objects/car/packets?${interval}`)).body.status).toBe('queued');
    await until(async () => (await countOf()) < PACKETS, 'the removal to begin');
    await instance.kill();
    await instance.start();
    expect(await countOf()).toBeGreaterThan(2);
    const removed = async () => (await call('GET', 'audit?where.action=packets removed')).body;
    // The lease of the instance that was killed has to expire.
    await until(async () => (await removed()).length > 0, 'the removal to end', 60_000);
    expect((await call('GET', 'objects/car/packets')).body.map(({ nth }: { nth: number }) => nth)).toEqual([
      0,
      PACKETS - 1,
    ]);
    expect(await removed()).toHaveLength(1);
  } finally {
    await instance.stop();
  }
}, 180_000);
