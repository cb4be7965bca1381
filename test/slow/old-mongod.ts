/**
 * What a MongoDB of an older version answers to a client that introduces itself. No program of such a version is to be had on
 * every machine; the rest of it is never asked.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { BSON, type Document } from 'mongodb';

const HEADER_BYTES = 16;
const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;

/** Listens; `wireVersion` is what the version's servers say they speak. */
export async function startOldMongod(version: string, wireVersion: number): Promise<{ uri: string; stop(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    let pending = Buffer.alloc(0);
    socket.on('data', (bytes) => {
      pending = Buffer.concat([pending, bytes]);
      while (pending.length >= HEADER_BYTES && pending.length >= pending.readInt32LE(0)) {
        const message = pending.subarray(0, pending.readInt32LE(0));
        pending = pending.subarray(message.length);
        socket.write(toReply(message, answerTo(readCommand(message))));
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const answerTo = (command: Document): Document => {
    if ('buildInfo' in command) return { version, ok: 1 };
    return {
      ismaster: true,
      isWritablePrimary: true,
      setName: 'rs',
      hosts: [host],
      primary: host,
      me: host,
      minWireVersion: 0,
      maxWireVersion: wireVersion,
      maxBsonObjectSize: 16_777_216,
      ok: 1,
      maxMessageSizeBytes: 48_000_000,
      maxWriteBatchSize: 100_000,
      logicalSessionTimeoutMinutes: 30,
    };
  };
  return {
    uri: `mongodb://${host}/vigil`,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** The command of a message in either form: the old one, in which clients introduce themselves, or the one of today. */
function readCommand(message: Buffer): Document {
  const body = message.subarray(HEADER_BYTES);
  const start = message.readInt32LE(12) === OP_QUERY ? body.indexOf(0, 4) + 9 : 5;
  return BSON.deserialize(body.subarray(start, start + body.readInt32LE(start)));
}

function toReply(message: Buffer, answer: Document): Buffer {
  const isOld = message.readInt32LE(12) === OP_QUERY;
  // Flags; in the old form also a cursor, where it starts, and how many documents follow.
  const before = Buffer.alloc(isOld ? 20 : 5);
  if (isOld) before.writeInt32LE(1, 16);
  const body = Buffer.concat([before, BSON.serialize(answer)]);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeInt32LE(HEADER_BYTES + body.length, 0);
  header.writeInt32LE(message.readInt32LE(4), 8);
  header.writeInt32LE(isOld ? OP_REPLY : OP_MSG, 12);
  return Buffer.concat([header, body]);
}
