// Checks the packed history of an installation, or turns it into packets again before an older release is installed.
import { parseArgs } from 'node:util';
import { LIMITS } from '../src/core/limits.js';
import { PACKING_LEASE } from '../src/packets/packing.js';
import { type CheckedHistory, checkBuckets, type DamagedHistory, unpackAll } from '../src/packets/store/all-buckets.js';
import { createClient, type Database, databaseOf } from '../src/platform/mongo/driver/client.js';
import { acquireLease } from '../src/platform/mongo/driver/lease.js';
import { PlainError } from '../src/program.js';
import { readInstallation, runPlainly, withDatabase } from './installation.js';

const HELP = `node dist/scripts/packed.js verify | unpack

On the database (MONGODB_URI, or the embedded one in DATA_DIR) of a service that may be running:

  verify               reads all packed history, and names each object and interval that is damaged
  unpack               turns all packed history into packets again, which take about ten times the space, without any event.
                       Set PACK_AFTER=never first, or it is packed again. After an interruption, start it again
  -h, --help           this text

What is damaged stays as it is; the exit code is then 1.`;

type Work = (database: Database, onDamaged: (damaged: DamagedHistory) => void) => Promise<CheckedHistory>;

async function unpack(database: Database, onDamaged: (damaged: DamagedHistory) => void): Promise<CheckedHistory> {
  const lease = await acquireLease(database, PACKING_LEASE, LIMITS.leaseMs);
  if (lease === null)
    throw new PlainError('A Vigil is packing at the moment: set PACK_AFTER=never on all of them first.');
  return unpackAll(database, { fence: lease.fence, onDamaged }).finally(lease.release);
}

const COMMANDS: Readonly<Record<string, { readonly work: Work; readonly done: string }>> = {
  verify: { work: checkBuckets, done: 'Read' },
  unpack: { work: unpack, done: 'Unpacked' },
};

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    options: { help: { type: 'boolean', short: 'h' } },
    allowPositionals: true,
  });
  if (values.help) return console.log(HELP);
  const command = positionals.length === 1 ? COMMANDS[positionals[0] as string] : undefined;
  if (command === undefined) throw new PlainError(`Expected verify or unpack.\n\n${HELP}`);
  let damaged = 0;
  const { buckets, packets } = await withDatabase(readInstallation(), false, async (uri) => {
    const client = createClient(uri);
    try {
      return await command.work(databaseOf(client), ({ objectId, reason }) => {
        damaged++;
        console.log(`Object ${objectId}: ${reason}`);
      });
    } finally {
      await client.close();
    }
  });
  console.log(`${command.done} ${packets.toLocaleString('en')} packets of ${buckets.toLocaleString('en')} buckets.`);
  if (damaged > 0) throw new PlainError(`Damaged buckets: ${damaged.toLocaleString('en')}.`);
}

await runPlainly(main);
