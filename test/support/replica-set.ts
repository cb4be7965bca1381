/** A replica set of real mongods on this machine that can be hurt: its primary steps down, dies, freezes; members stay away. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Document, MongoClient } from 'mongodb';
import { defaultCacheFolder } from '../../src/config.js';
import { libraryEnvironment, type Mongod } from '../../src/db/embedded/binary.js';
import { findMongod } from '../../src/db/embedded/mongod.js';
import { freezeProcess } from './freeze.js';
import { findFreePort } from './ports.js';
import { until } from './until.js';

const NAME = 'faults';
const READY_MS = 60_000;
const ANSWER_MS = 2_000;
const FIRST_ELECTION_MS = 2_000;

export interface Member {
  readonly port: number;
  /** Ends it at once, as a failing machine does. */
  kill(): Promise<void>;
  /** Starts it again with its data. */
  start(): void;
  /** Hands over, when it is the primary, as for maintenance. */
  stepDown(): Promise<void>;
  /** It holds its connections and answers nothing, as a machine that hangs does. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Runs a command of administrators on this very member. */
  command(command: Document): Promise<Document>;
}

export interface ReplicaSet {
  readonly members: readonly Member[];
  /** For clients: all members, and the database to use. */
  uri(database: string): string;
  /** The member that takes writes, as soon as there is one. */
  primary(): Promise<Member>;
  /** Returns when every member is there and follows one primary. */
  whole(): Promise<void>;
  stop(): Promise<void>;
}

export interface ReplicaSetOptions {
  readonly members?: number;
  /** A small one forgets soon. */
  readonly oplogMb?: number;
  /** How long a primary may be unheard of, or hear of no majority, before it is none. */
  readonly electionMs?: number;
}

/** Starts the set and returns when it is whole. */
export async function startReplicaSet({
  members: count = 3,
  oplogMb = 256,
  electionMs = FIRST_ELECTION_MS,
}: ReplicaSetOptions = {}): Promise<ReplicaSet> {
  const log = { info: () => undefined, warn: () => undefined };
  const mongod = await findMongod({
    ...{ binary: process.env.MONGOD_BINARY || null, searchPath: process.env.PATH ?? '', log },
    cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
  });
  const folder = await mkdtemp(join(tmpdir(), 'vigil-set-'));
  const members: LocalMember[] = [];
  for (let at = 0; at < count; at++) {
    members.push(await startMember({ mongod, folder: join(folder, String(at)), port: await findFreePort(), oplogMb }));
  }
  const set = createSet(members);
  const stop = async () => {
    await Promise.all(members.map((member) => member.kill()));
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  };
  try {
    await initiate(members);
    await set.whole();
    if (electionMs !== FIRST_ELECTION_MS) await changeElections(await set.primary(), electionMs);
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...set, stop };
}

interface LocalMember extends Member {
  readonly isUp: () => boolean;
}

async function startMember(settings: {
  mongod: Mongod;
  folder: string;
  port: number;
  oplogMb: number;
}): Promise<LocalMember> {
  const { mongod, folder, port, oplogMb } = settings;
  await mkdir(folder, { recursive: true });
  const logFile = join(folder, 'mongod.log');
  const args = [
    ...['--dbpath', folder, '--logpath', logFile, '--logappend', '--replSet', NAME],
    ...['--bind_ip', '127.0.0.1', '--port', String(port), '--nounixsocket', '--quiet', '--noscripting'],
    ...['--wiredTigerCacheSizeGB', '0.25', '--oplogSize', String(oplogMb)],
    // A checkpoint a second: what is older than the last one may be forgotten.
    ...['--syncdelay', '1'],
    ...['diagnosticDataCollectionEnabled=false', 'enableTestCommands=1'].flatMap((one) => ['--setParameter', one]),
    // A member whose source of the log freezes looks for another one after two seconds, not after ten.
    ...['--setParameter', 'oplogNetworkTimeoutBufferSeconds=1'],
  ];
  let child: ChildProcess;
  const start = () => {
    child = spawn(mongod.file, args, { stdio: 'ignore', ...libraryEnvironment(mongod.libraryFolder) });
  };
  const isUp = () => child.exitCode === null && child.signalCode === null;
  start();
  const member: LocalMember = {
    ...{ port, start, isUp },
    async kill() {
      if (!isUp()) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    freeze: () => freezeProcess(Number(child.pid)),
    thaw: () => void child.kill('SIGCONT'),
    command: (command) => runOn(port, command),
    async stepDown() {
      await runOn(port, { replSetStepDown: 5, secondaryCatchUpPeriodSecs: 4 });
    },
  };
  await until(
    async () => {
      if (!isUp()) throw new Error(`mongod ended: ${(await readFile(logFile, 'utf8')).slice(-2_000)}`);
      return await member.command({ ping: 1 }).catch(() => null);
    },
    'a member to answer',
    READY_MS,
    50,
  );
  return member;
}

async function runOn(port: number, command: Document): Promise<Document> {
  const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`, {
    ...{ serverSelectionTimeoutMS: ANSWER_MS, connectTimeoutMS: ANSWER_MS, socketTimeoutMS: 10 * ANSWER_MS },
    ...{ heartbeatFrequencyMS: 500, maxPoolSize: 1 },
  });
  try {
    return await client.db('admin').command(command);
  } finally {
    await client.close();
  }
}

async function initiate([first, ...others]: readonly LocalMember[]): Promise<void> {
  if (first === undefined) return;
  const members = [first, ...others].map(({ port }, _id) => ({ _id, host: `127.0.0.1:${port}` }));
  const settings = { electionTimeoutMillis: FIRST_ELECTION_MS, heartbeatIntervalMillis: 500 };
  await first.command({ replSetInitiate: { _id: NAME, members, settings } });
}

/** Only afterwards: the first election waits for as long as any other. */
async function changeElections(primary: Member, electionMs: number): Promise<void> {
  const { config } = await primary.command({ replSetGetConfig: 1 });
  const settings = { ...config.settings, electionTimeoutMillis: electionMs };
  await primary.command({ replSetReconfig: { ...config, version: config.version + 1, settings } });
}

function createSet(members: readonly LocalMember[]): Omit<ReplicaSet, 'stop'> {
  /** In which election it became the primary that it thinks it is; '' for one that is none. */
  const electionOf = async (member: LocalMember): Promise<string> => {
    const said = member.isUp() ? await member.command({ hello: 1 }).catch(() => null) : null;
    return said?.isWritablePrimary ? String(said.electionId) : '';
  };
  const primary = async (): Promise<Member> => {
    let found: Member | undefined;
    await until(
      async () => {
        const elections = await Promise.all(members.map(electionOf));
        // One that was frozen does not know yet that another one was elected.
        const last = elections.toSorted().at(-1) ?? '';
        found = last === '' ? undefined : members[elections.indexOf(last)];
        return found;
      },
      'a primary',
      READY_MS,
      50,
    );
    return found as Member;
  };
  return {
    members,
    uri: (database) =>
      `mongodb://${members.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${database}?replicaSet=${NAME}`,
    primary,
    async whole() {
      await until(
        async () => {
          const status = await (await primary()).command({ replSetGetStatus: 1 }).catch(() => null);
          const states = (status?.members ?? []).map(({ stateStr }: Document) => stateStr).sort();
          return states.length === members.length && states.join() === wholeStates(members.length);
        },
        'the set to be whole',
        READY_MS,
        50,
      );
    },
  };
}

const wholeStates = (count: number): string => ['PRIMARY', ...Array(count - 1).fill('SECONDARY')].join();
