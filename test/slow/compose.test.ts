/**
 * docker-compose.yml on a real container engine: start, scaling, kills, updates, backups and monitoring. Skipped with a message if no
 * engine can be started. The tests use one installation, in their order.
 */
import { appendFile, chown, mkdir, readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { io } from 'socket.io-client';
import { callApi } from '../support/api-call.js';
import { runTour } from '../support/docs/tour.js';
import { until } from '../support/until.js';
import {
  CONTAINER_TIMEOUT_MS,
  certifyInto,
  type Docker,
  killContainer,
  logInAsAdmin,
  prepareDocker,
  waitForAnswers,
  waitForHealthy,
} from './compose/installation.js';
import { type Kept, type Load, startLoad } from './compose/load.js';
import { HAS_IPV6, requestFromOutside } from './compose/outside.js';
import { read } from './compose/read.js';

const LOAD_BEFORE = 50;
const HANDBOOK = 'docs/operations/deploy.md';
const MONITORING = 'docs/operations/observability.md';

const docker = (await prepareDocker()) as Docker;
/** What is set from some test on. */
const base: Record<string, string> = HAS_IPV6 ? {} : { ENABLE_IPV6: 'false' };
const endings: (() => unknown)[] = [];
let token: string;
let password: string;

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

/** A command that deploy.md contains, with the placeholders that an operator fills in. */
async function documented(line: string, filled: Record<string, string> = {}): Promise<string> {
  expect(await readFile(HANDBOOK, 'utf8')).toContain(line);
  return Object.entries(filled).reduce((text, [name, value]) => text.replace(name, value), line);
}

const up = (settings: Record<string, string> = {}, options = '') =>
  docker.stack.configure({ ...base, ...settings }).then(() => docker.stack.sh(`docker compose up -d ${options} 2>&1`));

async function underLoad(change: (load: Load) => Promise<unknown>): Promise<Kept & { failures: string[] }> {
  const load = await startLoad({ url: docker.url, mqttUrl: docker.mqttUrl, token });
  const isWriting = () => load.acknowledged() > LOAD_BEFORE;
  let kept: Kept | null = null;
  try {
    await until(isWriting, 'packets are written', CONTAINER_TIMEOUT_MS);
    await change(load);
    await waitForAnswers(docker);
    const before = load.acknowledged();
    await until(() => load.acknowledged() > before + LOAD_BEFORE, 'packets are written again', CONTAINER_TIMEOUT_MS);
  } finally {
    kept = await load.stop();
  }
  return { ...kept, failures: load.failures };
}

const KEPT = { acknowledged: expect.any(Number), lost: 0, doubled: 0 };

/** The name in the certificate of the proxy; null without TLS. */
function nameOf(tlsUrl: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connectTls({ port: Number(new URL(tlsUrl).port), host: '127.0.0.1', rejectUnauthorized: false });
    socket.setTimeout(60_000, () => socket.destroy());
    socket.on('error', () => undefined).on('close', () => resolve(null));
    socket.on('secureConnect', () => {
      resolve([socket.getPeerCertificate().subject.CN].flat()[0] ?? '');
      socket.destroy();
    });
  });
}

