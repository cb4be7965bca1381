// Writes a backup of an installation's database, consistent at one point in time, to a folder. The service may be running.
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { countPacketsIn, writeBackup } from '../src/backup/backup.js';
import type { Manifest } from '../src/backup/manifest.js';
import { createClient } from '../src/platform/mongo/driver/client.js';
import { PlainError } from '../src/program.js';
import {
  formatBytes,
  readInstallation,
  readPlainArguments,
  runPlainly,
  secretOf,
  withDatabase,
} from './installation.js';

const HELP = `npm run backup -- --to <folder>

Writes a backup of the database (MONGODB_URI, or the embedded one in DATA_DIR) into a new folder. The service may be running.

  --to <folder>        the new folder; a {time} in its name becomes the time, as in backups/{time}
  -h, --help           this text`;

async function main(): Promise<void> {
  const { to } = readPlainArguments({ to: { type: 'string' } }, HELP);
  if (to === undefined || to === '') throw new PlainError('--to is missing: the folder for the backup.');
  const config = readInstallation();
  const nowMs = Date.now();
  const time = new Date(nowMs).toISOString().slice(0, 19).replaceAll(':', '-');
  const folder = resolve(to.replaceAll('{time}', time));
  const manifest = await withDatabase(config, false, async (uri) => {
    const client = createClient(uri);
    try {
      return await writeBackup(client, folder, nowMs);
    } finally {
      await client.close();
    }
  });
  console.log(await describe(folder, manifest));
  console.log(`Keep ${secretOf(config)} as well: without it, every session and token ends.`);
}

async function describe(folder: string, manifest: Manifest): Promise<string> {
  const { files, exact } = manifest;
  const sizes = await Promise.all(files.map(async ({ file }) => (await stat(join(folder, file))).size));
  const documents = files.reduce((sum, file) => sum + file.documents, 0);
  const size = formatBytes(sizes.reduce((sum, bytes) => sum + bytes, 0));
  const note = exact ? '' : '\nIt took long: some packets are those of later moments than the rest.';
  const counts = `${documents.toLocaleString('en')} documents, with ${countPacketsIn(manifest).toLocaleString('en')} packets`;
  return `${folder}: ${counts}, ${size}${note}`;
}

await runPlainly(main);
