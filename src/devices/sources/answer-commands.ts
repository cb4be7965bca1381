/** Commands that go out with the answers to devices: each answer has its own, which wait again if it does not go out. */
import { ObjectId } from 'mongodb';
import type { StoredCommand } from '../../commands/command-store.js';
import { type CommandAnswer, type PassedOn, returnFromAnswer, takeForAnswer } from '../../commands/network-store.js';
import { LIMITS } from '../../core/limits.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../../platform/mongo/driver/errors.js';
import { createRetryQueue } from '../presence/retry-queue.js';

export interface AnswerCommandDeps {
  readonly database: Database;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface AnswerCommands {
  /** Takes the commands that wait for these devices. Throws 503: then none of them is taken. */
  take(to: readonly PassedOn[]): Promise<TakenCommands>;
  /** Commands that were to be returned, and are not, stay `sent`. */
  stop(): Promise<void>;
}

export interface TakenCommands {
  readonly commands: readonly StoredCommand[];
  /** The answer did not go out: they wait again. */
  returnAll(): void;
}

export function createAnswerCommands({ database, log, now }: AnswerCommandDeps): AnswerCommands {
  const returns = createRetryQueue<string>({
    run: async (answerIds) => {
      await returnFromAnswer(database, answerIds);
      return null;
    },
    onFailure: ({ err, waiting: answers }) =>
      log.warn({ err, answers }, 'failed to return commands whose answer did not go out; retrying'),
  });
  const takeAll = async (to: readonly PassedOn[], answer: CommandAnswer): Promise<StoredCommand[]> => {
    const commands: StoredCommand[] = [];
    for (const one of to) commands.push(...(await takeForAnswer(database, one, answer, now())));
    return commands;
  };
  return {
    async take(to) {
      const answerId = new ObjectId().toHexString();
      const returnAll = (): void => returns.add(answerId);
      const givenUp = new AbortController();
      const taking = takeAll(to, { answerId, most: LIMITS.sourceCommandsPerAnswer, signal: givenUp.signal });
      try {
        return { commands: await mapDriverErrors(() => taking, LIMITS.databaseOperationMs), returnAll };
      } catch (error) {
        givenUp.abort();
        // The database may take one only now. Returned before that, it would stay `sent`.
        void taking.catch(() => undefined).then(returnAll);
        throw error;
      }
    },
    stop: returns.stop,
  };
}
