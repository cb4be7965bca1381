/** Health, readiness and metrics on a listener of their own; the public one shows none of them. */
import { expect, test } from '@jest/globals';
import { entityOf } from '../support/answers.js';
import { useService } from '../support/fixture.js';
import { eventually, until } from '../support/until.js';

const service = useService({ env: { OPS_PORT: '0' } });

async function ask(path: string, method = 'GET'): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${service.service.opsUrl}${path}`, { method });
  return { status: answer.status, text: await answer.text() };
}

/** The values of a metric, by its labels. */
async function valuesOf(name: string): Promise<Record<string, number>> {
  const { text } = await ask('/metrics');
  const lines = text.split('\n').filter((one) => one.startsWith(`${name}{`) || one.startsWith(`${name} `));
  return Object.fromEntries(
    lines.map((one) => {
      const at = one.lastIndexOf(' ');
      return [one.slice(name.length, at), Number(one.slice(at + 1))];
    }),
  );
}

test('reports a working service as healthy and ready', async () => {
  expect(await ask('/health')).toEqual({ status: 200, text: '{"status":"up"}' });
  // It is not for as long as a busy machine keeps the answer of its database back.
  await eventually(async () => expect(await ask('/ready')).toEqual({ status: 200, text: '{"status":"ready"}' }));
  await eventually(async () => expect((await ask('/ready?verbose', 'HEAD')).status).toBe(200));
});

test('refuses other paths and methods', async () => {
  expect((await ask('/')).status).toBe(404);
  expect((await ask('/api/v1')).status).toBe(404);
  expect((await ask('/ready', 'POST')).status).toBe(405);
});

test('hides probes and metrics on the public port', async () => {
  for (const path of ['/health', '/ready', '/metrics']) {
    expect((await service.as(null)('GET', path)).status).toBe(404);
  }
});

test('reveals no versions, hosts, addresses or requested paths', async () => {
  await service.admin('GET', '/api/v1/objects/who-is-asked-for');
  await service.admin('GET', '/nowhere/at-all');
  const texts = await Promise.all(['/health', '/ready', '/metrics'].map((path) => ask(path)));
  const all = texts.map(({ text }) => text).join('\n');
  expect(all).not.toMatch(/version|127\.0\.0\.1|mongodb:\/\/|who-is-asked-for|at-all/i);
  expect(all).not.toContain(process.version);
});

test('counts requests, packets, events, sockets and commands', async () => {
  entityOf(await service.admin('POST', 'objects', { id: 'lorry', name: 'Lorry' }));
  const listener = await service.listen(await service.tokenOf('admin', 'correct horse battery'));
  const routes = await valuesOf('vigil_http_requests_total');
  await service.admin('POST', 'objects/lorry/packets', [{ speed: 1 }, { speed: 2 }, { speed: 3 }]);
  await service.admin('POST', 'objects/lorry/packets', { speed: 4 });
  await service.admin('GET', 'objects/no-such-lorry');
  await service.admin('POST', 'objects/lorry/commands/go', {});
  // To its end: an answer is counted then.
  await (await fetch(`${service.url}/api/v1/openapi.json`)).text();
  await service.settled();
  const label = '{method="POST",route="/api/v1/objects/:id/packets",status="200"}';
  const after = await valuesOf('vigil_http_requests_total');
  expect((after[label] ?? 0) - (routes[label] ?? 0)).toBe(2);
  expect(after['{method="GET",route="/api/v1/:store/:id",status="404"}']).toBeGreaterThan(0);
  expect(after['{method="GET",route="/api/v1/openapi.json",status="200"}']).toBe(1);
  const times = await valuesOf('vigil_http_request_duration_seconds_count');
  expect(times['{method="POST",route="/api/v1/objects/:id/packets"}']).toBe(after[label]);
  expect(await valuesOf('vigil_packets_stored_total')).toEqual({ '{transport="http"}': 4 });
  expect(await valuesOf('vigil_events_total')).toMatchObject({ '{event="object-packet"}': 4 });
  expect(await valuesOf('vigil_commands_total')).toMatchObject({ '{status="queued"}': 1 });
  expect(await valuesOf('vigil_sockets')).toEqual({ '': 1 });
  await eventually(async () => expect(await valuesOf('vigil_ready')).toEqual({ '': 1 }));
  expect((await valuesOf('vigil_mongodb_pool_open'))['']).toBeGreaterThan(0);
  expect((await valuesOf('vigil_mongodb_pool_waiting'))['']).toBe(0);
  listener.close();
  await until(async () => (await valuesOf('vigil_sockets'))[''] === 0, 'the socket is gone');
});

test('answers many concurrent probes', async () => {
  const ask50 = () => Promise.all(Array.from({ length: 50 }, () => ask('/ready')));
  // They are not while a busy machine keeps the answer of the database back.
  await until(async () => (await ask50()).every(({ status }) => status === 200), 'all answers of /ready');
});
