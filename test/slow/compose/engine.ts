/**
 * A container engine of the test's own, in namespaces of its own: its bridges, rules and mounts are none of this machine's, and
 * nothing of it stays when it ends, however it ends.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { freemem, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { findFreePort } from '../../support/ports.js';
import { until } from '../../support/until.js';
import type { Packages } from './packages.js';

const run = promisify(execFile);
const HERE = 'test/slow/compose';
const START_TIMEOUT_MS = 60_000;
const END_TIMEOUT_MS = 30_000;
const MEMORY_NEEDED_BYTES = 8 * 1024 ** 3;
const DATA_SIZE = '5g';
const OUTPUT_BYTES = 64 * 1024 ** 2;

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Engine {
  /** Everything of this engine is below it. */
  readonly folder: string;
  /** The environment of a command line that speaks to this engine. */
  readonly env: NodeJS.ProcessEnv;
  /** What `docker` writes; throws where it fails. */
  docker(...args: string[]): Promise<string>;
  /** Runs a program in the engine's network, among its processes. */
  inside(...command: string[]): Promise<string>;
  /** The port of this machine that leads to a port of the engine's 127.0.0.1. */
  forward(port: number): Promise<number>;
  stop(): Promise<void>;
}

/** Starts an engine; throws why it cannot be. */
export async function startEngine(packages: Packages): Promise<Engine> {
  assertPossible();
  const folder = await mkdtemp(join(tmpdir(), 'vigil-engine-'));
  const cgroup = `/${folder.split('/').at(-1)}`;
  await prepareFolder(folder, cgroup, packages);
  const path = [...packages.programs, process.env.PATH, '/usr/sbin:/sbin'].join(':');
  // The first of them, so that it is the last to end.
  const children = [startCleaner(folder, cgroup)];
  const servers: Server[] = [];
  const stop = async (): Promise<void> => {
    for (const server of servers) server.close();
    for (const child of children.reverse()) await endOf(child);
  };
  try {
    const init = startInit(folder, path, packages);
    children.push(init);
    children.push(await startNetwork(init.pid as number, packages));
    const env = {
      PATH: path,
      HOME: folder,
      DOCKER_HOST: `unix://${folder}/docker.sock`,
      DOCKER_CONFIG: join(folder, 'config'),
    };
    const docker = (...args: string[]) =>
      run('docker', args, { env, maxBuffer: OUTPUT_BYTES }).then(({ stdout }) => stdout.trim());
    await waitForEngine(folder, init, docker);
    const enter = enterArguments(init.pid as number);
    return {
      folder,
      env,
      docker,
      stop,
      inside: async (...command) =>
        (await run('nsenter', [...enter, ...command], { env: { ...env }, maxBuffer: OUTPUT_BYTES })).stdout.trim(),
      async forward(port) {
        const relay = await startRelay(folder, port, enter);
        children.push(relay.child);
        servers.push(relay.server);
        return relay.port;
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function assertPossible(): void {
  if (process.platform !== 'linux') throw new Error('containers need Linux');
  if (process.getuid?.() !== 0) throw new Error('an engine is started by root');
  const folders = ['/usr/bin', '/bin', '/usr/sbin', '/sbin'];
  for (const program of ['unshare', 'nsenter', 'mount'])
    if (!folders.some((folder) => existsSync(join(folder, program)))) throw new Error(`there is no ${program}`);
}

async function prepareFolder(folder: string, cgroup: string, { composePlugin }: Packages): Promise<void> {
  for (const name of ['data', 'exec', 'ports', 'config/cli-plugins'])
    await mkdir(join(folder, name), { recursive: true });
  await symlink(composePlugin, join(folder, 'config/cli-plugins/docker-compose'));
  const settings = {
    'data-root': join(folder, 'data'),
    'exec-root': join(folder, 'exec'),
    pidfile: join(folder, 'dockerd.pid'),
    hosts: [`unix://${folder}/docker.sock`],
    'cgroup-parent': cgroup,
    // What README asks of engines before 27.
    experimental: true,
    ip6tables: true,
    'storage-driver': 'overlay2',
  };
  await writeFile(join(folder, 'daemon.json'), JSON.stringify(settings));
}

/** Removes what is left in the file system when the others have ended; beyond the reach of a Ctrl-C. */
function startCleaner(folder: string, cgroup: string): ChildProcess {
  const stdio = ['pipe', 'ignore', 'ignore'] as const;
  return spawn('sh', [resolve(HERE, 'cleaner.sh'), folder, cgroup], { stdio: [...stdio], detached: true });
}

function startInit(folder: string, path: string, { libraries }: Packages): ChildProcess {
  const own = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const size = freemem() > MEMORY_NEEDED_BYTES ? DATA_SIZE : '0';
  const env = { PATH: path, LD_LIBRARY_PATH: libraries, XTABLES_LIBDIR: join(libraries, 'xtables') };
  return spawn('unshare', [...own, 'sh', resolve(HERE, 'namespace.sh'), folder, size], {
    env,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
}

/** The way out of the engine's network, for who fetches packages; this machine's own 127.0.0.1 is not reached by it. */
async function startNetwork(initId: number, { programs, libraries }: Packages): Promise<ChildProcess> {
  const ownNetwork = await readNetwork('self');
  await until(async () => (await readNetwork(initId)) !== ownNetwork, 'the engine has a network of its own');
  const program = programs.map((name) => join(name, 'slirp4netns')).find(existsSync) as string;
  const network = ['--netns-type=path', `/proc/${initId}/ns/net`, 'tap0'];
  const options = ['--configure', '--mtu=65520', '--disable-host-loopback', '--exit-fd=3', '--ready-fd=4'];
  const child = spawn(program, [...options, ...network], {
    env: { LD_LIBRARY_PATH: libraries },
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  });
  let isReady = false;
  child.stdio[4]?.once('data', () => {
    isReady = true;
  });
  await until(() => isReady || child.exitCode !== null, 'the network is ready');
  if (!isReady) throw new Error('slirp4netns does not run here');
  return child;
}

const readNetwork = async (id: number | 'self'): Promise<string> =>
  (await run('readlink', [`/proc/${id}/ns/net`]).catch(() => ({ stdout: '' }))).stdout;

async function waitForEngine(
  folder: string,
  init: ChildProcess,
  docker: (...args: string[]) => Promise<string>,
): Promise<void> {
  const answers = () =>
    docker('info').then(
      () => true,
      () => init.exitCode !== null,
    );
  try {
    await until(answers, 'the engine answers', START_TIMEOUT_MS, 200);
    if (init.exitCode !== null) throw new Error('it ended');
  } catch (error) {
    const log = await readFile(join(folder, 'dockerd.log'), 'utf8').catch(() => '');
    throw new Error(`dockerd does not start here: ${(error as Error).message}: ${log.slice(-500)}`);
  }
}

/** The arguments of nsenter: a process in there, whose ids are the engine's. */
const enterArguments = (initId: number): string[] => [
  `--net=/proc/${initId}/ns/net`,
  `--mount=/proc/${initId}/ns/mnt`,
  `--pid=/proc/${initId}/ns/pid_for_children`,
  '--',
];

async function startRelay(
  folder: string,
  port: number,
  enter: readonly string[],
): Promise<{ child: ChildProcess; server: Server; port: number }> {
  const script = resolve(HERE, 'relay.mjs');
  const ports = join(folder, 'ports');
  const child = spawn('nsenter', [...enter, process.execPath, script, ports, String(port)], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const path = join(ports, `${port}.sock`);
  await until(() => existsSync(path), `port ${port} is passed on`);
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const target = connect({ path, allowHalfOpen: true });
    client.on('error', () => target.destroy()).on('close', () => target.destroySoon());
    target.on('error', () => client.destroy()).on('close', () => client.destroySoon());
    client.pipe(target).pipe(client);
  });
  const ownPort = await findFreePort();
  await new Promise<void>((done) => {
    server.listen(ownPort, '127.0.0.1', done);
  });
  return { child, server, port: ownPort };
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => {
    child.once('exit', done);
  });
  for (const stream of child.stdio) stream?.destroy();
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), END_TIMEOUT_MS);
  await ended;
  clearTimeout(timer);
}
