// Shards the collection of packets by object and time. Idempotent. The other collections are small in comparison and stay on one
// shard, which their unique indexes require.
import { fileURLToPath } from 'node:url';
import { type Db, MongoClient } from 'mongodb';
import { PlainError, runProgram } from '../src/program.js';
import { readInstallation, readPlainArguments } from './installation.js';

const HELP = `npm run shard

Declares the shard key of the packets, {_oid, time}, on the cluster of MONGODB_URI (or of the file that MONGODB_URI_FILE
names), whose user needs the role clusterManager for it. Vigil must have been started on it once. Nobody has to stop.

  -h, --help           this text`;

const KEY = { _oid: 1, time: 1 };

/** Resolves with a message for the terminal. */
async function shardPackets(db: Db): Promise<string> {
  const admin = db.client.db('admin');
  const hello = await admin.command({ hello: 1 });
  if (hello.msg !== 'isdbgrid') throw new PlainError('MONGODB_URI is not a sharded cluster');
  const [packets] = await db.listCollections({ name: 'packets' }).toArray();
  if (packets === undefined)
    throw new PlainError(`There are no packets in ${db.databaseName} yet: start Vigil on it once`);
  await admin.command({ enableSharding: db.databaseName });
  await admin.command({ shardCollection: `${db.databaseName}.packets`, key: KEY });
  const { shards } = await admin.command({ listShards: 1 });
  return `The packets of ${db.databaseName} are spread over ${shards.length} shards by object and time`;
}

async function main(): Promise<void> {
  readPlainArguments({}, HELP);
  const { mongodbUri: uri } = readInstallation();
  if (uri === null) throw new PlainError('MONGODB_URI is missing: the address of the cluster');
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 5_000 });
  try {
    console.log(await shardPackets(client.db()));
  } catch (error) {
    throw new PlainError((error as Error).message);
  } finally {
    await client.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runProgram(main);
