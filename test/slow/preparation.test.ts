/** The preparation of a fresh clone (scripts/prepare.mjs), on a tiny project whose only dependency is the compiler of this one. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

let base: string;

async function write(name: string, content: string | object): Promise<void> {
  await mkdir(dirname(join(base, name)), { recursive: true });
  await writeFile(join(base, name), typeof content === 'string' ? content : JSON.stringify(content));
}

function prepare(...args: string[]): Promise<{ code: number; said: string }> {
  return new Promise((done) => {
    const env = { ...process.env, NODE_ENV: 'production' };
    execFile(process.execPath, [join(base, 'scripts', 'prepare.mjs'), ...args], { env }, (error, stdout, stderr) => {
      done({ code: typeof error?.code === 'number' ? error.code : 0, said: stdout + stderr });
    });
  });
}

const built = async (folder = 'dist') => (await readdir(join(base, folder), { recursive: true })).sort();

beforeAll(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'vigil-prepare-')));
  await cp(resolve('scripts/prepare.mjs'), join(base, 'scripts', 'prepare.mjs'));
  await cp(resolve('scripts/tsconfig.build.json'), join(base, 'scripts', 'tsconfig.build.json'));
  const compiler = relative(base, await realpath(resolve('node_modules/typescript')));
  const devDependencies = { typescript: `file:${compiler}` };
  await write('package.json', { name: 'tiny', version: '1.0.0', type: 'module', devDependencies });
  await write('package-lock.json', {
    name: 'tiny',
    version: '1.0.0',
    lockfileVersion: 3,
    packages: {
      '': { name: 'tiny', version: '1.0.0', devDependencies },
      [compiler]: { version: '7.0.2', dev: true },
      'node_modules/typescript': { resolved: compiler, link: true },
    },
  });
  await write('tsconfig.json', {
    compilerOptions: { module: 'nodenext', strict: true, rootDir: '.', noEmit: true, types: [] },
  });
  await write('src/main.ts', 'export const one: number = 1;\n');
  await write('src/pages/index.html', '<p>page</p>\n');
});

afterAll(() => rm(base, { recursive: true, force: true }));

test('installs and compiles a fresh clone once', async () => {
  const first = await prepare();
  expect(first).toEqual({ code: 0, said: 'Installing dependencies (first start only) …\nCompiling …\n' });
  expect(await built()).toEqual(['.stamp', 'src', 'src/main.js', 'src/pages', 'src/pages/index.html']);
  const stamp = await readFile(join(base, 'dist', '.stamp'), 'utf8');
  expect(await prepare()).toEqual({ code: 0, said: '' });
  expect(await readFile(join(base, 'dist', '.stamp'), 'utf8')).toBe(stamp);
});

test('compiles a change once if several start at the same time, and removes old files', async () => {
  await write('src/other.ts', 'export const two: number = 2;\n');
  await rm(join(base, 'src', 'main.ts'));
  const runs = await Promise.all([prepare('--quiet'), prepare('--quiet'), prepare('--quiet')]);
  expect(runs).toEqual(Array(3).fill({ code: 0, said: '' }));
  expect(await built('dist/src')).toEqual(['other.js', 'pages', 'pages/index.html']);
});

test('fails with the message of the compiler until the source is fixed', async () => {
  await write('src/other.ts', 'export const two: string = 2;\n');
  for (const _again of [1, 2]) {
    const { code, said } = await prepare('--quiet');
    expect([code, said]).toEqual([1, expect.stringMatching(/src\/other\.ts\(1,14\): error TS2322/)]);
  }
  await write('src/other.ts', 'export const two: number = 2;\n');
  expect(await prepare('--quiet')).toEqual({ code: 0, said: '' });
});

test('repeats an incomplete installation, and accepts one made by hand', async () => {
  await rm(join(base, 'node_modules', '.vigil-stamp'));
  expect((await prepare()).said).toBe('');
  await rm(join(base, 'node_modules', '.vigil-stamp'));
  await rm(join(base, 'node_modules', 'typescript'));
  expect(await prepare()).toEqual({ code: 0, said: 'Installing dependencies (first start only) …\n' });
});

test('fails with the message of npm if the installation fails', async () => {
  // The lock file of another package.json: npm refuses it without asking the network.
  await write('package-lock.json', { lockfileVersion: 3, packages: { 'node_modules/other': { version: '1.0.0' } } });
  const { code, said } = await prepare('--quiet');
  expect(code).toBe(1);
  expect(said).toMatch(/npm (error|ERR!)[\s\S]*Failed: .*npm.* ci/);
});
