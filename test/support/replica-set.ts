/** A replica set of real mongods on this machine that can be hurt: its primary steps down, dies, freezes; members stay away. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Document } from 'mongodb';
import { type LocalMongod, startLocalMongod } from './local-mongod.js';
import { until } from './until.js';

const NAME = 'faults';
const READY_MS = 60_000;
const FIRST_ELECTION_MS = 2_000;

export interface Member extends LocalMongod {
  /** Hands over, when it is the primary, as for maintenance. */
  stepDown(): Promise<void>;
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
  /** How long a primary may be silent, or see no majority, before it steps down. */
  readonly electionMs?: number;
}

/** Starts the set and returns when it is whole. */
export async function startReplicaSet({
  members: count = 3,
  oplogMb = 256,
  electionMs = FIRST_ELECTION_MS,
}: ReplicaSetOptions = {}): Promise<ReplicaSet> {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-set-'));
  const members: Member[] = [];
  for (let at = 0; at < count; at++) members.push(await startMember(join(folder, String(at)), oplogMb));
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

async function startMember(folder: string, oplogMb: number): Promise<Member> {
  const mongod = await startLocalMongod(folder, [
    ...['--replSet', NAME, '--oplogSize', String(oplogMb)],
    // A checkpoint a second: what is older than the last one may be forgotten.
    ...['--syncdelay', '1', '--setParameter', 'enableTestCommands=1'],
    // A member whose source of the log freezes looks for another one after two seconds, not after ten.
    ...['--setParameter', 'oplogNetworkTimeoutBufferSeconds=1'],
  ]);
  const stepDown = async () => void (await mongod.command({ replSetStepDown: 5, secondaryCatchUpPeriodSecs: 4 }));
  return Object.assign(mongod, { stepDown });
}

async function initiate([first, ...others]: readonly Member[]): Promise<void> {
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

function createSet(members: readonly Member[]): Omit<ReplicaSet, 'stop'> {
  /** In which election it became the primary that it thinks it is; '' for one that is none. */
  const electionOf = async (member: Member): Promise<string> => {
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
