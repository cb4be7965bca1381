/** Devices behind a balancer that sends their addresses with the PROXY protocol. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect as connectSocket, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { startTestService, type TestService, useService } from '../support/fixture.js';
import {
  bytesOf,
  CONNECT,
  connectDevice,
  connectRaw,
  createObject,
  PUBLISH,
  type RawDevice,
} from '../support/mqtt-device.js';
import { proxyHeader } from '../support/proxy-header.js';
import { until } from '../support/until.js';

const service = useService({ env: { MQTT_PROXY: '1' } });
const raws: RawDevice[] = [];
const LINE = Buffer.from('PROXY TCP4 192.0.2.7 198.51.100.1 56324 1883\r\n');

beforeAll(() => createObject(service.admin, 'truck'));

afterEach(() => {
  for (const { socket } of raws.splice(0)) socket.destroy();
});

async function send(...pieces: Buffer[]): Promise<RawDevice> {
  const raw = await connectRaw(service.service.mqttUrl as string);
  raws.push(raw);
  raw.socket.setNoDelay(true);
  for (const piece of pieces) {
    await new Promise((done) => raw.socket.write(piece, done));
    await new Promise(setImmediate);
  }
  return raw;
}

/** The return code of CONNACK, or the end of the connection. */
const codeOf = async (raw: RawDevice): Promise<unknown> => {
  await until(() => raw.received.length > 0 || raw.isClosed(), 'CONNACK, or the end');
  return (raw.received[0] as { returnCode?: number } | undefined)?.returnCode ?? 'closed';
};

/** The addresses from which a device was refused, as the log has them. */
const refusedFrom = (clientId: string): string[] =>
  service.logLines
    .map((line) => JSON.parse(line))
    .filter((line) => line.msg === 'device refused' && line.clientId === clientId)
    .map(({ address }) => address);

describe('behind a balancer', () => {
  test.each<[string, Buffer, string]>([
    ['version 1', LINE, '192.0.2.7'],
    ['version 2', proxyHeader({ source: '2001:db8:0:0:0:0:0:1', more: 40 }), '2001:db8:0:0:0:0:0:1'],
  ])('accepts a device, and logs the address of the header: %s', async (version, header, address) => {
    const publish = PUBLISH('base/state', '{"speed":1}');
    const whole = Buffer.concat([header, bytesOf(CONNECT('truck'), publish)]);
    for (const pieces of [[whole], [header, bytesOf(CONNECT('truck')), bytesOf(publish)]]) {
      const raw = await send(...pieces);
      await until(() => raw.received.length === 2, 'CONNACK and PUBACK');
      expect(raw.received.map(({ cmd }) => cmd)).toEqual(['connack', 'puback']);
    }
    const stranger = `stranger-${version}`;
    expect(await codeOf(await send(header, bytesOf(CONNECT(stranger))))).toBe(4);
    expect(refusedFrom(stranger)).toEqual([address]);
  });

  test('waits for a header that arrives byte by byte', async () => {
    const bytes = Buffer.concat([LINE, bytesOf(CONNECT('truck'))]);
    const raw = await send(...Array.from(bytes, (byte) => Buffer.from([byte])));
    expect(await codeOf(raw)).toBe(0);
  });

  test('closes a connection without a header, or with a malformed one', async () => {
    const connect = bytesOf(CONNECT('truck'));
    for (const start of ['', 'PROXY TCP4 1 2 3 4\r\n', `PROXY UNKNOWN ${'x'.repeat(200)}`, '\r\n']) {
      expect(await codeOf(await send(Buffer.concat([Buffer.from(start), connect])))).toBe('closed');
    }
  });

  test('closes a connection that sends nothing', async () => {
    const { mqttConnectMs } = LIMITS;
    Object.assign(LIMITS, { mqttConnectMs: 500 });
    const raw = await send();
    await until(() => raw.isClosed(), 'the end of the connection');
    Object.assign(LIMITS, { mqttConnectMs });
  });

  test('locks a /64 network of IPv6 after its failures, and no other network', async () => {
    const from = (host: number, network = 2) =>
      send(proxyHeader({ source: `2001:db8:1:${network}:0:0:0:${host.toString(16)}` }), bytesOf(CONNECT('guessed')));
    const codes = [];
    for (let at = 0; at < LIMITS.loginFailuresPerAccount; at++) codes.push(await codeOf(await from(at)));
    expect(codes).toEqual(Array(LIMITS.loginFailuresPerAccount).fill(4));
    expect(await codeOf(await from(99))).toBe('closed');
    expect(await codeOf(await from(1, 3))).toBe(4);
  });
});

const hasOpenssl = spawnSync('openssl', ['version']).error === undefined;
(hasOpenssl ? describe : describe.skip)('with TLS behind the header', () => {
  let folder: string;
  let secured: TestService;
  let balancer: Server;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'vigil-tls-'));
    const files = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')];
    const options = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost'.split(' ');
    const name = ['-addext', 'subjectAltName=IP:127.0.0.1'];
    expect(spawnSync('openssl', ['req', '-x509', ...options, ...files, ...name]).status).toBe(0);
    const env = { MQTT_PROXY: '1', MQTT_TLS_KEY: join(folder, 'key.pem'), MQTT_TLS_CERT: join(folder, 'cert.pem') };
    secured = await startTestService({ env });
    const port = Number(new URL(secured.service.mqttUrl as string).port);
    balancer = createServer((near) => {
      const far = connectSocket(port, '127.0.0.1');
      far.write(LINE);
      near.pipe(far).pipe(near);
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const)
        one.on('error', () => other.destroy());
    }).listen(0, '127.0.0.1');
  });

  afterAll(async () => {
    balancer?.close();
    await secured?.stop();
    await rm(folder, { recursive: true });
  });

  test.each([4, 5] as const)(
    'accepts a device over TLS, and logs its own address: version %i',
    async (protocolVersion) => {
      const id = `safe-${protocolVersion}`;
      await createObject(secured.admin, id);
      const url = `mqtts://127.0.0.1:${(balancer.address() as { port: number }).port}`;
      const ca = await readFile(join(folder, 'cert.pem'));
      const device = await connectDevice(url, id, { ca, protocolVersion });
      await device.publishAsync('base/state', '{"speed":1}', { qos: 1 });
      device.end(true);
      const unknown = `unknown-${protocolVersion}`;
      await expect(connectDevice(url, unknown, { ca, protocolVersion })).rejects.toThrow();
      const line = secured.logLines.find((text) => text.includes(unknown)) ?? '{}';
      expect(JSON.parse(line)).toMatchObject({ clientId: unknown, address: '192.0.2.7' });
    },
  );
});
