/** The files of an installation in a folder of their own, as an operator has them, and the commands that README gives. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Program, startProgram } from '../../support/program.js';
import type { Engine, Outcome } from './engine.js';
import { IMAGES, readFileLimit } from './images.js';

/** What the image is built from, as .dockerignore lists it. */
const BUILD_CONTEXT = [...readFileSync('.dockerignore', 'utf8').matchAll(/^!(.+)$/gm)].map(
  ([, name]) => name as string,
);
const PARTS = ['Dockerfile', '.dockerignore', ...BUILD_CONTEXT];
const COMPOSE_FILES = ['docker-compose.yml', 'docker-compose.replicas.yml'];
const OVERLAY = 'stand-ins.json';
const WANTED_FILES = 64_000;
const OUTPUT_BYTES = 64 * 1024 ** 2;

export interface Stack {
  readonly folder: string;
  /** Writes `.env`: nothing else is set than what is given here. */
  configure(settings: Record<string, string>): Promise<void>;
  /** A line of a shell, in the folder. */
  shell(line: string): Promise<Outcome>;
  /** The same, of which the success is taken for granted: throws what it wrote where it fails. */
  sh(line: string): Promise<string>;
  /** The same, while other things happen. */
  start(line: string): Program;
  /** The containers of a service, in order. */
  containersOf(service: string): Promise<Container[]>;
}

export interface Container {
  readonly id: string;
  readonly state: string;
  /** As the engine sees it; '' for one that has no check. */
  readonly health: string;
  /** Of its first process, in the engine's namespace. */
  readonly processId: number;
  readonly startedAt: string;
}

/** The files of the repository that an installation needs, with an overlay that names the stand-ins. */
export async function prepareStack(engine: Engine): Promise<Stack> {
  const folder = join(engine.folder, 'installation');
  await mkdir(folder);
  for (const name of [...PARTS, ...COMPOSE_FILES, SET_LIMITS]) await cp(name, join(folder, name), { recursive: true });
  const files = Math.min(await readFileLimit(), WANTED_FILES);
  const env = engine.env;
  const shell = (line: string) =>
    new Promise<Outcome>((done) => {
      execFile('sh', ['-c', line], { cwd: folder, env, maxBuffer: OUTPUT_BYTES }, (error, stdout, stderr) => {
        done({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
      });
    });
  const sh = async (line: string) => {
    const { code, stdout, stderr } = await shell(line);
    if (code !== 0) throw new Error(`${line}: exit code ${code}\n${stdout}${stderr}${await whyUnhealthy(stderr)}`);
    return stdout.trim();
  };
  /** The last checks and log lines of the container that a message of compose calls unhealthy. */
  const whyUnhealthy = async (message: string) => {
    const name = /container (\S+) is unhealthy/.exec(message)?.[1];
    if (name === undefined) return '';
    const checks = await shell(`docker inspect -f '{{json .State.Health}}' ${name}`);
    const logs = await shell(`docker logs --tail 30 ${name}`);
    return `\n${checks.stdout}${logs.stdout}${logs.stderr}`;
  };
  return {
    folder,
    shell,
    sh,
    async configure({ COMPOSE_FILE = 'docker-compose.yml', ...settings }) {
      const services = COMPOSE_FILE.includes('replicas') ? REPLICAS : [];
      await writeFile(join(folder, OVERLAY), JSON.stringify(makeOverlay(files, services)));
      const lines = Object.entries({ ...settings, COMPOSE_FILE: `${COMPOSE_FILE}:${OVERLAY}` });
      await writeFile(join(folder, '.env'), lines.map(([name, value]) => `${name}=${value}\n`).join(''));
    },
    start: (line) => startProgram(['-c', `cd '${folder}' && ${line}`], env, 'sh'),
    async containersOf(service) {
      const ids = (await sh(`docker compose ps -aq ${service}`)).split('\n').filter(Boolean);
      if (ids.length === 0) return [];
      const found = JSON.parse(await engine.docker('inspect', ...ids));
      return found.map(toContainer).sort((one: Container, other: Container) => one.id.localeCompare(other.id));
    },
  };
}

const PATIENT_RETRIES = 20;
const PATIENT_TIMEOUT = '60s';
const SET_LIMITS = 'test/support/set-limits.mjs';
const WAIT_MS = 30_000;
/** As in tests without containers (environment.mjs): otherwise a service on a busy machine may answer that its database is away. */
const PATIENT_LIMITS = {
  databaseConnectMs: WAIT_MS,
  databaseSelectionMs: WAIT_MS,
  databaseAnswerMs: WAIT_MS,
  databaseOperationMs: WAIT_MS,
  mqttConnectMs: WAIT_MS,
};
const REPLICAS = ['mongo2', 'mongo3'];

// biome-ignore lint/suspicious/noExplicitAny: what `docker inspect` writes
const toContainer = ({ Id, State }: any): Container => ({
  id: Id,
  state: State.Status,
  health: State.Health?.Status ?? '',
  processId: State.Pid,
  startedAt: State.StartedAt,
});

function makeOverlay(files: number, replicas: readonly string[]): object {
  const ulimits = { nofile: files };
  // That the machine is busy with other tests is not what these test: compose gives up at the first container that is unhealthy.
  const healthcheck = { retries: PATIENT_RETRIES, timeout: PATIENT_TIMEOUT };
  const mongo = { image: IMAGES.mongo, ulimits, healthcheck };
  const environment = {
    OVERLOAD_DELAY: '0',
    NODE_OPTIONS: `--import=/app/${SET_LIMITS}`,
    TEST_LIMITS: JSON.stringify(PATIENT_LIMITS),
  };
  const volumes = [`./${SET_LIMITS}:/app/${SET_LIMITS}:ro`];
  return {
    services: {
      secrets: { build: { args: { NODE_IMAGE: IMAGES.node } } },
      app: { ulimits, healthcheck, environment, volumes },
      mongo,
      ...Object.fromEntries(replicas.map((name) => [name, mongo])),
      proxy: { image: IMAGES.nginx, ulimits, healthcheck },
      prometheus: { image: IMAGES.prometheus, ulimits },
      // Without the program that installs plugins: the entry point of the compose file starts the rest all the same.
      grafana: { image: IMAGES.grafana, command: ['node', '/stand-ins/grafana.mjs'] },
      traccar: { image: IMAGES.traccar, ulimits },
    },
  };
}
