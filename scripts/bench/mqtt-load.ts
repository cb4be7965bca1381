// The devices of the MQTT measurement, in a process of their own: raw sockets that publish with QoS 1 and count what is
// acknowledged. Its parent sends the job; it answers with the results.
import { connect, type Socket } from 'node:net';
import { percentile } from './stats.js';

export interface MqttJob {
  readonly host: string;
  readonly port: number;
  readonly devices: number;
  readonly username: string;
  readonly password: string;
}

/** `perSecond` null: each device keeps `window` messages unacknowledged. */
export interface MqttPhase {
  readonly seconds: number;
  readonly perSecond: number | null;
  readonly window: number;
}

export interface MqttResult {
  readonly acknowledged: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

export type ToMqttLoad = { job: MqttJob } | { phase: MqttPhase };
export type FromMqttLoad = 'ready' | { result: MqttResult } | { failed: string };

interface Device {
  readonly socket: Socket;
  readonly sentMs: Float64Array;
  nextId: number;
  underWay: number;
  onAcknowledged: (ms: number) => void;
}

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
};

function packet(first: number, body: Buffer): Buffer {
  const length: number[] = [];
  for (let rest = body.length; ; rest >>= 7) {
    length.push(rest < 128 ? rest : (rest & 127) | 128);
    if (rest < 128) break;
  }
  return Buffer.concat([Buffer.from([first, ...length]), body]);
}

const connectPacket = (clientId: string, { username, password }: MqttJob): Buffer =>
  packet(
    0x10,
    Buffer.concat([text('MQTT'), Buffer.from([4, 0xc2, 0, 60]), text(clientId), text(username), text(password)]),
  );

function publishPacket(id: number, n: number): Buffer {
  const payload = JSON.stringify({
    lat: 52.5201 + n / 1e6,
    lon: 13.4049,
    height: 34,
    angle: n % 360,
    speed: 41.5,
    fuel: 60.2,
    ignition: true,
    satellites: 9,
    voltage: 12.6,
    number: n,
  });
  return packet(0x32, Buffer.concat([text('base/state'), Buffer.from([id >> 8, id & 255]), Buffer.from(payload)]));
}

function openDevice(job: MqttJob, at: number): Promise<Device> {
  const socket = connect(job.port, job.host).setNoDelay(true);
  const device: Device = {
    socket,
    sentMs: new Float64Array(65_536),
    nextId: 1,
    underWay: 0,
    onAcknowledged: () => undefined,
  };
  let rest: Buffer = Buffer.alloc(0);
  return new Promise((resolve, reject) => {
    socket.once('error', reject).once('close', () => reject(new Error('a connection was closed')));
    socket.write(connectPacket(`bench-${at}`, job));
    socket.on('data', (data: Buffer) => {
      const bytes = rest.length === 0 ? data : Buffer.concat([rest, data]);
      // Only CONNACK and PUBACK arrive, of four bytes each.
      const whole = bytes.length - (bytes.length % 4);
      for (let offset = 0; offset < whole; offset += 4) {
        if (bytes[offset] === 0x40) {
          device.underWay--;
          device.onAcknowledged(performance.now() - (device.sentMs[bytes.readUInt16BE(offset + 2)] ?? 0));
        } else if (bytes[offset] === 0x20 && bytes[offset + 3] === 0) resolve(device);
        else reject(new Error(`CONNACK ${bytes[offset + 3]}`));
      }
      rest = bytes.subarray(whole);
    });
  });
}

let sent = 0;

function publish(device: Device, dueMs: number): void {
  const id = device.nextId;
  device.nextId = (id % 65_535) + 1;
  device.sentMs[id] = dueMs;
  device.underWay++;
  device.socket.write(publishPacket(id, sent++));
}

/** Publishes as fast as messages are acknowledged, or at a fixed rate; latencies then count from the time when a message was due. */
async function run(devices: readonly Device[], { seconds, perSecond, window }: MqttPhase): Promise<MqttResult> {
  const latencies: number[] = [];
  const startMs = performance.now();
  const endMs = startMs + seconds * 1_000;
  for (const device of devices) {
    device.onAcknowledged = (ms) => {
      latencies.push(ms);
      if (perSecond === null && performance.now() < endMs) publish(device, performance.now());
    };
  }
  if (perSecond === null) {
    for (const device of devices) for (let at = 0; at < window; at++) publish(device, performance.now());
  }
  for (let due = 0; performance.now() < endMs; ) {
    if (perSecond !== null) {
      for (; startMs + (due * 1_000) / perSecond <= performance.now(); due++) {
        publish(devices[due % devices.length] as Device, startMs + (due * 1_000) / perSecond);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, perSecond === null ? 50 : 1));
  }
  const acknowledged = latencies.length;
  const elapsedS = (performance.now() - startMs) / 1_000;
  while (devices.some(({ underWay }) => underWay > 0)) await new Promise((resolve) => setTimeout(resolve, 10));
  return {
    acknowledged,
    perSecond: acknowledged / elapsedS,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  };
}

const send = (message: FromMqttLoad): void => void process.send?.(message);
let devices: Device[] = [];
process.on('message', (message: ToMqttLoad) => {
  const work = async (): Promise<FromMqttLoad> => {
    if ('phase' in message) return { result: await run(devices, message.phase) };
    const { job } = message;
    devices = await Promise.all(Array.from({ length: job.devices }, (_, at) => openDevice(job, at)));
    return 'ready';
  };
  work().then(send, (error: Error) => send({ failed: error.message }));
});
process.on('disconnect', () => process.exit());
