/** What a migration is: a step from one version of what is stored to the next. */
import type { Database } from '../connect.js';

export interface Migration {
  /** Its file's: the number of the version that it leads to, and what it does. */
  readonly name: string;
  /**
   * Does it, in steps that are each short. It may have been done in part, or wholly, by a process that was killed: what
   * was done is left as it is. It ends early where `lost` is aborted.
   */
  run(database: Database, lost: AbortSignal): Promise<void>;
}
