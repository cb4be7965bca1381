/** The balancer during changes: renewed certificates, instances without a database, and another proxy in front of it. */
import { once } from 'node:events';
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { io } from 'socket.io-client';
import { type Balancer, type BalancerOptions, certify, HAS_NGINX, startBalancer } from '../support/balancer.js';
import { TEST_SECRET } from '../support/callers.js';
import { type Line, openLine } from '../support/cuttable-connection.js';
import { ADMIN, startTestService, type TestService, testUri } from '../support/fixture.js';
import { findFreePort } from '../support/ports.js';
import { SERVICE, startProgram, waitForOutput } from '../support/program.js';
import { until } from '../support/until.js';

let service: TestService;
let token: string;
const endings: (() => unknown)[] = [];

beforeAll(async () => {
  if (!HAS_NGINX) return;
  service = await startTestService({ env: { TRUST_PROXY: '1', MQTT_PROXY: '1' } }, testUri());
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
});
afterAll(() => service?.stop());
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function start(options: BalancerOptions = {}, instances = [service]): Promise<Balancer> {
  const balancer = await startBalancer(instances, options);
  endings.push(() => balancer.stop());
  return balancer;
}

const secretsOf = ({ folder }: Balancer): string => join(folder, 'secrets');
const peersOf = ({ folder }: Balancer): string => readFileSync(join(folder, 'run', 'peers.conf'), 'utf8');

/** The name in the balancer's certificate; null without TLS. */
function nameOf({ tlsPort }: Balancer): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connectTls({ port: tlsPort, host: '127.0.0.1', rejectUnauthorized: false });
    socket.setTimeout(60_000, () => socket.destroy());
    socket.on('error', () => undefined).on('close', () => resolve(null));
    socket.on('secureConnect', () => {
      resolve([socket.getPeerCertificate().subject.CN].flat()[0] ?? '');
      socket.destroy();
    });
  });
}

/** The whole answer to an EventSource. */
async function answerToEventSource(url: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('data', (text) => {
    answer += text;
    socket.end();
  });
  socket.write(
    `GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: ${token}\r\n\r\n`,
  );
  await once(socket, 'close');
  return answer;
}

