// Restores the database of an installation from a backup. Vigil must not be running on the database.
import { resolve } from 'node:path';
import { readManifest } from '../src/backup/manifest.js';
import { restoreBackup } from '../src/backup/restore.js';
import { PlainError } from '../src/program.js';
import { readInstallation, readPlainArguments, runPlainly, secretOf, withDatabase } from './installation.js';

const HELP = `npm run restore -- --from <folder>

Restores a backup into the database (MONGODB_URI, or the embedded one in DATA_DIR). Stop every Vigil on it first.

  --from <folder>      the folder of the backup
  --replace            remove what is in the database; without it, the database must be empty
  -h, --help           this text`;

async function main(): Promise<void> {
  const options = { from: { type: 'string' }, replace: { type: 'boolean' } } as const;
  const { from, replace = false } = readPlainArguments(options, HELP);
  if (from === undefined || from === '') throw new PlainError('--from is missing: the folder of the backup.');
  // Checked before an embedded database is started.
  await readManifest(resolve(from));
  const config = readInstallation();
  const { files, time } = await withDatabase(config, true, (uri) => restoreBackup(uri, resolve(from), replace));
  const documents = files.reduce((sum, file) => sum + file.documents, 0).toLocaleString('en');
  console.log(`Restored ${documents} documents as they were on ${new Date(time).toISOString()}.`);
  console.log(`${secretOf(config)} must be what it was then, or every session and token has ended.`);
}

await runPlainly(main);
