/**
 * For the first start with Docker: creates missing passwords and keys, each readable only by the user that needs it, and copies a
 * given certificate. Existing files stay unchanged.
 */
import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { chownSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The users of the images: node, mongodb, nginx. */
const OWNERS = { app: 1000, mongo: 999, proxy: 101, grafana: 472 };
const MEMBERS = 'mongo:27017';

const random = (bytes) => randomBytes(bytes).toString('hex');

/**
 * `own` is called with each file and its owner. `members` are the addresses of the MongoDB members, which may change; existing secrets
 * stay unchanged.
 */
export function makeSecrets(folder, given, own = (file, owner) => chownSync(file, owner, owner), members = MEMBERS) {
  const place = (owner, name) => join(folder, owner, name);
  const write = (owner, name, text) => {
    const file = place(owner, name);
    // Written atomically: an interrupted start must not leave half a password.
    rmSync(`${file}.new`, { force: true });
    writeFileSync(`${file}.new`, text, { mode: 0o400 });
    own(`${file}.new`, OWNERS[owner]);
    renameSync(`${file}.new`, file);
  };
  const read = (owner, name) =>
    existsSync(place(owner, name)) ? readFileSync(place(owner, name), 'utf8').trim() : null;
  const keep = (owner, name, make) => {
    if (read(owner, name) === null) write(owner, name, make());
    return read(owner, name);
  };
  // Read before anything is written, so that an invalid certificate changes nothing.
  const certificate = readCertificate(given);
  keep('mongo', 'keyfile', () => random(378));
  keep('mongo', 'root-password', () => random(24));
  const appPassword = keep('mongo', 'app-password', () => random(24));
  const uri = `mongodb://vigil:${appPassword}@${members}/vigil?replicaSet=vigil&authSource=vigil`;
  if (read('app', 'mongodb-uri') !== uri) write('app', 'mongodb-uri', uri);
  keep('app', 'secret', () => random(48));
  keep('app', 'admin-password', () => randomBytes(15).toString('base64url'));
  if (existsSync(place('grafana', ''))) {
    keep('grafana', 'admin-password', () => randomBytes(15).toString('base64url'));
    // Grafana does not start without this file. An operator stores a token in it.
    keep('grafana', 'vigil-token', () => 'none');
  }
  for (const name of ['key.pem', 'cert.pem']) {
    if (certificate === null) rmSync(place('proxy', name), { force: true });
    else write('proxy', name, certificate[name]);
  }
}

/** The given certificate and its key, or null. Throws if they do not belong together. */
function readCertificate(given) {
  const certificateText = readGiven(join(given, 'cert.pem'), 'TLS_CERT');
  const keyText = readGiven(join(given, 'key.pem'), 'TLS_KEY');
  if (certificateText === null && keyText === null) return null;
  if (certificateText === null) throw new Error('TLS_CERT and TLS_KEY: the certificate is missing');
  if (keyText === null) throw new Error('TLS_CERT and TLS_KEY: the key is missing');
  const certificate = parse('TLS_CERT: no certificate in PEM form', () => new X509Certificate(certificateText));
  const key = parse('TLS_KEY: no key in PEM form without a password', () => createPrivateKey(keyText));
  if (!certificate.checkPrivateKey(key))
    throw new Error('TLS_CERT and TLS_KEY: the key belongs to another certificate');
  const until = new Date(certificate.validTo);
  if (until < new Date()) process.stderr.write(`TLS_CERT: the certificate expired on ${until.toISOString()}\n`);
  return { 'cert.pem': certificateText, 'key.pem': keyText };
}

/** The content of a file; null if none was given, which appears as /dev/null. */
function readGiven(file, variable) {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined || found.isCharacterDevice()) return null;
  if (found.isDirectory()) throw new Error(`${variable} names a folder, not a file`);
  if (found.size === 0) throw new Error(`${variable} names an empty file`);
  return readFileSync(file);
}

function parse(complaint, read) {
  try {
    return read();
  } catch (error) {
    throw new Error(`${complaint} (${error.message})`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    const { SECRETS_DIR, GIVEN_DIR, MONGODB_MEMBERS } = process.env;
    makeSecrets(SECRETS_DIR || '/secrets', GIVEN_DIR || '/given', undefined, MONGODB_MEMBERS || undefined);
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