(docker === null ? describe.skip : describe)('the compose file on a container engine', () => {
  beforeAll(async () => {
    await up();
    await waitForHealthy(docker, 'proxy');
    await waitForAnswers(docker);
    ({ password, token } = await logInAsAdmin(docker));
  });
  afterAll(() => docker.engine.stop());

  test('starts without preparation, runs the tour through the proxy, and creates no unnamed volume', async () => {
    const { given, shown, code, stderr } = await runTour('docs/tutorial.md', { url: docker.url, password });
    expect(given).toEqual(shown);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(
      (await docker.engine.docker('volume', 'ls', '-q')).split('\n').filter((name) => !/^vigil_/.test(name)),
    ).toEqual([]);
    for (const service of ['secrets', 'database'])
      expect(await docker.stack.containersOf(service)).toMatchObject([{ state: 'exited' }]);
  });

  test('scales to three instances while it answers, and keeps three', async () => {
    const { failures, ...kept } = await underLoad(async () => {
      await up({ APP_INSTANCES: '3' });
      await waitForHealthy(docker, 'app', 3);
      const peers = () => docker.stack.sh('docker compose exec -T proxy cat /tmp/peers.conf');
      await until(
        async () => (await peers()).match(/server/g)?.length === 3,
        'the proxy knows all',
        CONTAINER_TIMEOUT_MS,
        200,
      );
    });
    expect([kept, failures]).toEqual([KEPT, []]);
    await docker.stack.sh('docker compose up -d');
    expect(await docker.stack.containersOf('app')).toHaveLength(3);
  });

  test.each(['app', 'proxy', 'mongo'])(
    'keeps every acknowledged packet, once, when a container of %s is killed',
    async (service) => {
      const { failures: _, ...kept } = await underLoad(() => killContainer(docker, service));
      expect(kept).toEqual(KEPT);
    },
  );

  test('stops the proxy with exit code 0 while WebSockets are open', async () => {
    const socket = io(docker.url, { transports: ['websocket'], auth: { token }, forceNew: true });
    endings.push(() => socket.disconnect());
    await until(() => socket.connected, 'it is connected', CONTAINER_TIMEOUT_MS);
    await docker.stack.sh('docker compose stop proxy');
    const state = "docker inspect -f '{{.State.Status}} {{.State.ExitCode}}' $(docker compose ps -aq proxy)";
    expect(await docker.stack.sh(state)).toBe('exited 0');
    await docker.stack.sh('docker compose start proxy');
    await until(() => socket.connected, 'it is connected again', CONTAINER_TIMEOUT_MS);
  });

  test('serves TLS, uses a renewed certificate without an interruption, and refuses an invalid one', async () => {
    const { folder } = docker.stack;
    Object.assign(base, { TLS_CERT: join(folder, 'cert.pem'), TLS_KEY: join(folder, 'key.pem') });
    certifyInto(folder, 'first.example');
    await up();
    const shows = (name: string) =>
      until(async () => (await nameOf(docker.tlsUrl)) === name, `${name} is shown`, CONTAINER_TIMEOUT_MS, 100);
    await shows('first.example');
    const renew = await documented('docker compose run --rm --no-deps secrets');
    const { failures, ...kept } = await underLoad(async () => {
      certifyInto(folder, 'second.example');
      await docker.stack.sh(renew);
      await shows('second.example');
    });
    expect([kept, failures]).toEqual([KEPT, []]);
    certifyInto(folder, 'other.example', { cert: 'other.pem', key: 'key.pem' });
    expect(await docker.stack.shell(renew)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('TLS_CERT and TLS_KEY: the key belongs to another certificate'),
    });
    await docker.stack.configure({ ...base, TLS_CERT: join(folder, 'mistyped.pem') });
    expect((await docker.stack.shell('docker compose up -d')).code).not.toBe(0);
    expect(await readdir(folder)).not.toContain('mistyped.pem');
    expect(await nameOf(docker.tlsUrl)).toBe('second.example');
    expect((await read(docker.url, token, 'users')).status).toBe(200);
  });

  (HAS_IPV6 ? test : test.skip)(
    'passes the IPv4 and IPv6 addresses of clients on other machines to the service',
    async () => {
      const { folder } = docker.stack;
      certifyInto(folder, 'last.example');
      await up();
      await until(
        async () => (await nameOf(docker.tlsUrl)) === 'last.example',
        'TLS is spoken',
        CONTAINER_TIMEOUT_MS,
        100,
      );
      const path = '/api/v1/auth/token';
      const sent = await requestFromOutside(docker.engine, 8443, path, { login: 'admin', password });
      expect(sent.map(({ status }) => status)).toEqual([200, 200]);
      // The log is written with a delay.
      const areLogged = async () => {
        const log = await docker.stack.sh('docker compose logs --no-log-prefix app');
        return sent.every(({ address }) => log.includes(`"address":"${address}"`));
      };
      await until(areLogged, 'the addresses to be in the log', CONTAINER_TIMEOUT_MS, 300);
    },
  );

  test('updates while it answers, and replaces only the instances', async () => {
    await up();
    await waitForHealthy(docker, 'app');
    const others = async () => [
      ...(await docker.stack.containersOf('mongo')),
      ...(await docker.stack.containersOf('proxy')),
    ];
    const before = await others();
    const [old] = await docker.stack.containersOf('app');
    // Another image, of the same layers: compiling it again would take a minute, and shows nothing of the update.
    await appendFile(join(docker.stack.folder, 'Dockerfile'), '\nLABEL version=another\n');
    const script = await documented('scripts/ops/update.sh');
    const { failures, ...kept } = await underLoad(() => docker.stack.sh(script));
    expect([kept, failures]).toEqual([KEPT, []]);
    const [updated] = await waitForHealthy(docker, 'app');
    expect(updated?.id).not.toBe(old?.id);
    await docker.stack.sh('docker compose up -d');
    expect((await others()).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    expect((await docker.stack.containersOf('app')).map(({ id }) => id)).toEqual([updated?.id]);
  });

  test('restores a backup with the commands of deploy.md', async () => {
    const { folder, sh } = docker.stack;
    await mkdir(join(folder, 'backups'));
    await chown(join(folder, 'backups'), 1000, 1000);
    const run = 'docker compose run --rm --no-deps -v "$PWD/backups:/backups';
    await sh(await documented(`${run}" app node dist/scripts/backup.js --to /backups/{time}`));
    await callApi(docker.url, token, 'POST', 'objects', { id: 'later', name: 'Later' });
    await sh(await documented('docker compose stop app'));
    const [time = ''] = await readdir(join(folder, 'backups'));
    const restore = `${run}:ro" app node dist/scripts/restore.js --from /backups/<time> --replace`;
    await sh(await documented(restore, { '<time>': time }));
    await sh(await documented('docker compose start app'));
    await waitForHealthy(docker, 'app');
    await waitForAnswers(docker);
    expect((await read(docker.url, token, 'objects/later')).status).toBe(404);
    expect((await read(docker.url, token, 'objects/load-0')).status).toBe(200);
  });

  test('makes scheduled backups and shows metrics with the profiles backup and observe', async () => {
    await up({ COMPOSE_PROFILES: 'backup,observe' });
    const listed = () => docker.stack.sh('docker compose exec -T backup ls /backups');
    await until(async () => /^\d{4}-\S+\d$/.test(await listed()), 'the first backup', CONTAINER_TIMEOUT_MS, 300);
    const read = await documented('docker compose exec grafana cat /secrets/admin-password');
    const shown = await docker.stack.sh(read.replace('exec', 'exec -T'));
    // biome-ignore lint/suspicious/noExplicitAny: the answer of Grafana's stand-in
    let answered: any = null;
    const isUp = async () => {
      answered = await fetch(docker.grafanaUrl).then(
        (answer) => answer.json(),
        () => null,
      );
      return answered?.targets[0] === 'up';
    };
    await until(isUp, 'Prometheus asks the instance', CONTAINER_TIMEOUT_MS, 300);
    const titles = ['Vigil', 'Vigil: fleet', 'Vigil: object'];
    expect(answered).toEqual({ titles, password: shown, targets: ['up'] });
    const [store = ''] = /docker compose run .*sh -c \\\n.*vigil-token'/.exec(await readFile(MONITORING, 'utf8')) ?? [];
    await docker.stack.sh(`printf a.b.c | ${store}`);
    expect(await docker.stack.sh('docker compose exec -T grafana cat /secrets/vigil-token')).toBe('a.b.c');
    await up({}, '--remove-orphans');
  });

  test('stores what trackers send to Traccar with the profile traccar, which waits for Vigil, and reaches nothing else', async () => {
    const source = { id: 'traccar', name: 'Traccar', kind: 'traccar', register: true };
    const { key } = (await callApi(docker.url, token, 'POST', 'sources', source)).body;
    await up({ COMPOSE_PROFILES: 'traccar', TRACCAR_KEY: key });
    const logs = () => docker.stack.sh('docker compose logs --no-color traccar');
    const send = async (fixTime: string) => {
      const fix = { uniqueId: '860000000000001', fixTime, latitude: 48.1, longitude: 11.5, speed: 10 };
      await until(
        () =>
          new Promise<boolean>((done) => {
            let said = '';
            const socket = connect(docker.trackerPort, '127.0.0.1', () => socket.write(JSON.stringify(fix)));
            socket.on('data', (text) => {
              said += text;
            });
            // What passes connections on takes them also before Traccar listens, and closes them then.
            socket.on('error', () => undefined).on('close', () => done(said === 'taken'));
          }),
        'Traccar listens',
        CONTAINER_TIMEOUT_MS,
        300,
      );
    };
    const packets = async () => {
      const { status, body } = await read(docker.url, token, 'objects/860000000000001/packets');
      // biome-ignore lint/suspicious/noExplicitAny: packets
      return status === 200 ? (body as any[]).filter(({ lat }) => lat !== undefined) : [];
    };
    await send('2026-05-20T14:30:00.000+00:00');
    await until(async () => (await packets()).length === 1, 'the first fix', CONTAINER_TIMEOUT_MS, 300);
    expect(await packets()).toMatchObject([
      { time: Date.UTC(2026, 4, 20, 14, 30), lat: 48.1, lon: 11.5, speed: 18.52, battery: 87, protocol: 'teltonika' },
    ]);
    await until(async () => (await logs()).includes('event.forward: 200'), 'the event', CONTAINER_TIMEOUT_MS, 300);
    await docker.stack.sh('docker compose stop app');
    await send('2026-05-20T14:31:00.000+00:00');
    await until(async () => /forward: (?:50\d|no answer)/.test(await logs()), 'a retry', CONTAINER_TIMEOUT_MS, 300);
    await docker.stack.sh('docker compose start app');
    await until(async () => (await packets()).length === 2, 'the second fix', CONTAINER_TIMEOUT_MS, 300);
    const reach = (name: string, port: number) =>
      `docker compose exec -T traccar node -e "require('node:net').connect(${port},'${name}').on('error',()=>process.exit(9)).on('connect',()=>process.exit(0))"`;
    expect((await docker.stack.shell(reach('proxy', 8080))).code).toBe(0);
    expect((await docker.stack.shell(reach('app', 8080))).code).toBe(9);
    expect((await docker.stack.shell(reach('mongo', 27017))).code).toBe(9);
    expect(await docker.stack.shell('docker compose exec -T traccar touch /opt/x')).not.toMatchObject({ code: 0 });
    await up({}, '--remove-orphans');
  });

  test('keeps data and passwords after down and up', async () => {
    await docker.stack.sh('docker compose --profile "*" down');
    await docker.stack.sh('docker compose up -d');
    await waitForAnswers(docker);
    expect((await read(docker.url, token, 'objects/load-0')).status).toBe(200);
    expect((await logInAsAdmin(docker)).password).toBe(password);
  });

  test('extends MongoDB to three members, and keeps packets when the first one is killed', async () => {
    await up({ COMPOSE_FILE: 'docker-compose.yml:docker-compose.replicas.yml' });
    await waitForHealthy(docker, 'app');
    const { failures: _, ...kept } = await underLoad(() => killContainer(docker, 'mongo'));
    expect(kept).toEqual(KEPT);
  });
});
