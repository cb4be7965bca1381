/**
 * Sets up the MongoDB of docker-compose.yml: creates a replica set of the named members, and the user of the service, who may only
 * read and write the database `vigil`. Idempotent: it changes only a different password or role, and added or removed members.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { MongoClient } from 'mongodb';

const WAIT_MS = Number(process.env.WAIT_MS || 120_000);
const POLL_MS = 500;
const SELECTION_MS = 10_000;
const USER_EXISTS = 51_003;
// With only MONGODB_HOST, an existing replica set stays unchanged.
const { MONGODB_MEMBERS = '', MONGODB_HOST = 'mongo:27017' } = process.env;
const members = (MONGODB_MEMBERS || MONGODB_HOST).split(',');
const read = (name) => readFileSync(join(process.env.SECRETS_DIR || '/secrets', name), 'utf8').trim();

/** Retries until the work succeeds or returns true: the database may still be starting or electing a primary. */
async function untilDone(step) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    let failure = new Error('its members did not answer in time');
    const isDone = await step().catch((error) => {
      failure = error;
      return false;
    });
    if (isDone !== false) return;
    if (Date.now() > deadline) throw failure;
    await wait(POLL_MS);
  }
}

async function withClient(hosts, query, use) {
  const uri = `mongodb://root:${read('root-password')}@${hosts}/?${query}`;
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: SELECTION_MS });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** Initiates a replica set of one member, if there is none. */
const initiate = () =>
  withClient(members[0], 'directConnection=true', async (client) => {
    const config = { _id: 'vigil', members: [{ _id: 0, host: members[0] }] };
    await client
      .db('admin')
      .command({ replSetInitiate: config })
      .catch((error) => {
        if (error.codeName !== 'AlreadyInitialized') throw error;
      });
    const { isWritablePrimary, setName, primary } = await client.db('admin').command({ hello: 1 });
    if (!isWritablePrimary && primary === undefined)
      throw new Error(
        setName === undefined ? 'it is starting' : 'it has no primary: most of its members are unavailable',
      );
  });

/**
 * Adds or removes at most one member. Returns true if no step is left. A primary cannot be removed, so another member is made
 * primary first.
 */
async function approach(admin) {
  const { config } = await admin.command({ replSetGetConfig: 1 });
  const { primary } = await admin.command({ hello: 1 });
  const present = config.members.map(({ host }) => host);
  const [wanted] = members.filter((host) => !present.includes(host));
  const [unwanted] = present.filter((host) => !members.includes(host));
  const change = (next) =>
    admin.command({ replSetReconfig: { ...config, version: config.version + 1, members: next } });
  if (wanted !== undefined) {
    const id = Math.max(...config.members.map(({ _id }) => _id)) + 1;
    await change([...config.members, { _id: id, host: wanted }]);
    return false;
  }
  if (unwanted !== undefined) {
    const leads = config.members.map((member) => ({ ...member, priority: member.host === members[0] ? 2 : 1 }));
    if (members.includes(primary)) await change(config.members.filter(({ host }) => host !== unwanted));
    else if (config.members.some(({ host, priority }) => host === members[0] && priority !== 2)) await change(leads);
    return false;
  }
  if (config.members.every(({ priority }) => priority === 1)) return true;
  await change(config.members.map((member) => ({ ...member, priority: 1 })));
  return false;
}

/** Creates the user of the service, or updates the one that exists. */
const makeUser = (database) => {
  const definition = { pwd: read('app-password'), roles: [{ role: 'readWrite', db: 'vigil' }] };
  return database.command({ createUser: 'vigil', ...definition }).catch((error) => {
    if (error.code !== USER_EXISTS) throw error;
    return database.command({ updateUser: 'vigil', ...definition });
  });
};

try {
  await untilDone(initiate);
  const toSet = (step) => () => withClient(members.join(','), 'replicaSet=vigil', step);
  if (MONGODB_MEMBERS !== '') await untilDone(toSet((client) => approach(client.db('admin'))));
  await untilDone(toSet((client) => makeUser(client.db('vigil'))));
} catch (error) {
  process.stderr.write(`The database could not be set up: ${error.message}\n`);
  process.exitCode = 1;
}
