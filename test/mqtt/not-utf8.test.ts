/** MQTT text that is not UTF-8 is neither a valid id nor a valid parameter. */
import { afterEach, expect, test } from '@jest/globals';
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
