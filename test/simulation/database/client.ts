/**
 * A client of the simulated database: the real driver, from its collections and sessions down to its retries, over connections
 * that carry commands to the simulation instead of a socket.
 */
import { createRequire } from 'node:module';
import { BSON, type Document, type MongoClient, MongoServerSelectionError } from 'mongodb';
import { clock } from '../../../src/platform/clock.js';
import { createClient } from '../../../src/platform/mongo/driver/client.js';
import { unguarded } from '../guard.js';
import type { SimulatedDatabase } from './network.js';
import { toErrorReply } from './network.js';
import { CommandError } from './server.js';
import { received, toReplyBytes } from './wire.js';

const SIMULATED = 'mongodb://simulated/';

// Internal modules of the driver; src/platform/mongo/driver/driver.d.ts says with which version.
const load = createRequire(import.meta.url);
const { Connection } = load('mongodb/lib/cmap/connection.js');
const { DocumentSequence } = load('mongodb/lib/cmap/commands.js');
const { MongoDBResponse } = load('mongodb/lib/cmap/wire_protocol/responses.js');
const { Server } = load('mongodb/lib/sdam/server.js');

const connectionString = load('mongodb/lib/connection_string.js');
const { parseOptions } = connectionString;
let simulatedOptions: object | null = null;

/** What a client is given is the same for all of them, and takes a third of the time of a short run to parse. */
connectionString.parseOptions = (uri: string, ...given: unknown[]) => {
  if (!uri.startsWith(SIMULATED)) return parseOptions(uri, ...given);
  simulatedOptions ??= parseOptions(uri, ...given) as object;
  return { ...simulatedOptions };
};

const timers = load('node:timers/promises');

/** Gives the driver virtual time too: it waits, and draws how long, before it repeats a transaction. Returns what restores it. */
export function replaceDriverTime(): () => void {
  const { setTimeout: wait } = timers;
  const { random } = Math;
  timers.setTimeout = (ms: number) => clock.wait(ms);
  Math.random = () => clock.random();
  return () => {
    timers.setTimeout = wait;
    Math.random = random;
  };
}

const HELLO = {
  maxWireVersion: 25,
  minWireVersion: 0,
  logicalSessionTimeoutMinutes: 30,
  maxBsonObjectSize: 2 ** 24,
  maxWriteBatchSize: 100_000,
  maxMessageSizeBytes: 48_000_000,
};
const DESCRIPTION = { ...HELLO, type: 'RSPrimary', address: 'simulated:27017', hello: HELLO, loadBalanced: false };

interface Request {
  readonly command: Document;
  readonly ignoreUndefined: boolean;
}

interface ResponseType {
  make(bytes: Uint8Array): unknown;
}

/** The command as the database gets it, with the documents that are sent beside it. */
export function toWire({ command, ignoreUndefined }: Request): Document {
  const body: Document = {};
  const beside: Document = {};
  for (const [name, value] of Object.entries(command)) {
    if (value instanceof DocumentSequence) beside[name] = value.chunks.slice(1).map(parse);
    else body[name] = value;
  }
  // The name of the command stays first.
  return Object.assign(received(body, ignoreUndefined), beside);
}

const parse = (bytes: Uint8Array): Document => BSON.deserialize(bytes, { promoteLongs: false, promoteBuffers: false });

function createConnection(database: SimulatedDatabase) {
  const own = {
    description: DESCRIPTION,
    hello: HELLO,
    generation: 0,
    established: false,
    error: null,
    clusterTime: null,
    async *sendWire(message: Request, _options: unknown, responseType: ResponseType | undefined) {
      let reply: Document;
      try {
        reply = await database.send(toWire(message));
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        reply = toErrorReply(error);
      }
      yield (responseType ?? MongoDBResponse).make(toReplyBytes(reply));
    },
  };
  return Object.create(Connection.prototype, Object.getOwnPropertyDescriptors(own));
}

function createServer(database: SimulatedDatabase, topology: object) {
  const connection = createConnection(database);
  const own = {
    s: { state: 'connected', operationCount: 0, description: DESCRIPTION, options: {} },
    topology,
    pool: { generation: 0, checkOut: async () => connection, checkIn: () => undefined },
    handleError: () => undefined,
  };
  return Object.create(Server.prototype, Object.getOwnPropertyDescriptors(own));
}

/** A client with our options that talks to the simulated database. */
export function simulatedClient(database: SimulatedDatabase): MongoClient {
  const uri = `${SIMULATED}${database.server.databaseName}?replicaSet=simulated`;
  // It looks for the name of the machine, to tell it to a real server.
  const client = unguarded(() => createClient(uri));
  const servers = new Map<string, unknown>();
  const topology = {
    s: { options: client.options, servers },
    description: { type: 'ReplicaSetWithPrimary', logicalSessionTimeoutMinutes: 30 },
    logicalSessionTimeoutMinutes: 30,
    loadBalanced: false,
    lastHello: () => HELLO,
    isConnected: () => true,
    async selectServer() {
      if (await database.selectPrimary()) return server;
      throw new MongoServerSelectionError('there is no primary', { type: 'ReplicaSetNoPrimary' } as never);
    },
    close: () => undefined,
  };
  const server = createServer(database, topology);
  servers.set(DESCRIPTION.address, server);
  Object.assign(client, { topology });
  return client;
}
