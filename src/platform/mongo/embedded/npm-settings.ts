/**
 * Converts the user's npm settings for the registry (address, certificates, proxy, login) to options of pacote, which reads no
 * settings itself. The settings come from the npm program, because only npm knows all places where they are stored.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Options } from 'pacote';

const npmTimeoutMs = 15_000;

/**
 * The npm settings that apply in the folder; none (pacote's defaults) when npm is not on the search path. `env` is the environment
 * of npm, by default our own.
 */
export async function readNpmSettings(folder: string = process.cwd(), env?: NodeJS.ProcessEnv): Promise<Options> {
  const listed = await listNpmConfig(folder, env);
  return listed ? { ...(await readLogins(listed, folder)), ...(await toPacoteOptions(listed)) } : {};
}

async function listNpmConfig(folder: string, env?: NodeJS.ProcessEnv): Promise<Record<string, unknown> | null> {
  try {
    // On Windows, npm is a script that needs a shell.
    const { stdout } = await promisify(execFile)('npm', ['config', 'list', '--json'], {
      shell: process.platform === 'win32',
      cwd: folder,
      ...(env && { env }),
      timeout: npmTimeoutMs,
      maxBuffer: 8 * 1024 * 1024,
    });
    return JSON.parse(stdout) as Record<string, unknown>;
  } catch {
    return null;
  }
}

async function toPacoteOptions(listed: Record<string, unknown>): Promise<Options> {
  const scoped = Object.entries(listed).filter(([name]) => /^@.+:registry$/.test(name));
  return Object.fromEntries(
    Object.entries({
      ...Object.fromEntries(scoped),
      registry: listed.registry,
      ca: await readAuthorities(listed),
      cert: listed.cert,
      key: listed.key,
      proxy: listed.proxy,
      httpsProxy: listed['https-proxy'],
      noProxy: listed.noproxy,
      strictSSL: listed['strict-ssl'],
      offline: listed.offline,
      replaceRegistryHost: listed['replace-registry-host'],
    }).filter(([, value]) => value !== null && value !== undefined && value !== ''),
  );
}

async function readAuthorities(listed: Record<string, unknown>): Promise<unknown> {
  if (typeof listed.cafile !== 'string') return listed.ca;
  const text = await readFile(listed.cafile, 'utf8').catch(() => '');
  const end = '-----END CERTIFICATE-----';
  const certificates = text.split(end).filter((part) => part.includes('BEGIN CERTIFICATE'));
  return certificates.length > 0 ? certificates.map((part) => `${part.trim()}\n${end}\n`) : listed.ca;
}

/** npm does not print credentials, so those of a private registry are read from npm's own files. */
async function readLogins(listed: Record<string, unknown>, folder: string): Promise<Options> {
  const files = [listed.globalconfig, listed.userconfig, join(folder, '.npmrc')].filter(
    (file) => typeof file === 'string',
  );
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')));
  const lines = texts.flatMap((text) => text.split('\n')).map((line) => /^\s*(\/\/[^=]+?)\s*=\s*(.*?)\s*$/.exec(line));
  return Object.fromEntries(lines.flatMap((found) => (found ? [[found[1], found[2]]] : []))) as Options;
}
