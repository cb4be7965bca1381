/** login, logout, whoami. */
import { hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { createClient } from '../client/client.js';
import { PlainError } from '../program.js';
import { type Command, textOf } from './command.js';
import { profileFile, readProfile, removeProfile, writeProfile } from './profile.js';

const EXPIRES_IN = '90 days';

const login: Command = {
  name: 'login',
  usage: '[<login>]',
  summary: 'Stores a token for the following commands, in a file that only you can read',
  help: `  --expires-in <time>  how long the token is valid (default "${EXPIRES_IN}")
  The password is asked for, or read from VIGIL_PASSWORD.`,
  options: { 'expires-in': { type: 'string' } },
  needsLogin: false,
  arguments: [0, 1],
  async run({ url, output, env, signal }, values, [name = env.USER || userInfo().username]) {
    const password = env.VIGIL_PASSWORD || (process.stdin.isTTY ? await askPassword(name) : '');
    if (password === '') throw new PlainError('No password: set VIGIL_PASSWORD, or run this at a terminal');
    const expiresIn = textOf(values, 'expires-in') ?? EXPIRES_IN;
    const { token, expiresAt } = await createClient({ url })
      .auth.issueToken({ login: name, password, expiresIn }, { signal })
      .catch((error: { status?: number }) => {
        throw error.status === 401 ? new PlainError('The login or the password is wrong') : error;
      });
    const file = profileFile(env);
    await writeProfile(file, { url, token, login: name, expiresAt });
    output.say(`Logged in to ${url} as ${name}, from ${hostname()}. The token is in ${file}.`);
  },
};

const logout: Command = {
  name: 'logout',
  usage: '',
  summary: 'Revokes the stored token, and removes it',
  needsLogin: false,
  arguments: [0, 0],
  async run({ output, env, signal }) {
    const file = profileFile(env);
    const stored = await readProfile(file);
    if (stored === null) return output.say('There is no stored login');
    // The stored token is removed even if the service is unavailable.
    const revoked = await createClient({ ...stored, attempts: 1, login: undefined })
      .auth.logOut({ signal })
      .then(() => true)
      .catch(() => false);
    await removeProfile(file);
    output.say(revoked ? `Logged out of ${stored.url}` : `Removed the token; ${stored.url} did not revoke it`);
  },
};

const whoami: Command = {
  name: 'whoami',
  usage: '',
  summary: 'Shows the current user, with credentials and scopes',
  needsLogin: true,
  arguments: [0, 0],
  async run({ client, output, signal }) {
    output.one(await client.auth.whoAmI({ signal }));
  },
};

/** Asks for a password without showing it. */
function askPassword(login: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true });
  process.stderr.write(`Password of ${login}: `);
  return new Promise((resolve, reject) => {
    terminal.on('SIGINT', () => terminal.close());
    terminal.on('close', () => {
      process.stderr.write('\n');
      reject(new PlainError('No password given.'));
    });
    terminal.question('', (answer) => {
      resolve(answer);
      terminal.close();
    });
  });
}

export const ACCOUNT_COMMANDS: readonly Command[] = [login, logout, whoami];
