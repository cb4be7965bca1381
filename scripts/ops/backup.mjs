/**
 * Scheduled backups for docker-compose.yml: creates a folder below /backups every BACKUP_EVERY and keeps the newest BACKUP_KEEP.
 * With `--check` it reports to Docker whether the newest backup is recent enough.
 */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const UNITS_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const RETRY_MS = 300_000;
/** The maximum delay of a timer. */
const LONGEST_MS = 2 ** 31 - 1;
const folder = process.env.BACKUP_DIR || '/backups';

function readSettings({ BACKUP_EVERY = '24h', BACKUP_KEEP = '7' }) {
  const [, count, unit] = /^([1-9]\d*)([mhd])$/.exec(BACKUP_EVERY) ?? [];
  if (count === undefined) throw new Error('BACKUP_EVERY: expected a time such as 24h, 30m or 7d');
  if (!/^[1-9]\d*$/.test(BACKUP_KEEP)) throw new Error('BACKUP_KEEP: expected how many backups are kept');
  return { everyMs: Math.min(LONGEST_MS, Number(count) * UNITS_MS[unit]), keep: Number(BACKUP_KEEP) };
}

/** Complete backups, the newest first. A backup is complete if it has a manifest, which is written last. */
const backups = () =>
  readdirSync(folder)
    .filter((name) => /^\d{4}(-\d\d){2}T\d\d(-\d\d){2}$/.test(name))
    .filter((name) => existsSync(join(folder, name, 'manifest.json')))
    .sort()
    .reverse();

/** The age of the newest backup; Infinity if there is none. */
function ageMs() {
  const [newest] = backups();
  return newest === undefined ? Infinity : Date.now() - statSync(join(folder, newest, 'manifest.json')).mtimeMs;
}

/** @returns {Promise<void>} */
function makeBackup() {
  return new Promise((resolve, reject) => {
    const args = [process.env.BACKUP_SCRIPT || 'dist/scripts/backup.js', '--to', join(folder, '{time}')];
    const child = spawn(process.execPath, args, { stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`the backup failed (${signal ?? `exit code ${code}`})`));
    });
  });
}

async function main() {
  const { everyMs, keep } = readSettings(process.env);
  if (process.argv.includes('--check')) {
    // A tolerance of half an interval: a backup takes time and is retried after a failure.
    process.exitCode = ageMs() <= everyMs * 1.5 ? 0 : 1;
    return;
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => process.exit(0));
  for (;;) {
    await wait(Math.max(0, everyMs - ageMs()));
    // Removes the remains of an interrupted backup.
    for (const name of readdirSync(folder))
      if (name.endsWith('.partial')) rmSync(join(folder, name), { recursive: true });
    try {
      await makeBackup();
      for (const old of backups().slice(keep)) rmSync(join(folder, old), { recursive: true });
    } catch (error) {
      process.stderr.write(`${error.message}; the next try is in ${RETRY_MS / 60_000} minutes\n`);
      await wait(RETRY_MS);
    }
  }
}

await main().catch((error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
