/** A certificate of this machine for tests of TLS. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ARGUMENTS =
  'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1'.split(
    ' ',
  );

export const hasOpenssl = spawnSync('openssl', ['version']).error === undefined;
if (!hasOpenssl) process.stderr.write('No openssl on this machine: tests of TLS are skipped\n');

export interface Certificate {
  readonly keyFile: string;
  readonly certFile: string;
  remove(): void;
}

export function createCertificate(): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'vigil-tls-'));
  const keyFile = join(folder, 'key.pem');
  const certFile = join(folder, 'cert.pem');
  const { status, stderr } = spawnSync('openssl', [...ARGUMENTS, '-keyout', keyFile, '-out', certFile]);
  if (status !== 0) throw new Error(String(stderr));
  return { keyFile, certFile, remove: () => rmSync(folder, { recursive: true }) };
}
