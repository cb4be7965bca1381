/**
 * The first start with Docker: makes of the MongoDB a replica set of one, and in it the user of the service, who may read and
 * write the database `vigil` and nothing else. Done again it changes nothing but the user's password, to what is stored.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { MongoClient } from 'mongodb';

const WAIT_MS = 120_000;
const host = process.env.MONGODB_HOST || 'mongo:27017';
const read = (name) => readFileSync(join(process.env.SECRETS_DIR || '/secrets', name), 'utf8').trim();

/** Until it works: the database may still be starting, or electing itself. */
async function untilDone(step) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await wait(500);
    }
  }
}

async function setUp(admin) {
  await admin.command({ replSetInitiate: { _id: 'vigil', members: [{ _id: 0, host }] } }).catch((error) => {
    if (error.codeName !== 'AlreadyInitialized') throw error;
  });
  const { isWritablePrimary } = await admin.command({ hello: 1 });
  if (!isWritablePrimary) throw new Error('the database has no primary yet');
}

async function makeUser(database) {
  const user = { pwd: read('app-password'), roles: [{ role: 'readWrite', db: 'vigil' }] };
  await database.command({ createUser: 'vigil', ...user }).catch((error) => {
    if (error.code !== 51003) throw error;
    return database.command({ updateUser: 'vigil', ...user });
  });
}

const client = new MongoClient(`mongodb://root:${read('root-password')}@${host}/?directConnection=true`, {
  serverSelectionTimeoutMS: 2_000,
});
try {
  await untilDone(() => setUp(client.db('admin')));
  await untilDone(() => makeUser(client.db('vigil')));
} catch (error) {
  process.stderr.write(`The database could not be set up: ${error.message}\n`);
  process.exitCode = 1;
} finally {
  await client.close();
}
