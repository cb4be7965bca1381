/** A replica set of real mongods that a test can disturb: its primary steps down, dies or freezes, and members stay away. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Document } from 'mongodb';
import { MongoMemoryReplSet } from 'mongodb-memory-server-core';
import { controlMongod, createInstanceOptions, findProgram, type LocalMongod, MONGOD_ARGS } from './local-mongod.js';
import { until } from './until.js';

const NAME = 'faults';
const FIRST_ELECTION_MS = 2_000;

export interface Member extends LocalMongod {
  /** Makes the primary hand over to another member, as for maintenance. */
  stepDown(): Promise<void>;
}

export interface ReplicaSet {
  readonly members: readonly Member[];
  /** The address of all members and a database. */
  uri(database: string): string;
  /** The member that accepts writes, as soon as there is one. */
  primary(): Promise<Member>;
  /** Resolves when every member runs and follows one primary. */
  whole(): Promise<void>;
  stop(): Promise<void>;
}

export interface ReplicaSetOptions {
  readonly members?: number;
  /** A small oplog forgets changes soon. */
  readonly oplogMb?: number;
  /** The time after which members elect another primary, and after which a primary without a majority steps down. */
  readonly electionMs?: number;
}

/** Starts the members side by side, and returns when the set is whole. */
export async function startReplicaSet({
  members: count = 3,
  oplogMb = 256,
  electionMs = FIRST_ELECTION_MS,
}: ReplicaSetOptions = {}): Promise<ReplicaSet> {
  const folder = await mkdtemp(join(process.env.TEST_DATA_FOLDER as string, 'vigil-set-'));
  const createMemberOptions = async (_: unknown, at: number) => {
    const dbPath = join(folder, String(at));
    await mkdir(dbPath);
    return { ...(await createInstanceOptions()), dbPath };
  };
  const { binary, spawn } = await findProgram();
  const args = [
    ...MONGOD_ARGS,
    '--oplogSize',
    String(oplogMb),
    // A checkpoint each second: the oplog may forget what is older than the last one.
    '--syncdelay',
    '1',
    '--setParameter',
    'enableTestCommands=1',
    // A member whose sync source freezes looks for another one after two seconds instead of ten.
    '--setParameter',
    'oplogNetworkTimeoutBufferSeconds=1',
  ];
  const configSettings = { electionTimeoutMillis: FIRST_ELECTION_MS, heartbeatIntervalMillis: 500 };
  const servers = await MongoMemoryReplSet.create({
    binary,
    instanceOpts: await Promise.all(Array.from({ length: count }, createMemberOptions)),
    replSet: { name: NAME, storageEngine: 'wiredTiger', args, spawn, configSettings },
  });
  const members = servers.servers.map((server): Member => {
    const mongod = controlMongod(server);
    const stepDown = async () => void (await mongod.command({ replSetStepDown: 20, secondaryCatchUpPeriodSecs: 15 }));
    return Object.assign(mongod, { stepDown });
  });
  const set: ReplicaSet = {
    ...observe(members),
    uri: (database) => servers.getUri(database),
    async stop() {
      await Promise.all(members.map((member) => member.kill()));
      await servers.stop();
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
  try {
    await set.whole();
    if (electionMs !== FIRST_ELECTION_MS) await changeElections(await set.primary(), electionMs);
  } catch (error) {
    await set.stop();
    throw error;
  }
  return set;
}

/** Changes the time afterwards: the first election waits for as long as any other. */
async function changeElections(primary: Member, electionMs: number): Promise<void> {
  const { config } = await primary.command({ replSetGetConfig: 1 });
  const settings = { ...config.settings, electionTimeoutMillis: electionMs };
  await primary.command({ replSetReconfig: { ...config, version: config.version + 1, settings } });
}

function observe(members: readonly Member[]): Pick<ReplicaSet, 'members' | 'primary' | 'whole'> {
  /** The election in which the member became primary; '' for another member. */
  const electionOf = async (member: Member): Promise<string> => {
    const hello = member.isUp() ? await member.probe({ hello: 1 }).catch(() => null) : null;
    return hello?.isWritablePrimary ? String(hello.electionId) : '';
  };
  const primary = async (): Promise<Member> => {
    let found: Member | undefined;
    const isFound = async () => {
      const elections = await Promise.all(members.map(electionOf));
      // A member that was frozen does not know yet that another one was elected.
      const last = elections.toSorted().at(-1) ?? '';
      found = last === '' ? undefined : members[elections.indexOf(last)];
      return found;
    };
    await until(isFound, 'a primary', 60_000, 50);
    return found as Member;
  };
  const whole = ['PRIMARY', ...Array(members.length - 1).fill('SECONDARY')].join();
  return {
    members,
    primary,
    async whole() {
      const isWhole = async () => {
        const status = await (await primary()).probe({ replSetGetStatus: 1 }).catch(() => null);
        const states = (status?.members ?? []).map(({ stateStr }: Document) => stateStr).toSorted();
        return states.join() === whole;
      };
      await until(isWhole, 'the replica set to be whole', 60_000, 50);
    },
  };
}
