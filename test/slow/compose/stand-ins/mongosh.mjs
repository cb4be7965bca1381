/** Of mongosh what docker-compose.yml and scripts/ops ask of it: `--eval` with db.adminCommand and quit. */
import { MongoClient } from 'mongodb';

const code = process.argv[process.argv.indexOf('--eval') + 1];
const client = new MongoClient('mongodb://127.0.0.1:27017/?directConnection=true', { serverSelectionTimeoutMS: 5_000 });
const db = { adminCommand: (name) => client.db('admin').command(typeof name === 'string' ? { [name]: 1 } : name) };
const awaited = code.replace(/db\.adminCommand\(([^()]*)\)/g, '(await db.adminCommand($1))');
const Program = Object.getPrototypeOf(async () => undefined).constructor;
await new Program('db', 'quit', awaited)(db, (status) => process.exit(status)).catch((error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
