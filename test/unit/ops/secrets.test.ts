/** The passwords and keys that the first start with Docker makes, and the certificate that it hands over. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vigil-secrets-'));
  for (const name of ['app', 'mongo', 'proxy', 'given', 'grafana']) mkdirSync(join(folder, name));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const given = (name: string) => join(folder, 'given', name);
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

/** Makes them; gives whom each file that was written belongs to. */
async function make(members?: string): Promise<Record<string, number>> {
  const path = '../../../scripts/ops/secrets.mjs';
  const { makeSecrets } = (await import(path)) as { makeSecrets: (...args: unknown[]) => void };
  const owners: Record<string, number> = {};
  const own = (file: string, owner: number): void => {
    owners[file.slice(folder.length + 1).replace(/\.new$/, '')] = owner;
  };
  makeSecrets(folder, join(folder, 'given'), own, members);
  return owners;
}

/** A certificate and its key, in the files of these names. */
function certify(cert: string, key: string): void {
  const subject = ['-subj', '/CN=vigil.example', '-days', '1', '-newkey', 'rsa:2048', '-nodes'];
  execFileSync('openssl', ['req', '-x509', ...subject, '-keyout', given(key), '-out', given(cert)], {
    stdio: 'ignore',
  });
}

const NAMES = ['mongo/keyfile', 'mongo/root-password', 'mongo/app-password'];
const OURS = ['app/mongodb-uri', 'app/secret', 'app/admin-password'];

test('creates each secret once, readable only by its reader', async () => {
  expect(await make()).toEqual({
    ...Object.fromEntries(NAMES.map((name) => [name, 999])),
    ...Object.fromEntries(OURS.map((name) => [name, 1000])),
    'grafana/admin-password': 472,
    'grafana/vigil-token': 472,
  });
  const files = [...NAMES, ...OURS, 'grafana/admin-password'];
  const before = files.map(read);
  for (const name of files) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o400);
  expect(new Set(before).size).toBe(before.length);
  expect(read('app/mongodb-uri')).toContain(`vigil:${read('mongo/app-password')}@mongo:27017/vigil`);
  expect(await make()).toEqual({});
  expect(files.map(read)).toEqual(before);
});

test('keeps the token that an operator stored for Grafana', async () => {
  await make();
  expect(read('grafana/vigil-token')).toBe('none');
  rmSync(join(folder, 'grafana/vigil-token'));
  writeFileSync(join(folder, 'grafana/vigil-token'), 'a.b.c', { mode: 0o400 });
  await make();
  expect(read('grafana/vigil-token')).toBe('a.b.c');
});

test('rewrites the URI with the same password when the members of the database change', async () => {
  await make();
  const password = read('mongo/app-password');
  const members = 'mongo:27017,mongo2:27017,mongo3:27017';
  expect(await make(members)).toEqual({ 'app/mongodb-uri': 1000 });
  expect(read('app/mongodb-uri')).toBe(
    `mongodb://vigil:${password}@${members}/vigil?replicaSet=vigil&authSource=vigil`,
  );
});

test('copies a certificate with its key, renews both, and removes them when they are no longer given', async () => {
  certify('cert.pem', 'key.pem');
  expect(await make()).toMatchObject({ 'proxy/cert.pem': 101, 'proxy/key.pem': 101 });
  expect(statSync(join(folder, 'proxy/key.pem')).mode & 0o777).toBe(0o400);
  certify('cert.pem', 'key.pem');
  await make();
  for (const name of ['cert.pem', 'key.pem']) expect(read(`proxy/${name}`)).toBe(readFileSync(given(name), 'utf8'));
  for (const name of ['cert.pem', 'key.pem']) rmSync(given(name));
  await make();
  expect(existsSync(join(folder, 'proxy', 'key.pem'))).toBe(false);
});

test.each<[what: string, spoil: () => void, complaint: string]>([
  ['a certificate without its key', () => rmSync(given('key.pem')), 'TLS_CERT and TLS_KEY: the key is missing'],
  ['a key without its certificate', () => rmSync(given('cert.pem')), 'the certificate is missing'],
  ['a key of another certificate', () => certify('other.pem', 'key.pem'), 'the key belongs to another certificate'],
  ['a certificate that is none', () => writeFileSync(given('cert.pem'), 'x'), 'TLS_CERT: no certificate in PEM form'],
  ['a key that is none', () => writeFileSync(given('key.pem'), 'x'), 'TLS_KEY: no key in PEM form'],
  ['an empty file', () => writeFileSync(given('key.pem'), ''), 'TLS_KEY names an empty file'],
  [
    'a folder',
    () => {
      rmSync(given('cert.pem'));
      mkdirSync(given('cert.pem'));
    },
    'TLS_CERT names a folder, not a file',
  ],
])('refuses %s, and what was there stays in use', async (_what, spoil, complaint) => {
  certify('cert.pem', 'key.pem');
  await make();
  const before = ['cert.pem', 'key.pem'].map((name) => read(`proxy/${name}`));
  spoil();
  await expect(make()).rejects.toThrow(complaint);
  expect(['cert.pem', 'key.pem'].map((name) => read(`proxy/${name}`))).toEqual(before);
});
