/** The command line of Vigil: finds the command, parses its arguments, runs it, and prints errors. */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { VigilError } from '../client/client.js';
import { explainError, PlainError, runProgram, UsageError } from '../program.js';
import { ACCOUNT_COMMANDS } from './account-commands.js';
import { APPLY_COMMANDS } from './apply-command.js';
import { type Command, type Options, openClient, type Session, textOf, type Values } from './command.js';
import { createCompletionCommand } from './completion.js';
import { DEVICE_COMMANDS } from './device-command.js';
import { EXPORT_COMMANDS } from './export-command.js';
import { LISTEN_COMMANDS } from './listen-command.js';
import { OBJECT_COMMANDS } from './object-commands.js';
import { createOutput } from './output.js';
import { chooseProfile, profileFile, readProfile } from './profile.js';
import { STORE_COMMANDS } from './store-commands.js';

const SHARED: Options = {
  url: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
};

const SHARED_HELP = `  --url <address>      the service (default: VIGIL_URL, that of vigil login, or http://127.0.0.1:8080)
  --json               JSON for programs: one line for each element
  -h, --help           shows this text`;

const COMMANDS: readonly Command[] = [
  ...ACCOUNT_COMMANDS,
  ...OBJECT_COMMANDS,
  ...EXPORT_COMMANDS,
  ...LISTEN_COMMANDS,
  ...DEVICE_COMMANDS,
  ...STORE_COMMANDS,
  ...APPLY_COMMANDS,
  createCompletionCommand(() => COMMANDS, Object.keys(SHARED)),
];

function printHelp(): void {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length)) + 2;
  const lines = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`);
  console.log(`vigil <command> [<arguments>]\n\n${lines.join('\n')}\n
vigil <command> --help shows the arguments of a command, vigil --version the version. Credentials: VIGIL_TOKEN, or vigil login.`);
}

async function printVersion(): Promise<void> {
  const { version } = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8'));
  console.log(version);
}

function printCommandHelp({ name, usage, summary, help }: Command): void {
  console.log(
    `vigil ${[name, usage].join(' ').trim()}\n\n${summary}.\n\n${[help, SHARED_HELP].filter(Boolean).join('\n')}`,
  );
}

function parseArguments({ name, usage, options = {}, arguments: [min, max] }: Command, args: string[]) {
  try {
    const { values, positionals } = parseArgs({ args, options: { ...SHARED, ...options }, allowPositionals: true });
    if (!values.help && (positionals.length < min || positionals.length > max)) {
      throw new UsageError(
        `${positionals.length < min ? 'An argument is missing' : 'Too many arguments'}: vigil ${name} ${usage}`.trimEnd(),
      );
    }
    return { values: values as Values, words: positionals };
  } catch (error) {
    const [reason] = (error as Error).message.split('. ');
    throw new UsageError(`${reason}. "vigil ${name} --help" shows the arguments.`);
  }
}

async function openSession(command: Command, values: Values, signal: AbortSignal): Promise<Session> {
  const { env } = process;
  const stored = await readProfile(profileFile(env));
  const { url, token } = chooseProfile(env, stored, textOf(values, 'url'));
  if (command.needsLogin && token === null)
    throw new PlainError(`Not logged in to ${url}: run vigil login, or set VIGIL_TOKEN`);
  const { stdout, stderr } = process;
  const output = createOutput({ isJson: values.json === true, stdout, stderr, noColor: Boolean(env.NO_COLOR) });
  return { url, token, client: openClient({ url, token, output }), output, signal, env };
}

async function run(args: readonly string[], signal: AbortSignal): Promise<void> {
  const [name, ...rest] = args[0] === 'help' && args[1] !== undefined ? [args[1], '--help'] : args;
  if (name === undefined || ['help', '-h', '--help'].includes(name)) return printHelp();
  if (['version', '--version'].includes(name)) return printVersion();
  const command = COMMANDS.find((one) => one.name === name);
  if (command === undefined) throw new UsageError(`There is no command "${name}". "vigil help" lists them.`);
  const { values, words } = parseArguments(command, rest);
  if (values.help) return printCommandHelp(command);
  await command.run(await openSession(command, values, signal), values, words);
}

function explain(error: unknown): string {
  if (error instanceof TypeError) return error.message;
  if (!(error instanceof VigilError)) return explainError(error);
  const loginHint = error.status === 401 ? ' Run vigil login, or set VIGIL_TOKEN.' : '';
  const requestHint = error.status >= 500 && error.requestId !== null ? ` (request ${error.requestId})` : '';
  return `${error.message}${requestHint}.${loginHint}`;
}

await runProgram((signal) => run(process.argv.slice(2), signal), explain);
