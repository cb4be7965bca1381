/** A program of ours as a process of its own: what it wrote, and how it ended. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { keepOnFailure } from './failure-logs.js';
import { until } from './until.js';

export interface Program {
  readonly child: ChildProcess;
  /** What it wrote so far, on both channels. */
  output(): string;
  /** Resolves with its exit code when it has ended and everything it wrote is here; null after a signal. */
  readonly ended: Promise<number | null>;
  /** Ends it by a signal, unless it has ended, and waits for that. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** What Node.js is given to run the service, as in production. */
export const SERVICE: readonly string[] = JSON.parse(readFileSync('package.json', 'utf8'))
  .scripts.start.split(' ')
  .slice(1);

/** Starts a program, Node.js unless another one is named; `env` is its whole environment. */
export function startProgram(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  command: string = process.execPath,
): Program {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  keepOnFailure('program', () => output);
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return {
    ...{ child, ended, output: () => output },
    end(signal) {
      child.kill(signal);
      return ended;
    },
  };
}

/** The first group of the pattern in what the program writes; throws what it wrote instead when it ends without. */
export async function waitForOutput(program: Program, pattern: RegExp, timeoutMs = 25_000): Promise<string> {
  const find = () => pattern.exec(program.output())?.[1];
  await until(() => find() !== undefined || program.child.exitCode !== null, `output like ${pattern}`, timeoutMs, 20);
  // When it has ended, what it wrote last may not be here yet.
  if (find() === undefined) await program.ended;
  const found = find();
  if (found === undefined) throw new Error(`the program ended: ${program.output()}`);
  return found;
}
