/** A broker for tests: the test decides which client gets which message, and in what order. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { generate, type IConnectPacket, type IPublishPacket, type Packet, parser } from 'mqtt-packet';

/** One client that is connected. */
export interface BrokerClient {
  readonly clientId: string;
  /** Its CONNECT; null before it. */
  readonly connect: IConnectPacket | null;
  /** Sends it a message of QoS 1; returns the identifier. */
  send(topic: string, payload: string | Buffer): number;
  /** Identifiers of the messages that it has acknowledged, in order. */
  readonly acknowledged: readonly number[];
  /** Its own messages. */
  readonly published: readonly IPublishPacket[];
}

export interface TestBroker {
  readonly url: string;
  /** The clients that have subscribed, in the order of their ids. */
  clients(): BrokerClient[];
  stop(): void;
}

interface Known extends BrokerClient {
  clientId: string;
  connect: IConnectPacket | null;
  hasSubscribed: boolean;
  readonly acknowledged: number[];
  readonly published: IPublishPacket[];
}

/** What the broker does with a client of MQTT 5: it speaks it too, it answers that it does not, or it only closes the connection. */
export type Of5 = 'speaks' | 'refuses' | 'closes';

export async function startTestBroker(of5: Of5 = 'refuses'): Promise<TestBroker> {
  const known = new Map<Socket, Known>();
  const server = createServer((socket) => {
    known.set(socket, createClient(socket, of5));
    socket.on('error', () => undefined).on('close', () => known.delete(socket));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`,
    clients: () =>
      [...known.values()]
        .filter(({ hasSubscribed }) => hasSubscribed)
        .toSorted((one, two) => (one.clientId < two.clientId ? -1 : 1)),
    stop() {
      server.close();
      for (const socket of known.keys()) socket.destroy();
    },
  };
}

function createClient(socket: Socket, of5: Of5): Known {
  let lastId = 0;
  let version = 4;
  const write = (packet: Packet): void => void socket.write(generate(packet, { protocolVersion: version }));
  const client: Known = {
    clientId: '',
    connect: null,
    hasSubscribed: false,
    acknowledged: [],
    published: [],
    send(topic, payload) {
      const messageId = ++lastId;
      write({ cmd: 'publish', topic, payload, qos: 1, messageId, dup: false, retain: false });
      return messageId;
    },
  };
  const reader = parser().on('packet', (packet: Packet) => {
    if (packet.cmd === 'connect') {
      client.clientId = packet.clientId;
      client.connect = packet;
      if (packet.protocolVersion === 5 && of5 !== 'speaks') {
        if (of5 === 'refuses') write({ cmd: 'connack', returnCode: 1, sessionPresent: false });
        socket.end();
        return;
      }
      version = packet.protocolVersion ?? version;
      write({ cmd: 'connack', returnCode: 0, reasonCode: 0, sessionPresent: false });
    }
    if (packet.cmd === 'subscribe') {
      write({ cmd: 'suback', messageId: packet.messageId as number, granted: packet.subscriptions.map(() => 1) });
      client.hasSubscribed = true;
    }
    if (packet.cmd === 'publish') {
      client.published.push(packet);
      write({ cmd: 'puback', messageId: packet.messageId as number });
    }
    if (packet.cmd === 'puback') client.acknowledged.push(packet.messageId as number);
    if (packet.cmd === 'pingreq') write({ cmd: 'pingresp' });
    if (packet.cmd === 'disconnect') socket.end();
  });
  socket.on('data', (bytes) => reader.parse(bytes));
  return client;
}
