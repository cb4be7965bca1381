/** The service as a process of its own, as an operator runs it. */
import type { ChildProcess } from 'node:child_process';
import { SERVICE, startProgram } from './program.js';
import { until } from './until.js';

export interface Process {
  readonly url: string;
  readonly opsUrl: string;
  readonly child: ChildProcess;
  /** Its output, on both channels. */
  said(): string;
  /** Asks it to end; the exit code, and how long it took. */
  stop(): Promise<{ code: number | null; ms: number }>;
}

/** Starts the compiled service and waits until it is ready; `env` names PORT, OPS_PORT, MONGODB_URI and what else it needs. */
export async function startProcess(env: Record<string, string>): Promise<Process> {
  // On a busy machine the process is late without being overloaded.
  const given = { PATH: '', LOG_FORMAT: 'json', LOG_LEVEL: 'warn', MQTT_PORT: '', OVERLOAD_DELAY: '0', ...env };
  const { child, output, ended } = startProgram(SERVICE, given);
  const opsUrl = `http://127.0.0.1:${env.OPS_PORT}`;
  const isReady = () =>
    fetch(`${opsUrl}/ready`).then(
      ({ ok }) => ok || child.exitCode !== null,
      () => child.exitCode !== null,
    );
  await until(isReady, 'the process to be ready');
  if (child.exitCode !== null) throw new Error(`it ended: ${output()}`);
  return {
    url: `http://127.0.0.1:${env.PORT}`,
    opsUrl,
    child,
    said: output,
    async stop() {
      const startMs = performance.now();
      child.kill('SIGTERM');
      const code = await ended;
      return { code, ms: performance.now() - startMs };
    },
  };
}
