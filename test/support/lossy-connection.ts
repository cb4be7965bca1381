/** A connection to the database that loses or replaces replies, or holds commands back. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { BSON, type Document, MongoClient } from 'mongodb';

/**
 * The fate of a command: it passes, at once or when the promise resolves; or its reply is lost and the connection is closed; or this
 * document replaces the reply.
 */
export type Fate = 'passes' | Promise<unknown> | 'lost' | Document;

export interface Line {
  readonly client: MongoClient;
  stop(): Promise<void>;
}

const HEADER_BYTES = 21;
const OP_MSG = 2013;

/** Connects the client of `prepare` through the line; `decide` gets the bytes of each command. */
export async function startLine(
  uri: string,
  decide: (asked: Buffer) => Fate,
  prepare: (uri: string) => MongoClient = (through) => new MongoClient(through),
): Promise<Line> {
  const target = new URL(uri);
  const server = createServer((near) => join(near, target, decide)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const through = new URL(uri);
  through.port = String((server.address() as AddressInfo).port);
  const client = await prepare(through.href).connect();
  return {
    client,
    async stop() {
      await client.close();
      server.close();
    },
  };
}

function join(near: Socket, { port, hostname }: URL, decide: (asked: Buffer) => Fate): void {
  const far = connect(Number(port), hostname);
  let isLost = false;
  near.on('data', (asked) => {
    const fate = decide(asked);
    if (fate === 'lost') isLost = true;
    if (fate instanceof Promise) return hold(near, far, asked, fate);
    if (fate === 'lost' || fate === 'passes') far.write(asked);
    else near.write(toReply(asked, fate));
  });
  far.on('data', (answer) => (isLost ? near.destroy() : near.write(answer)));
  near.on('error', () => undefined).on('close', () => far.destroy());
  far.on('error', () => undefined).on('close', () => near.destroy());
}

function hold(near: Socket, far: Socket, asked: Buffer, released: Promise<unknown>): void {
  near.pause();
  void released.then(() => {
    far.write(asked);
    near.resume();
  });
}

// MongoDB's wire protocol: an OP_MSG of one section, to the request it answers.
function toReply(asked: Buffer, answer: Document): Buffer {
  const body = BSON.serialize(answer);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeInt32LE(HEADER_BYTES + body.length, 0);
  header.writeInt32LE(asked.readInt32LE(4), 8);
  header.writeInt32LE(OP_MSG, 12);
  return Buffer.concat([header, body]);
}
