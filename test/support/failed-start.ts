/** The program as a person starts it, when the start fails: what it says, how it ends, and whether the documentation lists it. */
import { readCode, readSection, readTable } from './docs/markdown.js';
import { SERVICE, startProgram } from './program.js';

export interface FailedStart {
  readonly code: number | null;
  /** What it wrote, on both channels. */
  readonly said: string;
}

/** Starts the service as a process of its own, by a program that is put before it if there is one, and waits for its end. */
export async function startFailing(env: Record<string, string>, before: readonly string[] = []): Promise<FailedStart> {
  const [program = '', ...args] = [...before, process.execPath, ...SERVICE];
  const { ended, output } = startProgram(args, { PATH: '', PORT: '0', ...env }, program);
  return { code: await ended, said: output().trim() };
}

/** Whether a row of docs/operations/troubleshooting.md is like the message; `…` stands for what differs. */
export function isListed(message: string): boolean {
  const rows = readTable(readSection('docs/operations/troubleshooting.md', 'Troubleshooting'));
  const shown = rows.flatMap(([cell]) => readCode(cell)).filter((text) => text.includes('…'));
  return shown.some((text) => {
    const [first = '', next = ''] = text.split('…');
    return message.startsWith(first.trim()) && message.includes(next.trim());
  });
}
