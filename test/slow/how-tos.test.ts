/**
 * The how-tos of src/README.md, carried out with an example each on a copy of the repository: the files that they name are all that is
 * needed, the copy passes the tests of documents, and the service that is built of it does what was added.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readCode, readSection } from '../support/docs/markdown.js';
import { ADMIN, testUri } from '../support/fixture.js';
import { findFreePort } from '../support/ports.js';
import { type Program, SERVICE, startProgram } from '../support/program.js';
import { until } from '../support/until.js';

interface Edit {
  readonly file: string;
  /** A text that the file contains once. */
  readonly find: string;
  readonly replace: string;
}

/** Inserts text before another. */
const before = (file: string, find: string, text: string): Edit => ({ file, find, replace: `${text}${find}` });
const after = (file: string, find: string, text: string): Edit => ({ file, find, replace: `${find}${text}` });

/** By the beginning of its how-to. */
const EXAMPLES: Readonly<Record<string, readonly Edit[]>> = {
  'a list parameter': [
    before('src/core/list.ts', '  readonly search: string | null;', '  readonly idPrefix?: string | null;\n'),
    after(
      'src/core/list.ts',
      '({ filters, search }: Selection): boolean => filters.length > 0',
      ' || idPrefix != null',
    ),
    {
      file: 'src/core/list.ts',
      find: '({ filters, search }: Selection)',
      replace: '({ filters, search, idPrefix }: Selection)',
    },
    before(
      'src/platform/http/list-params.ts',
      '  search: {\n',
      "  idPrefix: { schema: z.string(), example: 'truck-', description: 'How own ids begin' },\n",
    ),
    before(
      'src/platform/http/list-params.ts',
      '    search: parseSearch(query),',
      "    idPrefix: parseText(query, 'idPrefix'),\n",
    ),
    before(
      'src/platform/mongo/schema/mapping.ts',
      '  if (selection.search !== null) {',
      "  if (selection.idPrefix) conditions.push({ id: { $gte: selection.idPrefix, $lt: selection.idPrefix + '~' } });\n",
    ),
    before('docs/reference/http-api.md', '| `search` |', '| `idPrefix` | How own ids begin |\n'),
  ],
  'an event': [
    before('src/core/event-names.ts', "  'object-command-err',", "  'object-command-failed',\n"),
    {
      file: 'src/core/payload.ts',
      find: "  failed: 'object-command-err',",
      replace: "  failed: 'object-command-failed',",
    },
    before(
      'src/openapi/asyncapi.ts',
      "  { name: 'object-command-err',",
      "  { name: 'object-command-failed', summary: 'A command became `failed`', payload: COMMAND },\n",
    ),
    before(
      'docs/reference/live-events.md',
      '| `object-command-err` |',
      '| `object-command-failed` | A command became `failed` | the same | the same |\n',
    ),
  ],
  'a page of the console': [
    {
      file: 'src/console/log/hello.tsx',
      find: '',
      replace: "import { t } from '../text/language.js';\n\nexport const Hello = () => <h1>{t('nav.hello')}</h1>;\n",
    },
    before(
      'src/console/shell/routes.ts',
      "  ['/log',",
      "  ['/hello', page(() => import('../log/hello.js').then(({ Hello }) => Hello))],\n",
    ),
    before(
      'src/console/shell/frame.tsx',
      "    { path: '/account',",
      "    { path: '/hello', text: 'nav.hello', icon: 'activity' },\n",
    ),
    before('src/console/state/session.ts', "  models: may('GET', '/models'),", "  hello: may('GET', '/hello'),\n"),
    before('src/console/text/english.ts', "  'nav.label':", "  'nav.hello': 'Hello',\n"),
    before('src/console/text/german.ts', "  'nav.label':", "  'nav.hello': 'Hallo',\n"),
    { file: 'src/pages/console.ts', find: '(?:s|log|', replace: '(?:s|log|hello|' },
    before('docs/reference/console.md', '| `/log` |', '| `/hello` | A greeting |\n'),
  ],
  'a store': [
    before('src/core/stores.ts', '  labels: {', '  recipes: { fields: { name, steps: z.int().min(1).nullish() } },\n'),
    before(
      'src/entities/examples.ts',
      '  Label: {',
      "  Recipe: { created: { name: 'Bread', steps: 3 }, changed: { steps: 4 } },\n",
    ),
    before('docs/reference/stores.md', '| `labels` |', '| `recipes` | `name` | – | – | – | Recipes |\n'),
  ],
  'a route': [
    before(
      'src/commands/routes.ts',
      'export const COMMAND_ROUTES = [',
      `const describeQueue = defineRoute({
  method: 'GET',
  path: '/api/v1/objects/:id/queue',
  name: 'describeQueue',
  tag: 'commands',
  summary: 'Whether the object can take another command',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY },
  answer: { description: 'Whether as many commands wait as may', schema: z.object({ success: z.literal(true), full: z.boolean() }) },
  errors: [404],
  handle: (deps: CommandDeps) => async (req, res) => {
    const { _id } = await getObject(deps, req, res);
    sendJson(res, JSON.stringify({ success: true, full: await isQueueFull(deps.database, _id) }));
  },
});

`,
    ),
    after('src/commands/routes.ts', 'export const COMMAND_ROUTES = [', 'describeQueue, '),
    before(
      'docs/reference/http-api.md',
      '| GET | `/api/v1/objects/:id/commands` |',
      '| GET | `/api/v1/objects/:id/queue` | Whether the object can take another command |\n',
    ),
  ],
  'a metric': [
    before(
      'src/platform/ops/metrics.ts',
      "  add('mongodb_pool_waiting',",
      "  add('mongodb_pool_free', 'Connections that are free', ({ pool }) => pool().open - pool().inUse);\n",
    ),
  ],
};

