/** MQTT text that is not UTF-8 is neither a valid id nor a valid parameter. */
import { afterEach, expect, test } from '@jest/globals';
import { generate, type Packet } from 'mqtt-packet';
import { useService } from '../support/fixture.js';
import { AUTH, bytesOf, CONNECT, connectRaw, createObject, PUBLISH, type RawDevice } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const raws: RawDevice[] = [];
const PLACE = 'QQ';

afterEach(() => {
  for (const raw of raws.splice(0)) raw.socket.destroy();
});

async function open(): Promise<RawDevice> {
  const raw = await connectRaw(service.service.mqttUrl as string);
  raws.push(raw);
  return raw;
}

/** Sends packets with two bytes that are not UTF-8 in the place of two letters. */
function sendBroken(raw: RawDevice, bytes: Buffer): void {
  const at = bytes.indexOf(PLACE);
  expect(at).toBeGreaterThan(0);
  bytes.writeUInt16BE(0xfffe, at);
  raw.socket.write(bytes);
}

test('acknowledges a message with a topic or payload that is not UTF-8 without storing it', async () => {
  await createObject(service.admin, 'truck');
  const raw = await open();
  raw.send(CONNECT('truck'));
  await until(() => raw.received.length === 1);
  const broken = [
    PUBLISH(`base/state/${PLACE}`, '1', { messageId: 1 }),
    PUBLISH('base/state', `{"a":"${PLACE}"}`, { messageId: 2 }),
    PUBLISH('base/state', `{"${PLACE}":1}`, { messageId: 3 }),
    PUBLISH('base/state/a', PLACE, { messageId: 4 }),
  ];
  for (const packet of broken) sendBroken(raw, bytesOf(packet));
  raw.send(PUBLISH('base/state/n', '1', { messageId: 5 }));
  await until(() => raw.received.length === 6, 'five acknowledgements');
  const { body } = await service.admin('GET', 'objects/truck/packets');
  expect(body.flatMap(({ n, a }: { n?: number; a?: unknown }) => [n, a].filter((one) => one !== undefined))).toEqual([
    1,
  ]);
});

test('refuses a client id, user name or password that is not UTF-8', async () => {
  for (const [id, more] of [
    [`truck-${PLACE}`, {}],
    ['truck-1', { username: PLACE }],
    ['truck-1', { password: Buffer.from(PLACE) }],
  ] as const) {
    const auth = { username: 'username' in more ? '\ufffd\ufffd' : AUTH.username, password: AUTH.password };
    if ('password' in more) auth.password = '\ufffd\ufffd';
    const own = `${id.replace(PLACE, '\ufffd\ufffd')}`;
    await service.admin('POST', 'objects', { id: own, name: 'x' });
    await service.admin('PATCH', `objects/${encodeURIComponent(own)}`, { config: { auth } });
    const raw = await open();
    sendBroken(raw, bytesOf(CONNECT(id, more)));
    await until(() => raw.received.length === 1 || raw.isClosed());
    expect(raw.received.map((packet) => 'returnCode' in packet && packet.returnCode)).toEqual([4]);
  }
});

test.each([3, 4, 5] as const)(
  'refuses a filter that is not UTF-8 to a client of version %i of the protocol',
  async (version) => {
    const id = `subscriber-${version}`;
    await createObject(service.admin, id);
    const raw = await connectRaw(service.service.mqttUrl as string, version === 5 ? 5 : 4);
    raws.push(raw);
    const protocolId = version === 3 ? 'MQIsdp' : 'MQTT';
    raw.send({ ...CONNECT(id), protocolId, protocolVersion: version } as Packet);
    await until(() => raw.received.length === 1, 'CONNACK');
    const subscriptions = [{ topic: `base/commands/${PLACE}`, qos: 1 as const }];
    sendBroken(raw, generate({ cmd: 'subscribe', messageId: 1, subscriptions }, { protocolVersion: version }));
    await until(() => raw.received.length === 2, 'SUBACK');
    expect(raw.received[1]).toMatchObject({ cmd: 'suback', messageId: 1, granted: [version === 5 ? 0x8f : 0x80] });
  },
);
