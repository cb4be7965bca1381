/** The console below a path of another site, behind nginx that passes the path on, or removes it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';
import { createClient, type WebSocketClass } from '../../../src/client/client.js';
import { HAS_NGINX } from '../../support/balancer.js';
import { useBrowser } from '../../support/browser/browser.js';
import { ADMIN, useService } from '../../support/fixture.js';
import { findFreePort } from '../../support/ports.js';
import { until } from '../../support/until.js';

const service = useService({ env: { BASE_PATH: '/vigil/', TRUST_PROXY: '1' } });

const toConfig = (port: number, target: string): string => `
daemon off; error_log stderr; pid nginx.pid;
events {}
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  server {
    listen 127.0.0.1:${port};
    location / { default_type text/html; return 200 "<!doctype html><title>The other site</title>"; }
    location /vigil/ {
      proxy_pass ${target};
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
    }
  }
}`;

(HAS_NGINX ? describe : describe.skip).each([
  ['passes the path on', ''],
  ['removes the path', '/'],
])('behind nginx that %s', (_, end) => {
  let folder: string;
  let nginx: ChildProcess;
  let site: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'vigil-site-'));
    await chmod(folder, 0o755);
    const port = await findFreePort();
    site = `http://127.0.0.1:${port}`;
    await writeFile(join(folder, 'nginx.conf'), toConfig(port, `${service.url}${end}`));
    nginx = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'inherit' });
    const answers = () =>
      fetch(`${site}/vigil/api/v1`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(answers, 'nginx passes requests on');
  });
  afterAll(async () => {
    const ended = once(nginx, 'exit');
    nginx.kill('SIGTERM');
    await ended;
    await rm(folder, { recursive: true, force: true });
  });
  const browser = useBrowser({
    get url() {
      return `${site}/vigil`;
    },
  });

  test('opens, logs in, follows live values, and goes from page to page', async () => {
    const id = end === '' ? 'passed' : 'removed';
    const { _id } = (await service.admin('POST', 'objects', { id, name: `Van ${id}` })).body;
    await service.admin('POST', `objects/${_id}/packets`, { time: Date.now(), speed: 41, lat: 48.1, lon: 11.5 });
    const page = await browser.openAs('/');
    await page.locator('.map[data-drawn]').waitFor();
    await page.getByText(`Van ${id}`).first().click();
    await page.getByRole('link', { name: 'Open' }).click();
    await page.waitForURL(`${site}/vigil/objects/${_id}/live`);
    await page.locator('.status.live').waitFor();
    await service.admin('POST', `objects/${_id}/packets`, { time: Date.now(), speed: 57 });
    await page.getByText('57').first().waitFor();
    await page.getByRole('link', { name: 'History' }).first().click();
    await page.waitForURL(`${site}/vigil/objects/${_id}/history`);
    await page.goBack();
    await page.waitForURL(`${site}/vigil/objects/${_id}/live`);
    await page.reload();
    await page.getByText('57').first().waitFor();
    await page.goto(`${site}/vigil/account/tokens`);
    await page.getByRole('link', { name: 'Vigil' }).click();
    await page.waitForURL(`${site}/vigil/`);
    const cookies = await page.context().cookies(`${site}/vigil/`);
    expect(cookies.map(({ name, path }) => [name, path])).toEqual([['sid', '/vigil']]);
    expect(await page.context().cookies(`${site}/`)).toEqual([]);
  });

  test('shares an object with somebody who has no account', async () => {
    const id = end === '' ? 'shared-passed' : 'shared-removed';
    const { _id } = (await service.admin('POST', 'objects', { id, name: `Van ${id}` })).body;
    await service.admin('POST', `objects/${_id}/packets`, { speed: 41 });
    const page = await browser.openAs(`/objects/${_id}/live`);
    await page.getByRole('button', { name: 'Share', exact: true }).click();
    await page.getByRole('button', { name: 'Create link' }).click();
    const url = (await page.getByLabel('Link', { exact: true }).textContent()) ?? '';
    expect(url.startsWith(`${site}/vigil/s#`)).toBe(true);
    const visitor = await browser.open(url.slice(`${site}/vigil`.length));
    await visitor.getByRole('heading', { name: `Van ${id}` }).waitFor();
    await service.admin('POST', `objects/${_id}/packets`, { speed: 57 });
    await visitor.getByText('57').first().waitFor();
    expect(await visitor.context().cookies()).toEqual([]);
  });

  test('serves the client over both transports', async () => {
    const client = createClient({
      url: `${site}/vigil`,
      login: ADMIN,
      WebSocket: WebSocket as unknown as WebSocketClass,
    });
    const { _id } = await client.objects.create({ id: `client-${end === '' ? 'passed' : 'removed'}`, name: 'Client' });
    for (const [number, transport] of (['server-sent-events', 'websocket'] as const).entries()) {
      const ending = new AbortController();
      let isLive = false;
      const stream = client.events({
        transport,
        objects: [_id],
        // That it was created may be told only now.
        events: ['object-packet'],
        signal: ending.signal,
        onState(state) {
          isLive = state === 'live';
        },
      });
      const received = (async () => {
        for await (const { data } of stream) return data;
      })();
      await until(() => isLive, 'the stream is live');
      await client.objects.addPackets(_id, [{ number }]);
      expect(await received).toMatchObject({ number });
      ending.abort();
    }
    expect((await client.objects.get(_id)).name).toBe('Client');
  });
});
