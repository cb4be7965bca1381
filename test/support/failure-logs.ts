/** Logs to keep when a test of this file fails (environment.mjs). */

export interface FailureLog {
  /** The name of the file: letters, digits and hyphens. */
  readonly title: string;
  /** The whole log so far. */
  readonly read: () => string | Promise<string>;
}

const { failureLogs } = globalThis as unknown as { failureLogs?: FailureLog[] };

/** Keeps this log, as far as it has been written, with each test of this file that fails from now on. */
export function keepOnFailure(title: string, read: FailureLog['read']): void {
  failureLogs?.push({ title, read });
}
