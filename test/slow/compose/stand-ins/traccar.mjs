/**
 * Instead of Traccar: takes its settings from its environment as Traccar does (`Config.java`), and forwards a line of a tracker as
 * `PositionForwarderJson`, `EventForwarderJson` and their retries do. A line is JSON: `{uniqueId, fixTime, latitude, longitude, speed}`.
 * It answers that it has the line, as protocols of trackers do.
 */
import { accessSync, constants, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

if (process.env.CONFIG_USE_ENVIRONMENT_VARIABLES !== 'true') throw new Error('the environment does not count');
const toVariable = (key) =>
  key
    .replaceAll('.', '_')
    .replaceAll(/\p{Lu}/gu, '_$&')
    .toUpperCase();
const setting = (key) => process.env[toVariable(key)] || null;
if (process.getuid?.() === 0) throw new Error('it runs as root');
for (const key of ['logger.console', 'database.registerUnknown', 'forward.retry.enable']) {
  if (setting(key) !== 'true') throw new Error(`${key}: expected true`);
}
const [, database] = /^jdbc:h2:(.+)$/.exec(setting('database.url'));
writeFileSync(`${database}.mv.db`, '');
accessSync('/tmp', constants.W_OK);

/** Whether it was taken. */
async function post(prefix, body) {
  if (setting(`${prefix}.type`) !== 'json') throw new Error(`${prefix}.type: expected json`);
  const lines = setting(`${prefix}.header`).split(/\r?\n/);
  const headers = lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]);
  const request = { method: 'POST', headers: [['Content-Type', 'application/json'], ...headers], redirect: 'manual' };
  const answer = await fetch(setting(`${prefix}.url`), { ...request, body: JSON.stringify(body) }).catch(() => null);
  process.stdout.write(`${prefix}: ${answer?.status ?? 'no answer'}\n`);
  return answer?.ok === true;
}

async function forward({ uniqueId, ...fix }) {
  const now = new Date().toISOString().replace('Z', '+00:00');
  const device = { id: 1, attributes: {}, groupId: 0, name: uniqueId, uniqueId, status: 'online', lastUpdate: now };
  const ids = { id: 1, attributes: {}, deviceId: 1 };
  await post('event.forward', { event: { ...ids, type: 'deviceOnline', eventTime: now, positionId: 0 }, device });
  const times = { serverTime: now, deviceTime: fix.fixTime };
  const rest = { protocol: 'teltonika', outdated: false, valid: true, altitude: 500, course: 90, accuracy: 0 };
  const position = { ...ids, ...times, ...rest, address: null, network: null, geofenceIds: null, ...fix };
  position.attributes = { batteryLevel: 87, ignition: true };
  let delayMs = Number(setting('forward.retry.delay') ?? 100);
  const retries = Number(setting('forward.retry.count') ?? 10);
  for (let retry = 0; !(await post('forward', { position, device })) && retry < retries; retry++) {
    await wait(delayMs);
    delayMs *= 2;
  }
}

createServer((socket) =>
  socket.on('data', (line) => {
    socket.end('taken');
    forward(JSON.parse(String(line)));
  }),
).listen(5027);
