/** The listener for devices: over TLS, switched off, and with many connections at once. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { parseConfig } from '../../src/config.js';
import { startTestService, type TestService } from '../support/fixture.js';
import { storeFleet } from '../support/fleet.js';
import { AUTH, CONNECT, connectDevice, connectRaw, createObject, PUBLISH } from '../support/mqtt-device.js';
import { runsOf } from '../support/runs.js';
import { until } from '../support/until.js';

const STORM = runsOf(1_000);
const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function start(env: Record<string, string>): Promise<TestService> {
  const service = await startTestService({ env });
  endings.push(() => service.stop());
  return service;
}

const OPENSSL = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost'.split(
  ' ',
);
const hasOpenssl = spawnSync('openssl', ['version']).error === undefined;
if (!hasOpenssl) process.stderr.write('No openssl on this machine: the test of MQTT over TLS is skipped\n');

(hasOpenssl ? test : test.skip)('accepts only TLS where a certificate is set', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-tls-'));
  endings.push(() => rm(folder, { recursive: true }));
  const key = join(folder, 'key.pem');
  const cert = join(folder, 'cert.pem');
  const made = spawnSync('openssl', [
    ...OPENSSL,
    '-keyout',
    key,
    '-out',
    cert,
    '-addext',
    'subjectAltName=DNS:localhost,IP:127.0.0.1',
  ]);
  expect(made.status).toBe(0);
  const service = await start({ MQTT_TLS_KEY: key, MQTT_TLS_CERT: cert });
  const url = service.service.mqttUrl as string;
  expect(url).toMatch(/^mqtts:\/\/127\.0\.0\.1:\d+$/);
  await createObject(service.admin, 'safe');
  const device = await connectDevice(url, 'safe', { ca: await readFile(cert) });
  endings.push(() => device.end(true));
  await device.publishAsync('base/state', '{"speed":1}', { qos: 1 });
  expect((await service.admin('GET', 'objects/safe')).body.state.speed).toBe(1);
  // Clients verify the certificate, and the service answers nothing without TLS.
  await expect(connectDevice(url, 'safe')).rejects.toThrow('self-signed');
  const plain = await connectRaw(url.replace('mqtts', 'mqtt'));
  plain.send(CONNECT('safe'));
  await plain.closed;
  expect(plain.received).toEqual([]);
});

test('listens nowhere when the port is empty', async () => {
  const service = await start({ MQTT_PORT: '' });
  expect(service.service.mqttUrl).toBeNull();
});

test('refuses a key without its certificate, and listens on the host of HTTP by default', () => {
  expect(() => parseConfig({ MQTT_TLS_KEY: 'x' })).toThrow('MQTT_TLS_KEY, MQTT_TLS_CERT');
  expect(parseConfig({}).mqtt).toEqual({ port: 1_883, host: '127.0.0.1', tls: null });
  expect(parseConfig({ HOST: '0.0.0.0' }).mqtt?.host).toBe('0.0.0.0');
});

test(`accepts ${STORM} devices at once, and stores their packets`, async () => {
  const service = await start({});
  const ids = Array.from({ length: STORM }, (_, at) => `device-${at}`);
  await storeFleet(service.client.db(), STORM, () => ({ config: { auth: AUTH } }));
  const raws = await Promise.all(ids.map(() => connectRaw(service.service.mqttUrl as string)));
  endings.push(() => raws.map(({ socket }) => socket.destroy()));
  for (const [at, raw] of raws.entries()) raw.send(CONNECT(ids[at] as string), PUBLISH('base/state', `{"here":1}`));
  await until(() => raws.every(({ received }) => received.length === 2), 'CONNACK and PUBACK for each device');
  expect(raws.flatMap(({ received }) => received.map(({ cmd }) => cmd)).filter((cmd) => cmd === 'puback')).toHaveLength(
    STORM,
  );
  const { body } = await service.admin('GET', 'objects?only=state.here&limit=1000');
  expect(body.filter(({ state }: { state?: { here?: number } }) => state?.here === 1)).toHaveLength(STORM);
});
