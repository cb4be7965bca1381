/** nginx as docker-compose.yml runs it, with the same script and configuration, before instances of a test. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestService } from './fixture.js';
import { findFreePort } from './ports.js';
import { until } from './until.js';

export const HAS_NGINX = (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, 'nginx')));
if (!HAS_NGINX) process.stderr.write('nginx is not installed: the tests of the balancer are left out\n');

// Debian has it in a package of its own; nginx's image has it built in.
const STREAM_MODULE = '/usr/lib/nginx/modules/ngx_stream_module.so';
export const HAS_STREAMS = HAS_NGINX && existsSync(STREAM_MODULE);

export interface Balancer {
  readonly url: string;
  readonly tlsPort: number;
  readonly mqttUrl: string;
  /** The folder in which it runs: its temporary files are in `run`. */
  readonly folder: string;
  said(): string;
  /** Sends SIGTERM; resolves with the exit code, null after a signal. */
  end(): Promise<number | null>;
  stop(): Promise<void>;
}

export interface BalancerOptions {
  /** Variables of its environment beside the usual ones. */
  readonly env?: Record<string, string>;
  /** Fills the folder of its secrets; by default with a certificate. */
  readonly prepare?: (secrets: string) => void;
}

/** Puts a new certificate and its key into the folder. */
export function certify(secrets: string, name = 'vigil.example'): void {
  const subject = ['-subj', `/CN=${name}`, '-days', '1', '-newkey', 'rsa:2048', '-nodes'];
  const files = ['-keyout', join(secrets, 'key.pem'), '-out', join(secrets, 'cert.pem')];
  execFileSync('openssl', ['req', '-x509', ...subject, ...files], { stdio: 'ignore' });
}

/** Starts it, and resolves when an instance answers through it. Tries other ports if another program took one meanwhile. */
export async function startBalancer(
  instances: readonly TestService[],
  options: BalancerOptions = {},
  triesLeft = 3,
): Promise<Balancer> {
  const { env = {}, prepare = certify } = options;
  const folder = await mkdtemp(join(tmpdir(), 'vigil-proxy-'));
  // nginx's workers are another user where the tests are run by root.
  await chmod(folder, 0o755);
  for (const name of ['run', 'secrets']) await mkdir(join(folder, name));
  prepare(join(folder, 'secrets'));
  const port = await findFreePort();
  const tlsPort = await findFreePort();
  const mqtt = await findFreePort();
  const proxy = run(folder, instances, { ...portsIn({ port, tlsPort, mqtt }), ...env });
  let said = '';
  proxy.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const ended = once(proxy, 'exit').then(([code]) => code as number | null);
  const end = (): Promise<number | null> => {
    proxy.kill('SIGTERM');
    return ended;
  };
  const url = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${url}/api/v1`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(async () => proxy.exitCode !== null || (await answers()), 'the balancer answers, or has ended');
  if (proxy.exitCode !== null) {
    console.warn(`the balancer ended: ${said}`);
    await rm(folder, { recursive: true, force: true });
    if (triesLeft === 1) throw new Error(said);
    return startBalancer(instances, options, triesLeft - 1);
  }
  return {
    url,
    tlsPort,
    mqttUrl: `mqtt://127.0.0.1:${mqtt}`,
    folder,
    said: () => said,
    end,
    async stop() {
      // It writes into the folder until it ends.
      await end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const portsIn = ({ port, tlsPort, mqtt }: { port: number; tlsPort: number; mqtt: number }) => ({
  HTTP_LISTEN: `127.0.0.1:${port}`,
  HTTPS_LISTEN: `127.0.0.1:${tlsPort}`,
  ...(HAS_STREAMS && { MQTT_LISTEN: `127.0.0.1:${mqtt}`, MQTT_PROXY: '1' }),
});

function run(folder: string, instances: readonly TestService[], env: Record<string, string>): ChildProcess {
  const mqttPeer = new URL(instances[0]?.service.mqttUrl ?? '').port;
  const peers = instances.map(({ url }) => new URL(url).host).join(' ');
  return spawn('sh', ['scripts/ops/proxy.sh'], {
    env: {
      PATH: process.env.PATH,
      PEERS: peers,
      RUN_DIR: join(folder, 'run'),
      SECRETS_DIR: join(folder, 'secrets'),
      LOOK_EVERY: '0.1',
      STOP_GRACE_S: '0',
      MQTT_PEERS_PORT: mqttPeer,
      ...env,
    },
  });
}
