/** Starts an installation on an engine of its own, once for all tests, or prints why it cannot. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { logIn } from '../../support/api-call.js';
import { until } from '../../support/until.js';
import { type Engine, startEngine } from './engine.js';
import { IMAGES, importImages } from './images.js';
import { HAS_IPV6 } from './outside.js';
import { findPackages } from './packages.js';
import { read } from './read.js';
import { type Container, prepareStack, type Stack } from './stack.js';

/** How long a test waits for containers on a busy machine. */
export const CONTAINER_TIMEOUT_MS = 480_000;
const NETWORK_FAULT = /ECONN|ETIMEDOUT|EAI_AGAIN|ENOTFOUND|ERR_SOCKET|E5\d\d|network|integrity/i;

export interface Docker {
  readonly engine: Engine;
  readonly stack: Stack;
  readonly url: string;
  readonly tlsUrl: string;
  readonly mqttUrl: string;
  readonly grafanaUrl: string;
  /** Of a tracker. */
  readonly trackerPort: number;
}

/** Prepares the engine, the images and the files; null, with a line that gives the reason, if one of them cannot be had. */
export async function prepareDocker(): Promise<Docker | null> {
  let engine: Engine | null = null;
  try {
    const packages = await findPackages();
    engine = await startEngine(packages);
    await importImages(engine, packages);
    await assertFeatures(engine);
    const stack = await prepareStack(engine);
    await stack.configure({});
    await assertBuildable(stack);
    const at = async (scheme: string, port: number) => `${scheme}://127.0.0.1:${await engine?.forward(port)}`;
    return {
      engine,
      stack,
      url: await at('http', 8080),
      tlsUrl: await at('https', 8443),
      mqttUrl: await at('mqtt', 1883),
      grafanaUrl: await at('http', 3000),
      trackerPort: await engine.forward(5027),
    };
  } catch (error) {
    await engine?.stop();
    process.stderr.write(`No containers here, their tests are left out: ${(error as Error).message}\n`);
    return null;
  }
}

/** The features of the engine and its kernel that the compose file uses: bridges, also for IPv6, published ports, limits. */
async function assertFeatures({ docker }: Engine): Promise<void> {
  const network = 'features';
  await docker('network', 'create', ...(HAS_IPV6 ? ['--ipv6', '--subnet', 'fd76::/64'] : []), network);
  const bounds = ['--memory=64m', '--pids-limit=50', '--cap-drop=ALL', '--read-only', '--init', '--tmpfs=/tmp'];
  const ports = ['--publish=127.0.0.1:9999:9999', '--security-opt=no-new-privileges:true'];
  await docker('run', '--rm', `--network=${network}`, ...bounds, ...ports, IMAGES.node, 'node', '--version');
  await docker('network', 'rm', network);
}

/** Packages that cannot be fetched skip the tests; a Dockerfile that fails does not. */
async function assertBuildable(stack: Stack): Promise<void> {
  const { code, stdout, stderr } = await stack.shell('timeout 600 docker compose --progress plain build');
  if (code !== 0 && (code === 124 || NETWORK_FAULT.test(stdout + stderr)))
    throw new Error(`packages cannot be fetched: ${(stdout + stderr).slice(-500)}`);
}

/** Waits until the service has this number of containers, and all are healthy. */
export async function waitForHealthy({ stack }: Docker, service: string, count = 1): Promise<Container[]> {
  let found: Container[] = [];
  const areHealthy = async () => {
    found = await stack.containersOf(service);
    return found.length === count && found.every(({ state, health }) => state === 'running' && health === 'healthy');
  };
  await until(areHealthy, `${count} of ${service} healthy`, CONTAINER_TIMEOUT_MS, 300);
  return found;
}

/** Waits until an instance answers through the proxy. */
export async function waitForAnswers({ url }: Docker): Promise<void> {
  await read(url, null, 'objects');
}

/** Kills the first process of a container as the kernel does when memory is short, and waits until it runs again. */
export async function killContainer(docker: Docker, service: string, at = 0): Promise<void> {
  const containers = await docker.stack.containersOf(service);
  const { id, processId } = containers[at] as Container;
  // The init process forwards signals and cannot be killed from within the container.
  await docker.engine.inside('kill', '-9', String(processId));
  const isBack = async () => {
    const now = (await docker.stack.containersOf(service)).find((container) => container.id === id);
    return now !== undefined && now.processId !== processId && now.health === 'healthy';
  };
  await until(isBack, `${service} is back`, CONTAINER_TIMEOUT_MS, 300);
}

/** The first administrator, as README says to find the password. */
export async function logInAsAdmin({ stack, url }: Docker): Promise<{ password: string; token: string }> {
  const password = await stack.sh('docker compose exec -T app cat /secrets/admin-password');
  return { password, token: await logIn(url, { login: 'admin', password }) };
}

/** A certificate and its key in the installation's folder. */
export function certifyInto(folder: string, name: string, files = { cert: 'cert.pem', key: 'key.pem' }): void {
  const subject = ['-subj', `/CN=${name}`, '-days', '1', '-newkey', 'rsa:2048', '-nodes'];
  const paths = ['-keyout', join(folder, files.key), '-out', join(folder, files.cert)];
  execFileSync('openssl', ['req', '-x509', ...subject, ...paths], { stdio: 'ignore' });
}
