/** A Chromium for tests and measurements: the one that `CHROMIUM` names, or one that is fetched once, pinned by its hash, as mongod is. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import { type Browser, chromium } from 'playwright-core';
import { defaultCacheFolder } from '../../src/config.js';
import { readNpmSettings } from '../../src/platform/mongo/embedded/npm-settings.js';

const PACKAGE = {
  spec: '@sparticuz/chromium@153.0.0',
  integrity: 'sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==',
};
/** What a bare machine does not have: drawing of WebGL without a graphics card, libraries, a font. */
const LIBRARIES = ['swiftshader.tar.br', 'al2023.tar.br', 'fonts.tar.br'];

interface Chromium {
  readonly program: string;
  readonly env: Record<string, string>;
}

async function findChromium(): Promise<Chromium> {
  if (process.env.CHROMIUM) return { program: process.env.CHROMIUM, env: {} };
  const folder = join(defaultCacheFolder(process.env, homedir(), process.platform), 'chromium-153.0.0');
  if (!existsSync(join(folder, 'chromium'))) await bring(folder);
  return {
    program: join(folder, 'chromium'),
    env: { LD_LIBRARY_PATH: join(folder, 'lib'), FONTCONFIG_PATH: join(folder, 'fonts') },
  };
}

/** WebGL without a graphics card. */
const ARGUMENTS = ['--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'];

/** Puts pages together without that: to imitate a graphics card takes most of a page's time. Maps are drawn all the same. */
export const PLAIN_PAGES = '--disable-gpu-compositing';

/** Starts a browser without a window, with these arguments and those in `CHROMIUM_ARGUMENTS`. */
export async function launchChromium(moreArguments: readonly string[] = []): Promise<Browser> {
  const { program, env } = await findChromium();
  return chromium.launch({
    executablePath: program,
    args: [...ARGUMENTS, ...(process.env.CHROMIUM_ARGUMENTS?.split(' ') ?? []), ...moreArguments],
    env: { ...(process.env as Record<string, string>), ...env },
  });
}

/** Several may bring it at once: each into a folder of its own, and the first one stays. */
async function bring(folder: string): Promise<void> {
  const own = `${folder}.${process.pid}`;
  const unpacked = join(own, 'package');
  await rm(own, { recursive: true, force: true });
  await mkdir(unpacked, { recursive: true });
  // Hundreds of modules, which are seldom needed.
  const { default: pacote } = await import('pacote');
  await pacote.extract(PACKAGE.spec, unpacked, { ...(await readNpmSettings()), integrity: PACKAGE.integrity });
  const program = join(own, 'chromium');
  await writeFile(program, await decompress(join(unpacked, 'bin', 'chromium.br')));
  await chmod(program, 0o755);
  for (const name of LIBRARIES) await unpack(join(unpacked, 'bin', name), own);
  await rm(unpacked, { recursive: true });
  await rename(own, folder).catch(() => rm(own, { recursive: true, force: true }));
}

const decompress = async (file: string): Promise<Buffer> => promisify(brotliDecompress)(await readFile(file));

async function unpack(file: string, folder: string): Promise<void> {
  if (!existsSync(file)) return;
  const archive = join(tmpdir(), `vigil-${process.pid}.tar`);
  await writeFile(archive, await decompress(file));
  await promisify(execFile)('tar', ['-xf', archive, '-C', folder]);
  await rm(archive);
}
