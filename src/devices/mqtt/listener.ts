/** Listens for devices, with or without TLS, and limits the count of connections. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { LIMITS } from '../../core/limits.js';
import { clock } from '../../platform/clock.js';
import { createConnectionCounts } from '../../platform/connection-counts.js';
import { destroyHalfClosed } from '../../platform/half-closed.js';
import { readProxyHeader } from './proxy-protocol.js';

export interface MqttAddress {
  readonly host: string;
  readonly port: number;
  /** Files in PEM form; null for connections without TLS. */
  readonly tls: { readonly keyFile: string; readonly certFile: string } | null;
  /** Whether each connection begins with a header of the PROXY protocol. */
  readonly hasProxy?: boolean;
  readonly connectionsPerAddress: number;
  /** Told of connections beyond that, by the network of their address. */
  readonly onConnectionRefused: (network: string) => void;
}

export interface Listener {
  /** `mqtt://…`, or `mqtts://…` with TLS. */
  readonly url: string;
  /** Stops listening and ends all connections. */
  stop(): Promise<void>;
}

/** Port 0 selects a free port. `accept` receives each socket within the limits. */
export async function listenForDevices(
  { host, port, tls, hasProxy = false, connectionsPerAddress, onConnectionRefused }: MqttAddress,
  accept: (socket: Socket, address: string) => void,
): Promise<Listener> {
  const sockets = new Set<Socket>();
  const counts = createConnectionCounts(connectionsPerAddress, onConnectionRefused);
  const add = (socket: Socket): void => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  const acceptSecure = (socket: Socket, address: string): void => {
    add(socket);
    accept(socket, address);
  };
  const secure = tls === null ? null : await createTlsUpgrade(tls, acceptSecure);
  const acceptWithinLimit = (socket: Socket, address: string): void => {
    const release = counts.take(address);
    if (release === null) {
      socket.destroy();
      return;
    }
    socket.once('close', release);
    if (secure !== null) secure(socket, address);
    else {
      accept(socket, address);
      // Reading the PROXY header has paused the socket.
      socket.resume();
    }
  };
  const server = createServer((socket) => {
    // Errors of a socket that is being refused are not worth logging.
    socket.on('error', () => undefined);
    add(socket);
    // Detects dead peers within minutes, whatever MQTT keep-alive they requested.
    socket.setKeepAlive(true, 60_000).setNoDelay(true);
    const address = socket.remoteAddress ?? 'unknown';
    if (!hasProxy) acceptWithinLimit(socket, address);
    else
      readProxyHeader(socket).then(
        (proxied) => acceptWithinLimit(socket, proxied ?? address),
        () => socket.destroy(),
      );
  });
  server.maxConnections = LIMITS.mqttConnections;
  // With the usual 511, the systems of thousands of devices that connect at once try again after 1, 2, 4 … s.
  server.listen({ port, host, backlog: LIMITS.mqttAcceptQueue });
  await once(server, 'listening');
  const stopChecks = destroyHalfClosed(sockets);
  return {
    url: urlOf(server, tls === null ? 'mqtt' : 'mqtts'),
    async stop() {
      await stop(server, sockets);
      stopChecks();
    },
  };
}

/** Stops listening, and destroys all sockets; those whose last packet is being sent when it is sent. */
async function stop(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  const sending = [...sockets].filter((socket) => socket.writableEnded && !socket.writableFinished);
  for (const socket of sending) socket.once('finish', () => socket.destroy());
  // With TLS there are two sockets for a connection.
  const names = new Set(sending.map(nameOf));
  for (const socket of sockets) if (!names.has(nameOf(socket))) socket.destroy();
  // A client may not take its last packet.
  const timer = clock.setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, LIMITS.mqttLeaveMs);
  await closed;
  clock.clearTimer(timer);
}

const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** Returns a function that starts TLS on a socket and passes the secured socket on with the original client address. */
async function createTlsUpgrade(
  files: { keyFile: string; certFile: string },
  accept: (socket: Socket, address: string) => void,
): Promise<(socket: Socket, address: string) => void> {
  const addresses = new Map<string, string>();
  const server = await createTls(files);
  // Node.js reports a handshake that failed or came late, and leaves the connection open.
  server.on('tlsClientError', (_error, socket) => socket.destroy());
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
  const key = await read(keyFile, 'MQTT_TLS_KEY');
  const cert = await read(certFile, 'MQTT_TLS_CERT');
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