(HAS_NGINX ? describe : describe.skip)('nginx', () => {
  test('uses a renewed certificate, and keeps connections open', async () => {
    const balancer = await start();
    const socket = io(balancer.url, { transports: ['websocket'], auth: { token }, forceNew: true });
    endings.push(() => socket.disconnect());
    const received: unknown[] = [];
    socket
      .on('object-packet', ({ speed }) => received.push(speed))
      .on('disconnect', () => received.push('disconnected'));
    await until(() => socket.connected, 'it is connected');
    expect(await nameOf(balancer)).toBe('vigil.example');
    certify(secretsOf(balancer), 'renewed.example');
    await until(async () => (await nameOf(balancer)) === 'renewed.example', 'the new certificate is shown');
    await service.admin('POST', 'objects/car/packets', { speed: 1 });
    await until(() => received.length > 0, 'the packet is received');
    expect(received).toEqual([1]);
  });

  test('keeps the old certificate while the new one and its key do not match', async () => {
    const balancer = await start();
    rmSync(join(secretsOf(balancer), 'key.pem'));
    const other = await start();
    copyFileSync(join(secretsOf(other), 'key.pem'), join(secretsOf(balancer), 'key.pem'));
    await until(() => /nginx keeps the old one/.test(balancer.said()), 'the message');
    expect(await nameOf(balancer)).toBe('vigil.example');
    certify(secretsOf(balancer), 'fixed.example');
    await until(async () => (await nameOf(balancer)) === 'fixed.example', 'the matching pair is used');
  });

  test('starts TLS when a certificate is added, and stops it when the certificate is removed', async () => {
    const balancer = await start({ prepare: () => undefined });
    expect(await nameOf(balancer)).toBe(null);
    certify(secretsOf(balancer));
    await until(async () => (await nameOf(balancer)) === 'vigil.example', 'TLS is on');
    for (const name of ['cert.pem', 'key.pem']) rmSync(join(secretsOf(balancer), name));
    await until(async () => (await nameOf(balancer)) === null, 'TLS is off');
    expect((await fetch(`${balancer.url}/api/v1`)).status).toBe(200);
  });

  test('starts without TLS if the key belongs to another certificate, and logs that', async () => {
    const prepare = (secrets: string): void => {
      certify(secrets);
      const key = readFileSync(join(secrets, 'key.pem'));
      certify(secrets);
      writeFileSync(join(secrets, 'key.pem'), key);
    };
    const balancer = await start({ prepare });
    expect((await fetch(`${balancer.url}/api/v1`)).status).toBe(200);
    await until(() => balancer.said().includes('TLS is off: the certificate or its key is invalid'), 'the message');
  });

  test('ends on SIGTERM while WebSockets are open', async () => {
    const balancer = await start({ env: { STOP_GRACE_S: '1' } });
    const socket = io(balancer.url, { transports: ['websocket'], auth: { token }, forceNew: true });
    endings.push(() => socket.disconnect());
    await until(() => socket.connected, 'it is connected');
    expect(await balancer.end()).toBe(0);
    expect(await nameOf(balancer)).toBe(null);
  });

  test('speaks HTTP/2 over TLS', async () => {
    const balancer = await start();
    const session = connectHttp2(`https://127.0.0.1:${balancer.tlsPort}`, { rejectUnauthorized: false });
    endings.push(() => session.destroy());
    const request = session.request({ ':path': '/api/v1/objects/car', authorization: `Bearer ${token}` });
    const [headers] = await once(request, 'response');
    let body = '';
    for await (const text of request.setEncoding('utf8')) body += text;
    expect([headers[':status'], JSON.parse(body).id]).toEqual([200, 'car']);
  });

  test('closes the connection of an EventSource without an answer when other requests get 503', async () => {
    const away = await startTestService({ env: { TRUST_PROXY: '1', MQTT_PROXY: '1' } }, testUri());
    endings.push(() => away.stop());
    const balancer = await start({}, [away]);
    await away.service.stop();
    expect((await fetch(`${balancer.url}/api/v1/objects`)).status).toBe(503);
    expect(await answerToEventSource(balancer.url)).toBe('');
  });

  test.each([
    ['of a proxy in PROXY_TRUST', '127.0.0.0/8 ::1', { address: '203.0.113.7', isSecure: true }],
    ['of no other client', '10.1.2.3', { address: '127.0.0.1', isSecure: false }],
  ])(
    'takes the address and scheme of a request from X-Forwarded headers: %s',
    async (_what, trusted, { address, isSecure }) => {
      const balancer = await start({ env: { PROXY_TRUST: trusted } });
      const headers = { 'X-Forwarded-For': '198.51.100.1, 203.0.113.7', 'X-Forwarded-Proto': 'https' };
      const body = JSON.stringify(ADMIN);
      const init = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body };
      const before = service.logLines.length;
      const cookie = (await fetch(`${balancer.url}/api/v1/auth`, init)).headers.get('set-cookie');
      expect(/; Secure/.test(cookie ?? '')).toBe(isSecure);
      const logins = () => service.logLines.slice(before).filter((line) => line.includes('"action":"login"'));
      await until(() => logins().length > 0, 'the login is in the log of security events');
      expect(JSON.parse(logins()[0] as string)).toMatchObject({ address });
    },
  );
});

