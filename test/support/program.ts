/** A program as a process of its own: its output and its exit code. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { keepOnFailure } from './failure-logs.js';
import { until } from './until.js';

export interface Program {
  readonly child: ChildProcess;
  /** Its output so far, on both channels. */
  output(): string;
  /** Resolves with its exit code when it has ended and its output is complete; null after a signal. */
  readonly ended: Promise<number | null>;
  /** Sends a signal and waits until it has ended. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** The arguments of Node.js that run the service, as in production. */
export const SERVICE: readonly string[] = JSON.parse(readFileSync('package.json', 'utf8'))
  .scripts.start.split(' ')
  .slice(1);

/** The same, with a module that is loaded before the service. */
export function serviceWith(module: string): string[] {
  return ['--import', `./${module}`, ...SERVICE];
}

/** Starts a program, Node.js by default; `env` is its complete environment. */
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
    child,
    ended,
    output: () => output,
    end(signal) {
      child.kill(signal);
      return ended;
    },
  };
}

/** Waits for the first group of the pattern in the output of a program; throws the output if the program ends without it. */
export async function waitForOutput(program: Program, pattern: RegExp, timeoutMs = 60_000): Promise<string> {
  const find = () => pattern.exec(program.output())?.[1];
  await until(() => find() !== undefined || program.child.exitCode !== null, `output like ${pattern}`, timeoutMs);
  // The last output may arrive after the end of the process.
  if (find() === undefined) await program.ended;
  const found = find();
  if (found === undefined) throw new Error(`the program ended: ${program.output()}`);
  return found;
}
