/** What MongoDB's image does at its first start: with nobody listening elsewhere, it makes the user that the environment names. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { MongoClient } from 'mongodb';

const { MONGO_INITDB_ROOT_USERNAME: user, MONGO_INITDB_ROOT_PASSWORD_FILE: file } = process.env;
if (user && file && !existsSync('/data/db/WiredTiger')) {
  const server = spawn('mongod', ['--bind_ip', '127.0.0.1'], { stdio: 'inherit' });
  const client = new MongoClient('mongodb://127.0.0.1:27017/?directConnection=true');
  const pwd = readFileSync(file, 'utf8').trim();
  await client.db('admin').command({ createUser: user, pwd, roles: [{ role: 'root', db: 'admin' }] });
  await client.close();
  server.kill('SIGTERM');
  await once(server, 'exit');
}
