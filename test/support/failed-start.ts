/** The program as a person starts it, when the start fails: its output, its exit code, and whether the documentation lists the message. */
import { readCode, readSection, readTable } from './docs/markdown.js';
import { SERVICE, startProgram } from './program.js';

export interface FailedStart {
  readonly code: number | null;
  /** Its output on both channels. */
  readonly said: string;
}

/** Starts the service as a process of its own, with the program `before` it if given, and waits for its end. */
export async function startFailing(env: Record<string, string>, before: readonly string[] = []): Promise<FailedStart> {
  const command = [...before, process.execPath, ...SERVICE];
  const [program = '', ...args] = command;
  const { ended, output } = startProgram(args, { PATH: '', PORT: '0', MQTT_PORT: '0', ...env }, program);
  return { code: await ended, said: output().trim() };
}

/** Whether docs/operations/troubleshooting.md lists the message; `…` stands for the parts that differ. */
export function isListed(message: string): boolean {
  const rows = readTable(readSection('docs/operations/troubleshooting.md', 'Troubleshooting'));
  const shown = rows.flatMap(([cell]) => readCode(cell)).filter((text) => text.includes('…'));
  return shown.some((text) => {
    const [first = '', next = ''] = text.split('…');
    return message.startsWith(first.trim()) && message.includes(next.trim());
  });
}
