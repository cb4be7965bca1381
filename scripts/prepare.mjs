/**
 * Makes a fresh clone ready to run: installs the dependencies and compiles the sources, each only when it is needed. It runs
 * before `npm start`, `npm test` and the tools, so it uses nothing but Node, and is silent when nothing has to be done.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const oldestNode = [20, 19];
const lockBeatMs = 1_000;
const lockStaleMs = 10_000;
const lockPollMs = 100;

const root = fileURLToPath(new URL('..', import.meta.url));
const isQuiet = process.argv.includes('--quiet');
const path = (...parts) => join(root, ...parts);

/** A failure whose message is all that a person needs. */
const fail = (message) => Object.assign(new Error(message), { isPlain: true });

function say(message) {
  if (!isQuiet) process.stderr.write(`${message}\n`);
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const [oldestMajor, oldestMinor] = oldestNode;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return;
  throw fail(`Node ${oldestNode.join('.')} or newer is needed; this is Node ${process.versions.node}.`);
}

function readText(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

function filesUnder(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = join(folder, entry.name);
    return entry.isDirectory() ? filesUnder(file) : [file];
  });
}

// --- dependencies ---

const installStamp = path('node_modules', '.vigil-stamp');

/** What the installed tree is made for: a tree that came with the folder from another kind of machine does not run here. */
function wantedInstall() {
  const lock = createHash('sha256')
    .update(readFileSync(path('package-lock.json')))
    .digest('hex');
  return `${lock} ${process.platform}-${process.arch}`;
}

function isInstalled() {
  if (readText(installStamp) === wantedInstall()) return true;
  if (!hasWhatTheLockNames()) return false;
  writeFileSync(installStamp, wantedInstall());
  return true;
}

/** Whether somebody ran npm by hand: npm writes its own list last, so a list that agrees is a whole installation. */
function hasWhatTheLockNames() {
  const listed = readText(path('node_modules', '.package-lock.json'));
  if (!listed) return false;
  const installed = JSON.parse(listed).packages;
  const wanted = Object.entries(JSON.parse(readText(path('package-lock.json'))).packages);
  return wanted.every(([folder, { version, optional, peer }]) => {
    if (folder === '' || ((optional || peer) && !installed[folder])) return true;
    return installed[folder]?.version === version && existsSync(path(folder));
  });
}

async function install() {
  say('Installing dependencies (first start only) …');
  rmSync(installStamp, { force: true });
  // Development packages too, whatever NODE_ENV says: the compiler is one of them.
  const options = ['--include=dev', '--ignore-scripts', '--no-audit', '--no-fund'];
  const npm = process.env.npm_execpath ?? '';
  // Another package manager may have started us: only npm reads this lock file.
  if (/^npm(-cli)?\.c?js$/.test(basename(npm))) await run(process.execPath, [npm, 'ci', ...options]);
  else await run('npm', ['ci', ...options], { shell: process.platform === 'win32' });
  writeFileSync(installStamp, wantedInstall());
}

// --- the build ---

const buildStamp = path('dist', '.stamp');

function wantedBuild() {
  const sources = [
    ...filesUnder(path('src')),
    ...filesUnder(path('scripts')).filter((file) => file.endsWith('.ts') || file.endsWith('.json')),
    path('tsconfig.json'),
    path('package-lock.json'),
  ].sort();
  const hash = createHash('sha256');
  for (const file of sources) {
    const content = readFileSync(file);
    hash.update(`${relative(root, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

function isBuilt() {
  return readText(buildStamp) === wantedBuild();
}

async function build() {
  say('Compiling …');
  const wanted = wantedBuild();
  rmSync(path('dist'), { recursive: true, force: true });
  await run(process.execPath, [
    path('node_modules', 'typescript', 'bin', 'tsc'),
    '-p',
    path('scripts', 'tsconfig.build.json'),
  ]);
  const assets = filesUnder(path('src')).filter((file) => !/\.(ts|md)$/.test(file));
  for (const file of assets) cpSync(file, path('dist', relative(root, file)));
  writeFileSync(buildStamp, wanted);
}

// --- running things, one at a time ---

function run(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    let said = '';
    const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], ...options });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        said += text;
      });
    }
    child.on('error', (error) => reject(fail(`${program} cannot be started: ${error.message}`)));
    child.on('close', (code) => {
      if (code === 0) resolve();
      else reject(fail(`${said.trim()}\n\nFailed: ${basename(program)} ${args.join(' ')}`));
    });
  });
}

/** Runs the work alone among all processes that prepare this folder. */
async function alone(work) {
  const lock = join(tmpdir(), `vigil-prepare-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`);
  for (let waited = 0; !tryToTake(lock); waited += 1) {
    if (waited === 0) say('Another start prepares this folder; waiting for it …');
    await sleep(lockPollMs);
  }
  const beat = setInterval(() => utimesSync(lock, new Date(), new Date()), lockBeatMs);
  try {
    return await work();
  } finally {
    clearInterval(beat);
    rmSync(lock, { recursive: true, force: true });
  }
}

function tryToTake(lock) {
  try {
    mkdirSync(lock);
    writeFileSync(join(lock, 'process'), String(process.pid));
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  if (isStale(lock)) rmSync(lock, { recursive: true, force: true });
  return false;
}

/** A holder that was killed is gone, or, where its number was given to another process, does not beat any more. */
function isStale(lock) {
  const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  if (age > lockStaleMs) return true;
  try {
    process.kill(Number(readText(join(lock, 'process'))) || process.pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

async function prepare() {
  checkNode();
  if (isInstalled() && isBuilt()) return;
  await alone(async () => {
    if (!isInstalled()) await install();
    if (!isBuilt()) await build();
  });
}

prepare().catch((error) => {
  process.stderr.write(`${error.isPlain ? error.message : error.stack}\n`);
  process.exitCode = 1;
});
