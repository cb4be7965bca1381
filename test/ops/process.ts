/** The service as a process of its own, as an operator runs it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { until } from '../until.js';

export interface Process {
  readonly url: string;
  readonly opsUrl: string;
  readonly child: ChildProcess;
  /** What it wrote, on both channels. */
  said(): string;
  /** Asks it to end; the exit code, and how long it took. */
  stop(): Promise<{ code: number | null; ms: number }>;
}

/** A port that nobody listens at now. */
export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts the compiled service and waits until it is ready; `env` names PORT, OPS_PORT, MONGODB_URI and what else it needs. */
export async function startProcess(env: Record<string, string>): Promise<Process> {
  const child = spawn(process.execPath, ['dist/src/main.js'], {
    env: { PATH: '', LOG_FORMAT: 'json', LOG_LEVEL: 'warn', MQTT_PORT: '', ...env },
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const ended = once(child, 'close');
  const opsUrl = `http://127.0.0.1:${env.OPS_PORT}`;
  const isReady = () =>
    fetch(`${opsUrl}/ready`).then(
      ({ ok }) => ok || child.exitCode !== null,
      () => child.exitCode !== null,
    );
  await until(isReady, 'the process is ready', 30_000);
  if (child.exitCode !== null) throw new Error(`it ended: ${said}`);
  return {
    ...{ url: `http://127.0.0.1:${env.PORT}`, opsUrl, child },
    said: () => said,
    async stop() {
      const startMs = performance.now();
      child.kill('SIGTERM');
      const [code] = await ended;
      return { code, ms: performance.now() - startMs };
    },
  };
}
