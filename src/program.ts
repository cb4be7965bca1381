/** The frame of the programs that people run at a terminal: Ctrl-C, closed pipes, errors, and exit codes. */

/** An error that is shown as its message only. */
export class PlainError extends Error {}

/** Invalid arguments. */
export class UsageError extends PlainError {}

const STATUS_FAILED = 1;
const STATUS_USAGE = 2;
const STATUS_INTERRUPTED = 130;

/** Parses an option that is a number above 0. */
export function parsePositive(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!(value > 0 && value < Number.POSITIVE_INFINITY))
    throw new UsageError(`--${name}: ${text} is not a number above 0`);
  return value;
}

/** The message for the terminal. Only unexpected errors have a stack trace; a missing or malformed file is not one of them. */
export function explainError(error: unknown): string {
  const { code, message, stack } = error as NodeJS.ErrnoException;
  return error instanceof PlainError || /^E[A-Z]+$/.test(code ?? '') ? message : (stack ?? message);
}

/** Runs a program. Ctrl-C aborts its signal, a second one ends the process at once. */
export async function runProgram(
  run: (signal: AbortSignal) => Promise<void>,
  explain: (error: unknown) => string = explainError,
): Promise<void> {
  const stop = new AbortController();
  const onSignal = () => (stop.signal.aborted ? process.exit(STATUS_INTERRUPTED) : stop.abort());
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The reader (head, a pager) has closed the pipe.
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  try {
    await run(stop.signal);
  } catch (error) {
    if (!stop.signal.aborted) console.error(explain(error));
    process.exitCode = toStatus(error, stop.signal);
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

function toStatus(error: unknown, signal: AbortSignal): number {
  if (error instanceof UsageError) return STATUS_USAGE;
  return signal.aborted ? STATUS_INTERRUPTED : STATUS_FAILED;
}