(HAS_NGINX ? describe : describe.skip)('nginx before instances that report whether they are ready', () => {
  let lines: Line[];
  let instances: TestService[];

  beforeAll(async () => {
    const uri = testUri();
    const readyPort = await findFreePort();
    [lines, instances] = [[], []];
    for (const host of ['127.0.0.1', '127.0.0.2']) {
      const line = await openLine(uri);
      const env = { TRUST_PROXY: '1', MQTT_PROXY: '1', HOST: host, OPS_HOST: host, OPS_PORT: String(readyPort) };
      lines.push(line);
      instances.push(await startTestService({ env }, line.uri));
    }
  });
  afterAll(async () => {
    for (const line of lines) await line.mend();
    await instances[0]?.service.stop();
    await instances[0]?.client.close();
    await instances[1]?.stop();
    for (const line of lines) await line.cut();
  });

  const hostOf = (at: number): string => new URL(instances[at]?.url ?? '').host;

  test('stops sending requests to an instance that is about to end while it still answers', async () => {
    const readyPort = new URL(instances[0]?.service.opsUrl ?? '').port;
    const ending = startProgram(SERVICE, {
      PATH: '',
      HOST: '127.0.0.3',
      PORT: String(await findFreePort()),
      OPS_HOST: '127.0.0.3',
      OPS_PORT: readyPort,
      MQTT_PORT: '',
      MONGODB_URI: testUri(),
      SECRET: TEST_SECRET,
      ADMIN_PASSWORD: ADMIN.password,
      // It goes on answering for so long, which is the maximum.
      STOP_DELAY: '60s',
    });
    endings.push(() => ending.end('SIGKILL'));
    const url = await waitForOutput(ending, /running at (\S+)/);
    const { host } = new URL(url);
    const peers = [...instances.map((one) => new URL(one.url).host), host].join(' ');
    const balancer = await start({ env: { READY_PORT: readyPort, PEERS: peers } }, instances);
    const has = () => peersOf(balancer).includes(`server ${host} `);
    await until(has, 'the instance gets requests');
    ending.child.kill('SIGTERM');
    // Three looks would find one that is only late; it is in this list as long as it is.
    const isLate = () => readFileSync(join(balancer.folder, 'run', 'late'), 'utf8').includes(host);
    await until(() => !has() && !isLate(), 'the instance is left out');
    expect([(await fetch(`${url}/api/v1`)).status, ending.child.exitCode]).toEqual([200, null]);
  });

  test('sends nothing to an instance that is to be stopped until the file that names it is removed', async () => {
    const balancer = await start({}, instances);
    const has = (at: number) => peersOf(balancer).includes(`server ${hostOf(at)} `);
    expect([has(0), has(1)]).toEqual([true, true]);
    const leaving = join(balancer.folder, 'run', 'leaving');
    writeFileSync(leaving, `${hostOf(1)}\n`);
    await until(() => !has(1), 'the second is left out');
    expect(has(0)).toBe(true);
    writeFileSync(leaving, `${hostOf(0)}\n${hostOf(1)}\n`);
    await until(() => has(0) && has(1), 'both are back, because there is no other');
    writeFileSync(leaving, `${hostOf(1)}\n`);
    await until(() => !has(1), 'the second is left out again');
    rmSync(leaving);
    await until(() => has(1), 'the second is back');
  });

  test('leaves out an instance that lost its database while another one has it, and none if all lost it', async () => {
    const opsUrl = instances[0]?.service.opsUrl ?? '';
    const balancer = await start({ env: { READY_PORT: new URL(opsUrl).port } }, instances);
    const has = (at: number) => peersOf(balancer).includes(`server ${hostOf(at)} `);
    const hasBoth = (when: string) => until(() => has(0) && has(1), `both get requests ${when}`);
    await hasBoth('at first');
    await lines[1]?.cut();
    await until(() => has(0) && !has(1), 'the second is left out, and only that');
    await lines[1]?.mend();
    await hasBoth('when the second is back');
    for (const line of lines) await line.cut();
    const isReady = (at: number) => fetch(`${instances[at]?.service.opsUrl}/ready`).then(({ ok }) => ok);
    await until(async () => !(await isReady(0)) && !(await isReady(1)), 'none is ready');
    await hasBoth('while none is ready');
    for (const line of lines) await line.mend();
    await until(async () => (await isReady(0)) && (await isReady(1)), 'both are ready');
    await hasBoth('in the end');
  });
});

(HAS_NGINX ? describe : describe.skip)('nginx before servers that answer as instances do', () => {
  async function serve(host: string, port: number, answer: RequestListener): Promise<void> {
    const server = createServer(answer).listen(port, host);
    endings.push(() => {
      server.close();
      server.closeAllConnections();
    });
    await once(server, 'listening');
  }

  test('sends nothing to an instance that is starting when the only other one is late once', async () => {
    const readyPort = await findFreePort();
    const port = await findFreePort();
    const running = '127.0.0.5';
    const starting = '127.0.0.6';
    const late: number[] = [];
    let looks = 0;
    let asked = 0;
    await serve(running, port, (_req, res) => res.writeHead(200).end());
    await serve(running, readyPort, (_req, res) => {
      looks++;
      res.writeHead(late.shift() ?? 200).end();
    });
    await serve(starting, readyPort, (_req, res) => res.writeHead(503).end());
    await serve(starting, port, (_req, res) => {
      asked++;
      res.writeHead(503).end();
    });
    const peers = `${running}:${port} ${starting}:${port}`;
    const balancer = await start({ env: { READY_PORT: String(readyPort), PEERS: peers } });
    // On a busy machine, the first look may have found none ready.
    await until(() => !peersOf(balancer).includes(starting) && looks > 1, 'only the running one is used');
    late.push(503);
    asked = 0;
    const before = looks;
    const statuses = new Set<number>();
    await until(async () => {
      statuses.add((await fetch(balancer.url)).status);
      return looks > before + 4;
    }, 'looks after the late ones');
    expect([[...statuses], asked]).toEqual([[200], 0]);
  });
});
