/** Where devices connect: the port, with or without TLS, and how many may. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { LIMITS } from '../model/limits.js';
import { networkOf } from '../model/network.js';
import { readProxyHeader } from './proxy-protocol.js';

export interface MqttAddress {
  readonly host: string;
  readonly port: number;
  /** Files in PEM form; null for connections without TLS. */
  readonly tls: { readonly keyFile: string; readonly certFile: string } | null;
  /** Whether each connection comes from a balancer that says first whose it is. */
  readonly hasProxy?: boolean;
}

export interface Listener {
  /** `mqtt://…`, or `mqtts://…` with TLS. */
  readonly url: string;
  /** Takes no more, and ends what is connected. */
  stop(): Promise<void>;
}

/** Listens; port 0 is any free one. `accept` is given each socket that may stay. */
export async function listenForDevices(
  { host, port, tls, hasProxy = false }: MqttAddress,
  accept: (socket: Socket, address: string) => void,
): Promise<Listener> {
  const sockets = new Set<Socket>();
  const isFew = createPlaces();
  const secure = tls === null ? null : await createSecuring(tls, accept);
  const admit = (socket: Socket, address: string): void => {
    if (!isFew(socket, networkOf(address))) socket.destroy();
    else if (secure !== null) secure(socket, address);
    else {
      accept(socket, address);
      // Its header was read: what reads it now goes on.
      socket.resume();
    }
  };
  const server = createServer((socket) => {
    // A socket that breaks while it is refused is no news.
    socket.on('error', () => undefined);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // A peer that is gone without a word shows within minutes, whatever keep-alive it asked for.
    socket.setKeepAlive(true, 60_000).setNoDelay(true);
    const address = socket.remoteAddress ?? 'unknown';
    if (!hasProxy) admit(socket, address);
    else
      readProxyHeader(socket).then(
        (told) => admit(socket, told ?? address),
        () => socket.destroy(),
      );
  });
  server.maxConnections = LIMITS.mqttConnections;
  server.listen(port, host);
  await once(server, 'listening');
  return {
    url: urlOf(server, tls === null ? 'mqtt' : 'mqtts'),
    async stop() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Whether there is room for one more of its network, which then has its place until it closes. */
function createPlaces(): (socket: Socket, network: string) => boolean {
  const taken = new Map<string, number>();
  return (socket, network) => {
    const count = (taken.get(network) ?? 0) + 1;
    if (count > LIMITS.mqttConnectionsPerAddress) return false;
    taken.set(network, count);
    socket.once('close', () => {
      const left = (taken.get(network) ?? 1) - 1;
      if (left === 0) taken.delete(network);
      else taken.set(network, left);
    });
    return true;
  };
}

/** Puts TLS on sockets, with the addresses that are known of them. */
async function createSecuring(
  files: { keyFile: string; certFile: string },
  accept: (socket: Socket, address: string) => void,
): Promise<(socket: Socket, address: string) => void> {
  const addresses = new Map<string, string>();
  const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
  const server = await createTls(files);
  server.on('secureConnection', (socket) => {
    socket.on('error', () => undefined);
    accept(socket, addresses.get(nameOf(socket)) ?? 'unknown');
  });
  return (socket, address) => {
    const name = nameOf(socket);
    addresses.set(name, address);
    socket.once('close', () => addresses.delete(name));
    server.emit('connection', socket);
  };
}

async function createTls({ keyFile, certFile }: { keyFile: string; certFile: string }): Promise<Server> {
  const read = (file: string, name: string): Promise<Buffer> =>
    readFile(file).catch((error: Error) => {
      throw new Error(`${name} cannot be read: ${error.message}`);
    });
  const [key, cert] = [await read(keyFile, 'MQTT_TLS_KEY'), await read(certFile, 'MQTT_TLS_CERT')];
  try {
    return createTlsServer({ key, cert, handshakeTimeout: LIMITS.mqttConnectMs });
  } catch (error) {
    throw new Error(`MQTT_TLS_KEY and MQTT_TLS_CERT cannot be used: ${(error as Error).message}`);
  }
}

function urlOf(server: Server, scheme: string): string {
  const { address, family, port } = server.address() as AddressInfo;
  const name = address === '::' || address === '0.0.0.0' ? 'localhost' : family === 'IPv6' ? `[${address}]` : address;
  return `${scheme}://${name}:${port}`;
}
