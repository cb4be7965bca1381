/** Messages on topics that nobody may publish to: they are acknowledged and recorded, and block none of those behind them. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { CONNECT, CONNECT5, connectRaw, createObject, PUBLISH, type RawDevice } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

// Notices are stored at once.
Object.assign(LIMITS, { auditDelayMs: 1 });

const service = useService();
const raws: RawDevice[] = [];
let count = 0;

afterEach(() => {
  for (const raw of raws.splice(0)) raw.socket.destroy();
});

async function connect(version: 4 | 5): Promise<RawDevice & { id: string; objectId: string }> {
  const id = `topics-${++count}`;
  const objectId = await createObject(service.admin, id);
  const raw = await connectRaw(service.service.mqttUrl as string, version);
  raws.push(raw);
  raw.send(version === 5 ? CONNECT5(id) : CONNECT(id));
  await until(() => raw.received.length > 0, 'CONNACK');
  return { ...raw, id, objectId };
}

const BOTH: (4 | 5)[] = [4, 5];
const LEVELS: (1 | 2)[] = [1, 2];

describe.each(BOTH)('of MQTT level %i', (version) => {
  describe.each(LEVELS)('with QoS %i', (qos) => {
    test.each<[name: string, topic: string]>([
      ['a wildcard', '#'],
      ['a wildcard as the last level', 'base/state/#'],
      ['a wildcard as a level', 'base/+/door'],
      ['a wildcard in a level', 'base/state/a+b'],
      ['no character', ''],
      ['a NUL', 'base/state/a\0b'],
      ['a topic of the broker', '$SYS/uptime'],
      ['a shared subscription', '$share/a/base/state'],
      ['no parameter', 'base/state/'],
      ['empty levels', '//'],
      ['a name of JavaScript', 'base/state/__proto__'],
      ['such a name in a path', 'base/state/a.__proto__.b'],
      ['a long name', `base/state/${'x'.repeat(60_000)}`],
    ])('are acknowledged and recorded, and the next message is stored: %s', async (_, topic) => {
      const raw = await connect(version);
      raw.send(
        PUBLISH(topic, '1', { qos, messageId: 1 }),
        PUBLISH('base/state', '{"n":7}', { messageId: 2 }),
        PUBLISH(topic, '1', { qos, messageId: 3, dup: true }),
        PUBLISH('base/state', '{"n":8}', { messageId: 4 }),
      );
      await until(() => raw.received.length === 5, 'four acknowledgements');
      const refused = qos === 2 ? 'pubrec' : 'puback';
      expect(raw.received.slice(1).map(({ cmd, messageId }) => [cmd, messageId])).toEqual([
        [refused, 1],
        ['puback', 2],
        [refused, 3],
        ['puback', 4],
      ]);
      if (version === 5)
        expect(raw.received[1]).toMatchObject({ reasonCode: expect.any(Number), properties: expect.anything() });
      const { body: packets } = await service.admin('GET', `objects/${raw.id}/packets`);
      expect(packets.flatMap(({ n }: { n?: number }) => n ?? [])).toEqual([7, 8]);
      const reason = { via: 'mqtt', topic: expect.any(String), reason: expect.any(String) };
      await until(
        async () => (await service.admin('GET', `objects/${raw.id}/refused`)).body.length === 2,
        'both refusals at the object',
      );
      expect((await service.admin('GET', `objects/${raw.id}/refused`)).body).toMatchObject([reason, reason]);
      const notices = `audit?where.entity=${raw.objectId}&where.action=${encodeURIComponent('message refused')}`;
      await until(async () => (await service.admin('GET', notices)).body.length === 1, 'the notice');
    });
  });

  test('end the connection with QoS 0, since they are not sent again', async () => {
    const raw = await connect(version);
    raw.send(PUBLISH('base/state/#', '1', { qos: 0, messageId: undefined }));
    await raw.closed;
    expect((await service.admin('GET', `objects/${raw.id}/refused`)).body).toEqual([]);
  });
});

test('refuses a message whose answers nobody could receive, and stores the next one', async () => {
  const raw = await connect(5);
  raw.send(
    PUBLISH('base/state', '{"n":1}', { properties: { responseTopic: 'answers/#' } }),
    PUBLISH('base/state', '{"n":2}', { messageId: 2 }),
  );
  await until(() => raw.received.length === 3, 'two acknowledgements');
  expect(raw.received.slice(1)).toMatchObject([{ messageId: 1, reasonCode: 0x90 }, { messageId: 2 }]);
  const { body } = await service.admin('GET', `objects/${raw.id}/packets`);
  expect(body.flatMap(({ n }: { n?: number }) => n ?? [])).toEqual([2]);
});

test.each<[name: string, topic: string, properties: object]>([
  ['whose answers nobody could receive', 'base/state/n', { responseTopic: 'answers/#' }],
  ['on a topic with a wildcard', 'base/state/+', {}],
])('keeps the topic alias of a refused message %s: the device goes on with it', async (_, topic, properties) => {
  const raw = await connect(5);
  raw.send(
    PUBLISH(topic, '1', { messageId: 1, properties: { topicAlias: 3, ...properties } }),
    PUBLISH('', '2', { messageId: 2, properties: { topicAlias: 3 } }),
    PUBLISH('base/state', '{"m":3}', { messageId: 3 }),
  );
  await until(() => raw.received.length === 4, 'three acknowledgements');
  const isValid = topic === 'base/state/n';
  expect(raw.received.slice(1)).toEqual([
    expect.objectContaining({ cmd: 'puback', messageId: 1, reasonCode: 0x90 }),
    expect.objectContaining({ cmd: 'puback', messageId: 2, reasonCode: isValid ? 0 : 0x90 }),
    expect.objectContaining({ cmd: 'puback', messageId: 3, reasonCode: 0 }),
  ]);
  const { body } = await service.admin('GET', `objects/${raw.id}/packets`);
  expect(body.flatMap(({ n, m }: { n?: number; m?: number }) => n ?? m ?? [])).toEqual(isValid ? [2, 3] : [3]);
});
