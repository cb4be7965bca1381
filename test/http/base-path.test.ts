/** The service below a path of another site. A proxy passes that path on, or removes it: both are answered alike. */
import { describe, expect, test } from '@jest/globals';
import WebSocket from 'ws';
import { openSession, setCookiesOf } from '../support/callers.js';
import { ADMIN, useService } from '../support/fixture.js';
import { sendHttp } from '../support/http-call.js';

const service = useService({ env: { BASE_PATH: '/vigil/' } });

/** Sends a request to an address of the site. */
const send = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
  sendHttp(service.url, {
    method,
    path,
    headers: { ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
    ...(body !== undefined && { text: JSON.stringify(body) }),
  });
const asAdmin = async (): Promise<Record<string, string>> => ({ Cookie: await openSession(service, ADMIN) });

describe.each([
  ['passes the path on', '/vigil'],
  ['removes the path', ''],
])('behind a proxy that %s', (_, prefix) => {
  test('names addresses below the path', async () => {
    expect((await send('GET', `${prefix}/`)).body.api).toBe('/vigil/api/v1');
    const admin = await asAdmin();
    await service.admin('POST', 'labels', { name: 'one' });
    await service.admin('POST', 'labels', { name: 'two' });
    const page = await send('GET', `${prefix}/api/v1/labels?limit=1`, undefined, admin);
    const next = /^<([^>]+)>; rel="next"$/.exec(page.headers.link ?? '')?.[1] ?? '';
    expect(next).toMatch(/^\/vigil\/api\/v1\/labels\?/);
    expect((await send('GET', next, undefined, admin)).status).toBe(200);
    const object = (await service.admin('POST', 'objects', { id: `van${prefix.replace('/', '-')}`, name: 'Van' })).body
      ._id;
    const sent = await send('POST', `${prefix}/api/v1/objects/${object}/commands/stop`, {}, admin);
    expect(sent.headers.location).toMatch(/^\/vigil\/api\/v1\/commands\/[0-9a-f]{24}$/);
    expect((await send('GET', sent.headers.location ?? '', undefined, admin)).status).toBe(200);
    expect((await send('POST', `${prefix}/objects/${object}/commands/stop`, {}, admin)).status).toBe(200);
  });

  test('sets a cookie for the path alone, and removes it', async () => {
    const login = await send('POST', `${prefix}/api/v1/auth`, ADMIN);
    expect(setCookiesOf(login)).toEqual([expect.stringMatching(/^sid=[^;]+; Path=\/vigil; Expires=/)]);
    const cookie = setCookiesOf(login)[0]?.split(';', 1)[0] ?? '';
    expect((await send('GET', `${prefix}/api/v1/auth`, undefined, { Cookie: cookie })).body.login).toBe(ADMIN.login);
    const logout = await send('DELETE', `${prefix}/api/v1/auth`, undefined, { Cookie: cookie });
    expect(setCookiesOf(logout)).toEqual([expect.stringMatching(/^sid=; Path=\/vigil; Expires=Thu, 01 Jan 1970/)]);
    expect((await send('GET', `${prefix}/api/v1/auth`, undefined, { Cookie: cookie })).status).toBe(401);
  });

  test('sends pages and their files', async () => {
    const html = { Accept: 'text/html' };
    const page = await send('GET', `${prefix}/objects/any/live`, undefined, html);
    expect(page.text).toContain('<meta name="vigil-base" content="/vigil">');
    const files = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address ?? '');
    expect(files.length).toBeGreaterThan(4);
    for (const address of files) {
      expect(address).toMatch(/^\/vigil\/console\//);
      expect((await send('GET', address)).status).toBe(200);
    }
    expect((await send('GET', `${prefix}/docs/`, undefined, html)).status).toBe(200);
    expect((await send('GET', `${prefix}/api/v1/openapi.json`)).body.servers[0].url).toBe('/vigil');
    expect((await send('GET', `${prefix}/api/v1/asyncapi.json`)).body.servers.web.pathname).toBe('/vigil');
  });

  test.each([3, 4])('opens sockets of EIO=%i', async (version) => {
    const cookie = await openSession(service, ADMIN);
    const url = `${service.url.replace('http', 'ws')}${prefix}/socket.io/?EIO=${version}&transport=websocket`;
    const socket = new WebSocket(url, { headers: { Cookie: cookie } });
    const first = await new Promise((resolve, reject) => {
      socket.once('message', (data) => resolve(String(data)));
      socket.once('error', reject);
    });
    socket.terminate();
    expect(first).toMatch(/^0\{"sid"/);
    const polled = await send('GET', `${prefix}/socket.io/?EIO=${version}&transport=polling`, undefined, {
      Cookie: cookie,
    });
    expect([polled.status, polled.text]).toEqual([200, expect.stringContaining('"sid"')]);
  });
});

test.each([
  ['/vigil', 200],
  ['/vigil?x=1', 200],
  ['/vigilant', 404],
  ['/vigilant/api/v1', 404],
  ['/VIGIL/api/v1', 404],
  ['/vigil/vigilant', 404],
])('answers %s with %i', async (path, status) => {
  expect((await send('GET', path)).status).toBe(status);
});
