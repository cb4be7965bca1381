/** The programs in examples/: each runs against the real service as examples/README.md says. */
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { readBlocks, readSection } from '../support/docs/markdown.js';
import { runShell } from '../support/docs/shell.js';
import { ADMIN, useService } from '../support/fixture.js';
import { type Program, startProgram, waitForOutput } from '../support/program.js';
import { until } from '../support/until.js';

const ORIGIN = 'http://127.0.0.1:8000';
const service = useService({ env: { CORS_ORIGINS: ORIGIN } });
const programs = new Set<Program>();
let token = '';

beforeAll(async () => {
  const [prepare] = readBlocks(readSection('examples/README.md', 'Prepare'));
  const options = { url: service.url, password: ADMIN.password };
  const { code, stdout, stderr } = await runShell(`${prepare?.body}\necho "$VIGIL_TOKEN"`, options);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  token = stdout.trim();
});

afterEach(async () => {
  await Promise.all([...programs].map((program) => program.end('SIGKILL')));
  programs.clear();
});

/** The arguments of the device in examples/README.md, with the addresses of this service. */
function parseArguments(file: string): string[] {
  const line = readSection('examples/README.md', 'Run a device')
    .split('\n')
    .find((one) => one.includes(file)) as string;
  const args = [...(line.split(file)[1] ?? '').matchAll(/'([^']*)'|(\S+)/g)].map(
    ([, quoted, word]) => (quoted ?? word) as string,
  );
  const mqttUrl = service.service.mqttUrl as string;
  return args.map((arg) => arg.replace('http://127.0.0.1:8080', service.url).replace('mqtt://127.0.0.1:1883', mqttUrl));
}

const isInstalled = (command: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, command)));

const DEVICES = [
  ['device.mjs', 'node'],
  ['device.py', 'python3'],
  ['device.sh', 'bash'],
].filter(([file, command]) => {
  const found = command === 'node' || isInstalled(command as string);
  if (!found) process.stderr.write(`No ${command} on this machine: the test of examples/${file} is skipped\n`);
  return found;
}) as [string, string][];

test.each(DEVICES)('runs %s, which stores packets and carries out a command', async (file, command) => {
  const path = command === 'node' ? process.execPath : command;
  const env = { PATH: process.env.PATH, VIGIL_TOKEN: token };
  const program = startProgram([`examples/${file}`, ...parseArguments(file)], env, path);
  programs.add(program);
  await waitForOutput(program, /^(stored)/m);
  const { headers } = await service.admin('POST', 'objects/sensor-1/commands/blink', { times: 3 });
  await waitForOutput(program, /^command (blink)/m);
  const statusOf = async () => (await service.admin('GET', `${headers.location}?only=status`)).body.status;
  await until(async () => (await statusOf()) === 'done', 'the command is done');
  const { body } = await service.admin('GET', 'objects/sensor-1?only=state.temperature');
  expect(typeof body.state.temperature).toBe('number');
});

test('permits the dashboard to call the service from the origin that examples/README.md names', async () => {
  expect(readSection('examples/README.md', 'Open the dashboard')).toContain(`CORS_ORIGINS=${ORIGIN}`);
  const preflight = { Origin: ORIGIN, 'Access-Control-Request-Method': 'GET' };
  const { headers } = await service.as(null)('OPTIONS', 'events', undefined, {
    ...preflight,
    'Access-Control-Request-Headers': 'authorization,content-type',
  });
  expect(headers['access-control-allow-origin']).toBe(ORIGIN);
  expect(headers['access-control-allow-headers']?.toLowerCase()).toContain('authorization');
});

test('shows objects and live packets in the dashboard', async () => {
  // The other one may still be sent something by a device of a test before.
  await service.admin('POST', 'objects', { id: 'sensor-2', name: 'Sensor 2' });
  await service.admin('POST', 'objects/sensor-2/packets', { temperature: 21.5 });
  const page = openDashboard({ url: service.url, ...ADMIN });
  await until(() => page.text('status') === 'connected', 'the dashboard is connected');
  const row = () => page.rows().find(([name]) => name === 'Sensor 2');
  expect(page.rows()).toHaveLength(2);
  expect(row()).toEqual(['Sensor 2', expect.any(String), 'temperature 21.5']);
  await service.admin('POST', 'objects/sensor-2/packets', { temperature: 22.5 });
  await until(() => row()?.[2] === 'temperature 22.5', 'the packet in the dashboard');
  page.close();
});

/** The script of the page with the few elements that it uses; requests go to the real service. */
function openDashboard(form: Record<string, string>) {
  const [, script = ''] =
    /<script type="module">([\s\S]*)<\/script>/.exec(readFileSync('examples/dashboard.html', 'utf8')) ?? [];
  interface Element {
    readonly dataset: Record<string, string>;
    textContent: string;
    children: Element[];
    submit?: (event: object) => void;
  }
  const newElement = () => {
    const element: Element & Record<string, unknown> = { dataset: {}, textContent: '', children: [] };
    return Object.assign(element, {
      insertRow: () => element.children[element.children.push(newElement()) - 1],
      replaceChildren(...children: Element[]) {
        element.children = children;
      },
      addEventListener(_: string, submit: (event: object) => void) {
        element.submit = submit;
      },
    });
  };
  const elements = new Map(['login', 'status', 'objects'].map((id) => [id, newElement()]));
  const left = new AbortController();
  runInNewContext(script, {
    document: { getElementById: (id: string) => elements.get(id), createElement: newElement },
    fetch: (url: string, options: object) => fetch(url, { ...options, signal: left.signal }),
    FormData: class {
      [Symbol.iterator] = () => Object.entries(form)[Symbol.iterator]();
    },
  });
  elements.get('login')?.submit?.({ preventDefault: () => undefined });
  return {
    text: (id: string) => elements.get(id)?.textContent,
    rows: () =>
      elements.get('objects')?.children.map(({ children }) => children.map(({ textContent }) => textContent)) ?? [],
    close: () => left.abort(),
  };
}
