/** The receivers in examples/, called by the real service and by `vigil listen --forward`. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { ADMIN, useService } from '../support/fixture.js';
import { findFreePort } from '../support/ports.js';
import { type Program, startProgram, waitForOutput } from '../support/program.js';
import { startReceiver, verify } from '../support/receiver.js';
import { until } from '../support/until.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1' } });
const programs = new Set<Program>();
afterEach(async () => {
  await Promise.all([...programs].map((program) => program.end('SIGKILL')));
  programs.clear();
});

const isInstalled = (command: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, command)));

const RECEIVERS = (
  [
    ['receiver.mjs', 'node', (port) => ['examples/receiver.mjs', port]],
    ['receiver.py', 'python3', (port) => ['examples/receiver.py', port]],
    ['receiver.php', 'php', (port) => ['-S', `127.0.0.1:${port}`, 'examples/receiver.php']],
  ] as [string, string, (port: string) => string[]][]
).filter(([file, command]) => {
  const found = command === 'node' || isInstalled(command);
  if (!found) process.stderr.write(`No ${command} on this machine: the test of examples/${file} is skipped\n`);
  return found;
});

test.each(RECEIVERS)(
  'runs %s, which accepts signed messages once, and nothing else',
  async (_file, command, argsOf) => {
    const port = String(await findFreePort());
    const url = `http://127.0.0.1:${port}/`;
    const { body: object } = await service.admin('POST', 'objects', { id: `of-${command}`, name: 'x' });
    const given = { url, objects: [object._id], events: ['object-packet'] };
    const { body: handler } = await service.admin('POST', 'handlers', given);
    const env = { PATH: process.env.PATH, WEBHOOK_SECRET: handler.secret };
    const program = startProgram(argsOf(port), env, command === 'node' ? process.execPath : command);
    programs.add(program);
    await until(() => fetch(url, { method: 'POST', body: '{}' }).catch(() => null), 'the receiver to listen');
    await service.settled();
    await service.admin('POST', `objects/${object._id}/packets`, { speed: 71 });
    await waitForOutput(program, /("speed":71)/);
    const listed = async () => (await service.admin('GET', `handlers/${handler._id}/deliveries`)).body;
    await until(async () => (await listed())[0]?.state === 'delivered', 'the message to be delivered');

    const post = async (id: string, at: Date, body: string, secret = handler.secret): Promise<number> => {
      const headers = {
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
        'webhook-signature': `v1,AAAA ${new Webhook(secret).sign(id, at, body)}`,
      };
      return (await fetch(url, { method: 'POST', headers, body })).status;
    };
    const now = new Date();
    const long = new Date(Date.now() - 400_000);
    expect(await post('msg_1', now, '{"n":"first"}')).toBeLessThan(300);
    expect(await post('msg_1', now, '{"n":"first"}')).toBeLessThan(300);
    expect(await post('msg_2', long, '{"n":"old"}')).toBe(400);
    expect(await post('msg_3', now, '{"n":"forged"}', `whsec_${'A'.repeat(43)}=`)).toBe(400);
    // Within quotes: the position of the event before could contain such a word by chance.
    await until(() => program.output().includes('"first"'), 'the message to be printed');
    if (command !== 'php') expect(program.output().split('"first"')).toHaveLength(2);
    expect(program.output()).not.toMatch(/"(?:old|forged)"/);
    await service.admin('DELETE', `handlers/${handler._id}`);
  },
);

test('forwards live events to a receiver as webhooks are sent, and repeats what fails', async () => {
  const receiver = await startReceiver();
  let failures = 0;
  receiver.answer = (_received, res) => void res.writeHead(failures++ === 0 ? 500 : 200).end();
  const { body: object } = await service.admin('POST', 'objects', { id: 'forwarded', name: 'x' });
  const args = ['dist/src/cli/main.js', 'listen', 'forwarded', '--count', '2', '--forward', receiver.url];
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const program = startProgram(args, { PATH: process.env.PATH, VIGIL_URL: service.url, VIGIL_TOKEN: token });
  programs.add(program);
  const secret = await waitForOutput(program, /WEBHOOK_SECRET=(\S+)/);
  await waitForOutput(program, /(Connected)/);
  const post = () => service.admin('POST', `objects/${object._id}/packets`, { speed: 71 });
  await until(async () => {
    await post();
    return receiver.received.length > 0;
  }, 'an event to be forwarded');
  // The first one may have been forwarded before its own answer was here.
  await post();
  await until(() => receiver.received.length >= 3, 'the events to be forwarded');
  expect(await program.ended).toBe(0);
  const [failed, again, next] = receiver.received;
  expect([again?.id, again?.text]).toEqual([failed?.id, failed?.text]);
  expect(next?.id).not.toBe(failed?.id);
  expect(next?.body).toMatchObject({ type: 'object-packet', position: expect.any(String), data: { speed: 71 } });
  for (const received of receiver.received) expect(() => verify(secret, received)).not.toThrow();
  expect(program.output()).toContain('500');
  await receiver.stop();
});
