/** A migration: the step from one schema version to the next. */
import type { Database } from '../../driver/client.js';

export interface Migration {
  /** The name of its file: the number of the version it leads to, and a description. */
  readonly name: string;
  /**
   * Migrates in short steps. A killed process may have applied some or all of them, so each step is idempotent. Ends early when
   * `lost` is aborted.
   */
  run(database: Database, lost: AbortSignal): Promise<void>;
}
