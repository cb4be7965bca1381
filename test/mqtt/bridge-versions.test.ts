/** The bridge to a broker speaks MQTT 5 with a broker that does, and MQTT 3.1.1 with another one. */
import { afterEach, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { startTestService } from '../support/fixture.js';
import { type BrokerClient, type Of5, startTestBroker } from '../support/mqtt-broker.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, { brokerReconnectMs: 20 });

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

test.each<[Of5, number]>([
  ['speaks', 5],
  ['refuses', 4],
  ['closes', 4],
])('stores messages and sends commands through a broker that %s MQTT 5', async (of5, protocolVersion) => {
  const broker = await startTestBroker(of5);
  endings.push(() => broker.stop());
  const service = await startTestService({ env: { MQTT_URL: broker.url, MQTT_PORT: '', MQTT_CLIENT_ID: 'vigil' } });
  endings.push(() => service.stop());
  await until(() => broker.clients().length === LIMITS.brokerConnections, 'all connections of the service');
  const clients = broker.clients();
  // The broker queues messages while the service is away.
  const properties = protocolVersion === 5 ? { sessionExpiryInterval: 0xff_ff_ff_ff } : undefined;
  for (const { connect } of clients) expect(connect).toMatchObject({ protocolVersion, clean: false });
  expect(clients.map(({ connect }) => connect?.properties)).toEqual(clients.map(() => properties));

  await service.admin('POST', 'objects', { id: 'pump', name: 'pump' });
  const client = clients[1] as BrokerClient;
  const messageId = client.send('objects/pump/base/state', '{"n":1}');
  await until(() => client.acknowledged.includes(messageId), 'the acknowledgement');
  expect((await service.admin('GET', 'objects/pump')).body.state.n).toBe(1);

  const { headers } = await service.admin('POST', 'objects/pump/commands/stop?ttl=1min', {});
  const commandId = (headers.location as string).split('/').at(-1) as string;
  const published = () => broker.clients().flatMap((one) => one.published);
  await until(() => published().length === 1, 'the command');
  expect(published()[0]?.topic).toBe('objects/pump/base/commands/stop');
  expect(published()[0]?.properties).toEqual(
    protocolVersion === 4
      ? undefined
      : {
          messageExpiryInterval: expect.any(Number),
          responseTopic: `objects/pump/base/commands/${commandId}/result`,
          correlationData: Buffer.from(commandId),
        },
  );
  const isDelivered = async () => (await service.admin('GET', `commands/${commandId}`)).body.status === 'delivered';
  await until(isDelivered, 'the command to be delivered');
});

test('sends commands to a phone with OwnTracks below the base of its last message, and to other devices as before', async () => {
  const broker = await startTestBroker('speaks');
  endings.push(() => broker.stop());
  const service = await startTestService({ env: { MQTT_URL: broker.url, MQTT_PORT: '' } });
  endings.push(() => service.stop());
  await until(() => broker.clients().length === LIMITS.brokerConnections, 'all connections of the service');
  await service.admin('POST', 'objects', { id: 'phone', name: 'phone' });
  const [client] = broker.clients() as [BrokerClient];
  const published = () => broker.clients().flatMap((one) => one.published);
  const arrives = async (topic: string, payload: string): Promise<void> => {
    const messageId = client.send(topic, payload);
    await until(() => client.acknowledged.includes(messageId), `the acknowledgement of ${topic}`);
  };
  const location = '{"_type":"location","lat":1,"lon":2,"tst":1795500000}';
  const own = { _type: 'cmd', action: 'look' };
  for (const [topic, payload, expected] of [
    ['objects/phone/owntracks/jane/phone', location, 'objects/phone/owntracks/jane/phone/cmd'],
    // What the broker passes on of the service itself.
    ['objects/phone/owntracks/jane/phone/cmd', JSON.stringify(own), 'objects/phone/owntracks/jane/phone/cmd'],
    ['objects/phone/event', location.replace('location', 'transition'), 'objects/phone/cmd'],
    ['objects/phone/base/state', '{"n":1}', 'objects/phone/base/commands/look'],
    ['objects/phone', location, 'objects/phone/cmd'],
  ] as const) {
    await arrives(topic, payload);
    const sent = published().length;
    const { headers } = await service.admin('POST', 'objects/phone/commands/look', {});
    const _id = (headers.location as string).split('/').at(-1) as string;
    const isDelivered = async () => (await service.admin('GET', `commands/${_id}`)).body.status === 'delivered';
    await until(isDelivered, 'the command to be delivered');
    const [command] = published().slice(sent);
    const body = expected.endsWith('/cmd') ? own : { _id, command: 'look', params: {} };
    expect([command?.topic, JSON.parse(String(command?.payload))]).toEqual([expected, body]);
  }
});
