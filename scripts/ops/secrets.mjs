/**
 * The first start with Docker: makes the passwords and keys that are missing, each readable by the one that needs it, and
 * hands over a certificate that was given. What is there stays as it is.
 */
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The users of the images: node, mongodb, nginx. */
const OWNERS = { app: 1000, mongo: 999, proxy: 101 };

const random = (bytes) => randomBytes(bytes).toString('hex');

/** `own` is told of each file and its owner. */
export function makeSecrets(folder, given, own = (file, owner) => chownSync(file, owner, owner)) {
  const place = (owner, name) => join(folder, owner, name);
  const write = (owner, name, text) => {
    const file = place(owner, name);
    // Whole or not at all: a start that is cut off must not leave half a password.
    writeFileSync(`${file}.new`, text, { mode: 0o400 });
    own(`${file}.new`, OWNERS[owner]);
    renameSync(`${file}.new`, file);
  };
  const keep = (owner, name, make) => {
    const file = place(owner, name);
    if (!existsSync(file)) write(owner, name, make());
    return readFileSync(file, 'utf8').trim();
  };
  keep('mongo', 'keyfile', () => random(378));
  keep('mongo', 'root-password', () => random(24));
  const appPassword = keep('mongo', 'app-password', () => random(24));
  keep(
    'app',
    'mongodb-uri',
    () => `mongodb://vigil:${appPassword}@mongo:27017/vigil?replicaSet=vigil&authSource=vigil`,
  );
  keep('app', 'secret', () => random(48));
  keep('app', 'admin-password', () => randomBytes(15).toString('base64url'));
  giveCertificate(folder, given, own);
}

function giveCertificate(folder, given, own) {
  const names = ['cert.pem', 'key.pem'];
  const [hasCert, hasKey] = names.map((name) => isFilled(join(given, name)));
  if (hasCert !== hasKey)
    throw new Error(`TLS_CERT and TLS_KEY: ${hasCert ? 'the key' : 'the certificate'} is missing`);
  for (const name of names) {
    const file = join(folder, 'proxy', name);
    rmSync(file, { force: true });
    if (!hasCert) continue;
    copyFileSync(join(given, name), file);
    chmodSync(file, 0o400);
    own(file, OWNERS.proxy);
  }
}

function isFilled(file) {
  const found = statSync(file, { throwIfNoEntry: false });
  return found?.isFile() === true && found.size > 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    makeSecrets(process.env.SECRETS_DIR || '/secrets', process.env.GIVEN_DIR || '/given');
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
