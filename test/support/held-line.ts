/** A connection to the database on which a test holds commands of one client back. */
import type { MongoClient } from 'mongodb';
import { startLine } from './lossy-connection.js';

export interface HeldCommand {
  /** Whether it was sent, and waits. */
  isReached: boolean;
  release(): void;
}

export interface HeldLine {
  readonly client: MongoClient;
  /** Holds back the next command that has these bytes. */
  hold(bytes: string): HeldCommand;
  /** Releases what is held back. */
  releaseAll(): void;
  stop(): Promise<void>;
}

export async function startHeldLine(uri: string): Promise<HeldLine> {
  const waiting = new Map<string, { command: HeldCommand; released: Promise<void> }>();
  const held: HeldCommand[] = [];
  const line = await startLine(uri, (asked) => {
    for (const [bytes, { command, released }] of waiting) {
      if (!asked.includes(bytes)) continue;
      waiting.delete(bytes);
      command.isReached = true;
      return released;
    }
    return 'passes';
  });
  const releaseAll = (): void => {
    for (const { release } of held) release();
  };
  return {
    client: line.client,
    releaseAll,
    hold(bytes) {
      const command: HeldCommand = { isReached: false, release: () => undefined };
      const released = new Promise<void>((resolve) => {
        command.release = resolve;
      });
      waiting.set(bytes, { command, released });
      held.push(command);
      return command;
    },
    async stop() {
      releaseAll();
      await line.stop();
    },
  };
}

/** The name of a command and of its collection, as the bytes of the command have them. */
export function commandOn(command: string, collection: string): string {
  const length = Buffer.alloc(4);
  length.writeInt32LE(collection.length + 1);
  return `${command}\0${length.toString('latin1')}${collection}\0`;
}
