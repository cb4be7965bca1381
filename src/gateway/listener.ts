/** Where devices connect: the port, with or without TLS, and how many may. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { LIMITS } from '../model/limits.js';

export interface MqttAddress {
  readonly host: string;
  readonly port: number;
  /** Files in PEM form; null for connections without TLS. */
  readonly tls: { readonly keyFile: string; readonly certFile: string } | null;
}

export interface Listener {
  /** `mqtt://…`, or `mqtts://…` with TLS. */
  readonly url: string;
  /** Takes no more, and ends what is connected. */
  stop(): Promise<void>;
}

/** Listens; port 0 is any free one. `accept` is given each socket that may stay. */
export async function listenForDevices(
  { host, port, tls }: MqttAddress,
  accept: (socket: Socket, address: string) => void,
): Promise<Listener> {
  const sockets = new Set<Socket>();
  const perAddress = new Map<string, number>();
  const admit = (socket: Socket): void => {
    const address = socket.remoteAddress ?? 'unknown';
    const count = (perAddress.get(address) ?? 0) + 1;
    // A socket that breaks while it is refused is no news.
    socket.on('error', () => undefined);
    if (count > LIMITS.mqttConnectionsPerAddress) {
      socket.destroy();
      return;
    }
    perAddress.set(address, count);
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      const left = (perAddress.get(address) ?? 1) - 1;
      if (left === 0) perAddress.delete(address);
      else perAddress.set(address, left);
    });
    // A peer that is gone without a word shows within minutes, whatever keep-alive it asked for.
    socket.setKeepAlive(true, 60_000).setNoDelay(true);
    accept(socket, address);
  };
  const server: Server = tls === null ? createServer() : await createTls(tls);
  server.maxConnections = LIMITS.mqttConnections;
  server.on(tls === null ? 'connection' : 'secureConnection', admit);
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