const HOW_TOS = readSection('src/README.md', 'How to add …');
const base = mkdtempSync(join(tmpdir(), 'vigil-how-tos-'));
const run = promisify(execFile);
let service: Program;
let url: string;
let opsUrl: string;
let token: string;

/** Files that a how-to names; those in `src` without it. */
function filesOf(title: string): string[] {
  const [howTo] = HOW_TOS.split('\n- ').filter((item) => item.startsWith(`**${title}**`));
  return readCode(howTo?.replaceAll('\n', ' '))
    .filter((code) => /^[\w-]+\/.*\.(?:ts|tsx|md)$/.test(code))
    .map((code) => (/^(?:docs|test)\//.test(code) ? code : `src/${code}`));
}

function apply({ file, find, replace }: Edit): void {
  const path = join(base, file);
  mkdirSync(dirname(path), { recursive: true });
  const text = find === '' ? '' : readFileSync(path, 'utf8');
  if (text.split(find).length !== 2 && find !== '') throw new Error(`${file} does not contain once: ${find}`);
  writeFileSync(path, find === '' ? replace : text.replace(find, () => replace));
}

/** Runs a program of Node.js in the copy; throws its output if it fails. */
async function node(...args: string[]): Promise<void> {
  await run(process.execPath, args, { cwd: base }).catch((error) => {
    throw new Error(`${args.join(' ')}\n${error.stdout}\n${error.stderr}`);
  });
}

// biome-ignore lint/suspicious/noExplicitAny: the answers of what the examples add have no type
async function request(method: string, path: string, body?: object): Promise<{ status: number; body: any }> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const answer = await fetch(`${url}/api/v1/${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return { status: answer.status, body: await answer.json() };
}

async function startService(): Promise<void> {
  const port = await findFreePort();
  const opsPort = await findFreePort();
  url = `http://127.0.0.1:${port}`;
  opsUrl = `http://127.0.0.1:${opsPort}`;
  const env = {
    MONGODB_URI: testUri(),
    PORT: String(port),
    OPS_PORT: String(opsPort),
    MQTT_PORT: '',
    OVERLOAD_DELAY: '0',
    DATA_DIR: join(base, 'data'),
    ADMIN_LOGIN: ADMIN.login,
    ADMIN_PASSWORD: ADMIN.password,
  };
  service = startProgram(
    SERVICE.map((arg) => arg.replace('dist/', `${base}/dist/`)),
    env,
  );
  const isReady = () => fetch(`${opsUrl}/ready`).then(({ ok }) => ok || service.child.exitCode !== null);
  await until(() => isReady().catch(() => service.child.exitCode !== null), 'the service to be ready');
  if (service.child.exitCode !== null) throw new Error(service.output());
}

beforeAll(async () => {
  const names = [
    'src',
    'scripts',
    'docs',
    'test',
    'README.md',
    'CHANGELOG.md',
    'package.json',
    'package-lock.json',
    'tsconfig.json',
  ];
  for (const name of [...names, 'tsconfig.console.json', 'jest.config.ts', '.env.example'])
    cpSync(resolve(name), join(base, name), { recursive: true });
  symlinkSync(resolve('node_modules'), join(base, 'node_modules'));
  for (const edit of Object.values(EXAMPLES).flat()) apply(edit);
  await node('node_modules/typescript/bin/tsc', '-p', 'scripts/tsconfig.build.json');
  cpSync(resolve('dist/console'), join(base, 'dist/console'), { recursive: true });
  await startService();
  const { body } = await request('POST', 'auth/token', ADMIN);
  token = body.token;
  for (const id of ['truck-7', 'truck-8', 'van-1']) await request('POST', 'objects', { id, name: id });
});
afterAll(async () => {
  await service?.end('SIGTERM');
  rmSync(base, { recursive: true, force: true });
});

describe('every file to touch', () => {
  test.each(Object.entries(EXAMPLES))('names those for %s', (title, edits) => {
    const isNew = ({ find }: Edit): boolean => find === '';
    const touched = edits.filter((edit) => !isNew(edit)).map(({ file }) => file);
    expect(filesOf(title)).toEqual(expect.arrayContaining(touched));
  });
});

test('adds what the documents are held to', async () => {
  const jest = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--selectProjects', 'unit'];
  await node(...jest, '--testPathPatterns', 'test/unit/docs/reference', 'test/unit/openapi');
});

test('adds what the browser loads', () => node('node_modules/typescript/bin/tsc', '-p', 'tsconfig.console.json'));

test('adds a parameter to every list and to bulk requests', async () => {
  const listed = await request('GET', 'objects?only=id&idPrefix=truck-');
  expect(listed.body.map(({ id }: { id: string }) => id)).toEqual(['truck-7', 'truck-8']);
  const changed = await request('PATCH', 'objects?idPrefix=van-', { status: 'sold' });
  expect(changed.body).toMatchObject({ count: 1, done: 1 });
});

test('adds an event, live and past', async () => {
  const { position } = (await request('GET', 'events')).body;
  await request('POST', 'objects/truck-7/commands/stop', {});
  const [{ _id }] = (await request('GET', 'objects/truck-7/commands')).body;
  await request('POST', `objects/truck-7/commands/${_id}/result`, { status: 'failed' });
  const names: string[] = [];
  let since = position;
  await until(async () => {
    const page = (await request('GET', `events?objects=truck-7&wait=1&since=${encodeURIComponent(since)}`)).body;
    names.push(...page.events.map(({ event }: { event: string }) => event));
    since = page.position;
    return names.length >= 2;
  }, 'the events of the command');
  expect(names).toEqual(['object-command-req', 'object-command-failed']);
  const past = await request('GET', 'objects/truck-7/events?events=object-command-failed');
  expect(past.body).toMatchObject([{ event: 'object-command-failed' }]);
});

test('adds a page', async () => {
  const page = await fetch(`${url}/hello`, { headers: { Accept: 'text/html' } });
  expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')]);
});

test('adds a store', async () => {
  expect(await request('POST', 'recipes', { name: 'Bread', steps: 0 })).toMatchObject({ status: 400 });
  const { body } = await request('POST', 'recipes', { name: 'Bread', steps: 3 });
  expect(await request('GET', `recipes/${body._id}`)).toMatchObject({ status: 200, body: { name: 'Bread', steps: 3 } });
});

test('adds a route', async () => {
  expect(await request('GET', 'objects/truck-8/queue')).toEqual({ status: 200, body: { success: true, full: false } });
  expect(await request('GET', 'objects/nothing/queue')).toMatchObject({ status: 404 });
});

test('adds a metric', async () => {
  const metrics = await fetch(`${opsUrl}/metrics`).then((answer) => answer.text());
  expect(metrics).toMatch(/^vigil_mongodb_pool_free \d+$/m);
});
