/** Commands of the service that the database holds back until a test has done something meanwhile: `failCommand` of MongoDB's own tests. */
import type { Member } from './replica-set.js';

const HELD_MS = 10 * 60_000;
const ENTERED_MS = 60_000;

export interface HeldCommands {
  /** Resolves when so many are held back. */
  entered(times?: number): Promise<void>;
  /** Ends those that are held back, which then fail, and holds back no others. */
  end(): Promise<void>;
}

export interface Holding {
  readonly command: 'find' | 'getMore' | 'insert' | 'update' | 'delete' | 'commitTransaction';
  readonly database: string;
  /** Of all commands but `commitTransaction`, which has none. */
  readonly collection?: string;
  /** Which of them: the next one by default. */
  readonly mode?: { times: number } | { skip: number };
  /** They continue by themselves after this time. */
  readonly heldMs?: number;
}

/** Holds back commands that the service sends to this member from now on. */
export async function holdCommands(
  member: Member,
  { command, database, collection, mode = { times: 1 }, heldMs = HELD_MS }: Holding,
): Promise<HeldCommands> {
  const namespace = collection === undefined ? {} : { namespace: `${database}.${collection}` };
  const about = { failCommands: [command], appName: 'vigil', ...namespace };
  const data = { ...about, blockConnection: true, blockTimeMS: heldMs };
  const { count } = await member.command({ configureFailPoint: 'failCommand', mode, data });
  return {
    async entered(times = 1) {
      await member.command({ waitForFailPoint: 'failCommand', timesEntered: count + times, maxTimeMS: ENTERED_MS });
    },
    async end() {
      // They have no `ns` yet.
      const name = command === 'getMore' ? 'collection' : command;
      const ofCollection = { 'command.$db': database, [`command.${name}`]: collection };
      const held = {
        ...(collection === undefined ? { [`command.${name}`]: { $exists: true } } : ofCollection),
        appName: 'vigil',
      };
      // Unlike the command `currentOp`, it shows large commands whole.
      const pipeline = [{ $currentOp: {} }, { $match: held }];
      const { cursor } = await member.command({ aggregate: 1, pipeline, cursor: {} });
      // While one is held back, the fail point cannot be switched off.
      for (const { opid } of cursor.firstBatch) await member.command({ killOp: 1, op: opid });
      await member.command({ configureFailPoint: 'failCommand', mode: 'off' });
    },
  };
}
