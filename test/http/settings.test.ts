/** The settings of the installation: who reads and changes them, what they accept, and the policy of pages on every instance. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID, OPERATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { refusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { startSecond, type TestService, useService } from '../support/fixture.js';
import { eventually, until } from '../support/until.js';

const folder = mkdtempSync(join(tmpdir(), 'vigil-settings-'));
const file = join(folder, 'country.pmtiles');
writeFileSync(file, 'tiles');
const service = useService();
const endings: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of endings.reverse()) await end();
  rmSync(folder, { recursive: true });
});

const TILES = { kind: 'tiles', url: 'https://maps.example/{z}/{x}/{y}.png', attribution: '© "Somebody" <b>' } as const;
const STYLE = { kind: 'style', url: 'http://10.0.0.7:8080/style.json?key=a', origins: ['https://*.tiles.example'] };
const NONE_IN_USE = { kind: 'none', url: null, origins: [], attribution: null, from: 'default', variables: [] };

const put = (map: unknown, { admin }: TestService = service) => admin('PATCH', 'settings', { map });
const stored = async () => (await service.admin('GET', 'settings')).body.map;

async function pageOf({ url }: TestService = service): Promise<{ policy: string; map: string }> {
  const answer = await fetch(`${url}/`, { headers: { Accept: 'text/html' } });
  const [, map = ''] = /<meta name="vigil-map" content="([^"]*)">/.exec(await answer.text()) ?? [];
  return { policy: answer.headers.get('content-security-policy') ?? '', map };
}

test('has no map and asks no other server before an administrator has chosen', async () => {
  expect((await service.admin('GET', 'settings')).body).toEqual({ map: null, mapInUse: NONE_IN_USE, success: true });
  const { policy, map } = await pageOf();
  expect([map, policy.includes("connect-src 'self';")]).toEqual(['', true]);
});

test.each([
  [{ kind: 'openfreemap' }, 'https://tiles.openfreemap.org'],
  [STYLE, 'http://10.0.0.7:8080 https://*.tiles.example'],
  [TILES, 'https://maps.example'],
  [
    { kind: 'style', url: 'https://[::1]:8443/a', origins: ['https://a.example', 'https://[::1]:8443'] },
    'https://[::1]:8443 https://a.example',
  ],
])('keeps %j and permits pages its origins alone', async (map, origins) => {
  const answer = await put(map);
  expect(answer.body).toMatchObject({ map, mapInUse: { ...map, from: 'settings', variables: [] } });
  expect((await service.admin('GET', 'settings')).body).toEqual(answer.body);
  const { policy } = await pageOf();
  expect(policy).toContain(`connect-src 'self' ${origins};`);
  expect(policy).toContain(`img-src 'self' data: blob: ${origins};`);
  expect(policy).toContain("script-src 'self';");
});

test('names the map in the page, as text that ends no attribute', async () => {
  await put(TILES);
  const { map } = await pageOf();
  const text = map.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
  expect(JSON.parse(text)).toEqual(TILES);
  expect(map).not.toMatch(/[<>"]/);
});

test('shows no other map after none was chosen, and none again after the choice was taken back', async () => {
  await put({ kind: 'openfreemap' });
  expect((await put({ kind: 'none' })).body.mapInUse).toEqual({ ...NONE_IN_USE, from: 'settings' });
  expect((await pageOf()).policy).toContain("connect-src 'self';");
  expect((await put(null)).body).toMatchObject({ map: null, mapInUse: NONE_IN_USE });
});

test('ignores what an answer contains besides, and changes nothing without a setting', async () => {
  await put(TILES);
  const { body } = await service.admin('GET', 'settings');
  expect((await service.admin('PATCH', 'settings', body)).body).toEqual(body);
  expect((await service.admin('PATCH', 'settings', {})).body).toEqual(body);
});

describe('the change', () => {
  const style = (url: unknown, more: object = {}) => ({ kind: 'style', url, ...more });
  const tiles = (url: string) => ({ kind: 'tiles', url });
  test.each([
    ['text', /^map: /],
    [7, /^map: /],
    [[], /^map: /],
    [{}, /^map(\.kind)?: /],
    [{ kind: 'google' }, /^map(\.kind)?: .*openfreemap, style, tiles, none/],
    [{ kind: 'file', url: '/etc/passwd' }, /^map(\.kind)?: /],
    [{ kind: 'style' }, /^map\.url: required/],
    [{ kind: 'none', url: 'https://maps.example' }, /^map: has no field url/],
    [{ kind: 'openfreemap', origins: [] }, /^map: has no field origins/],
    [style('https://maps.example', { attribution: 'x' }), /^map: has no field attribution/],
    [style(null), /^map\.url: /],
    [style(''), /^map\.url: /],
    [style('maps.example/style.json'), /^map\.url: expected an address/],
    [style('/style.json'), /^map\.url: expected an address/],
    [style('//maps.example/style.json'), /^map\.url: expected an address/],
    [style('javascript:alert(1)'), /^map\.url: expected an address/],
    [style('data:application/json,{}'), /^map\.url: expected an address/],
    [style('ftp://maps.example/style.json'), /^map\.url: expected an address/],
    [style('file:///srv/style.json'), /^map\.url: expected an address/],
    [style('https://user:password@maps.example/'), /^map\.url: expected an address/],
    [style('https://*/style.json'), /^map\.url: expected an address/],
    [style('https://*.example/style.json'), /^map\.url: expected an address/],
    [style("https://a;script-src'unsafe-inline'/"), /^map\.url: expected an address/],
    [style('https://a,b/style.json'), /^map\.url: expected an address/],
    [style('https://maps.example/a b'), /^map\.url: expected an address/],
    [style('https://maps.example/\n'), /^map\.url: expected an address/],
    [style('https://'), /^map\.url: expected an address/],
    [style(`https://maps.example/${'a'.repeat(LIMITS.mapUrlCharacters)}`), /^map\.url: expected at most 2000/],
    [tiles('https://maps.example/{z}/{x}.png'), /^map\.url: expected \{z\}, \{x\} and \{y\}/],
    [tiles('https://maps.example/{z}/{x}/{y}/{y}.png'), /^map\.url: expected \{z\}, \{x\} and \{y\}/],
    [tiles('https://maps.example/{z}/{x}/{y}{r}.png'), /^map\.url: expected no placeholders but/],
    [tiles('https://{s}.maps.example/{z}/{x}/{y}.png'), /^map\.url: /],
    [tiles('https://{z}.example/{x}/{y}.png'), /^map\.url: /],
    [style('https://maps.example', { origins: 'https://a.example' }), /^map\.origins: /],
    [style('https://maps.example', { origins: ['*'] }), /^map\.origins\.0: expected an origin/],
    [
      style('https://maps.example', { origins: ['https://a.example', 'https:'] }),
      /^map\.origins\.1: expected an origin/,
    ],
    [style('https://maps.example', { origins: ['https://a.example/'] }), /^map\.origins\.0: expected an origin/],
    [style('https://maps.example', { origins: ["https://a.example 'unsafe-eval'"] }), /^map\.origins\.0: /],
    [style('https://maps.example', { origins: ['https://*.*.example'] }), /^map\.origins\.0: /],
    [style('https://maps.example', { origins: ['https://*'] }), /^map\.origins\.0: /],
    [
      style('https://maps.example', { origins: Array(11).fill('https://a.example') }),
      /^map\.origins: expected at most 10/,
    ],
    [{ ...TILES, attribution: 'a'.repeat(501) }, /^map\.attribution: expected at most 500/],
    [{ ...TILES, attribution: 7 }, /^map\.attribution: expected text/],
  ])('names the field that is wrong in %j, and keeps what was', async (map, message) => {
    await put(TILES);
    const answer = await put(map);
    expect([answer.status, answer.body.helper?.message]).toEqual([400, expect.stringMatching(message)]);
    expect(await stored()).toEqual(TILES);
  });

  test.each([{ maps: null }, { map: null, streets: true }])(
    'names the setting of %j that does not exist',
    async (body) => {
      await put(TILES);
      const answer = await service.admin('PATCH', 'settings', body);
      expect([answer.status, answer.body.helper.message]).toEqual([400, expect.stringContaining('no such setting')]);
      expect(await stored()).toEqual(TILES);
    },
  );

  test('may not have a body that is too large', async () => {
    expect((await put({ ...TILES, attribution: 'a'.repeat(LIMITS.settingsBodyBytes) })).status).toBe(413);
  });
});

describe('the callers', () => {
  let tenant: Person;
  let operator: Person;
  beforeAll(async () => {
    const { _id: group } = (await service.admin('POST', 'groups', { name: 'tenant' })).body;
    tenant = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group });
    operator = await createPerson(service, { role: OPERATOR_ROLE_ID });
  });

  test('are refused without a login', async () => {
    expect((await service.as(null)('GET', 'settings')).status).toBe(401);
    expect((await service.as(null)('PATCH', 'settings', { map: null })).status).toBe(401);
  });

  test.each(['a tenant', 'an operator', 'a viewer'])('are refused where they are of %s', async (who) => {
    await put(TILES);
    const viewer = await createPerson(service, { role: VIEWER_ROLE_ID });
    const { call } = { 'a tenant': tenant, 'an operator': operator, 'a viewer': viewer }[who] as Person;
    const answers = [
      await call('GET', 'settings'),
      await call('PATCH', 'settings', { map: { kind: 'openfreemap' } }),
      await call('PATCH', 'settings', { map: 'nonsense' }),
    ];
    for (const { status, body } of answers) expect([status, body]).toMatchObject([403, refusal(403)]);
    expect(await stored()).toEqual(TILES);
  });

  test('may be other administrators of the root group, and tokens of them whose scopes say so', async () => {
    const other = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
    expect((await other.call('PATCH', 'settings', { map: TILES })).status).toBe(200);
    const withScopes = async (scopes: string[]) =>
      service.as((await other.call('POST', 'tokens', { name: 'x', scopes })).body.token);
    expect((await (await withScopes(['* /settings']))('PATCH', 'settings', { map: STYLE })).status).toBe(200);
    expect((await (await withScopes(['GET /*', 'PATCH /objects/*']))('GET', 'settings')).status).toBe(403);
  });

  test('are named in a security event, with the names of settings and without their values', async () => {
    const other = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
    const map = { kind: 'style', url: 'https://maps.example/?key=topsecret' };
    const answer = await other.call('PATCH', 'settings', { map });
    const requestId = answer.headers['x-request-id'];
    const events = service.client.db().collection('audit');
    await until(() => events.findOne({ requestId }), 'the event to be stored');
    expect(await events.find({ requestId }).toArray()).toMatchObject([
      { action: 'settings changed', login: other.login, method: 'PATCH', path: '/settings', fields: ['map'] },
    ]);
    expect(service.logLines.join('')).not.toContain('topsecret');
  });
});

test.each([{}, { success: true }, { mapInUse: null }])(
  'records no security event for %j, which changes nothing',
  async (body) => {
    const events = service.client.db().collection('audit');
    const unchanged = await service.admin('PATCH', 'settings', body);
    expect(unchanged.status).toBe(200);
    // Events are stored in their order: the later one shows that there was no earlier one.
    const requestId = (await put(TILES)).headers['x-request-id'];
    await until(() => events.findOne({ requestId }), 'the event of the change to be stored');
    expect(await events.find({ requestId: unchanged.headers['x-request-id'] }).toArray()).toEqual([]);
  },
);

test('takes effect on another instance without a restart, and after a restart', async () => {
  await put(null);
  const other = await startSecond(service, endings);
  const shows = async (origin: string): Promise<boolean> =>
    (await pageOf(other)).policy.includes(`connect-src 'self'${origin};`);
  expect(await shows('')).toBe(true);
  await put({ kind: 'openfreemap' });
  await until(() => shows(' https://tiles.openfreemap.org'), 'the other instance to show streets');
  await put(TILES, other);
  await until(async () => (await pageOf()).policy.includes('https://maps.example'), 'this instance to show the tiles');
  await put(null);
  await until(() => shows(''), 'the other instance to show no streets');
  await put(STYLE);
  const third = await startSecond(service, endings);
  expect((await pageOf(third)).policy).toContain('http://10.0.0.7:8080');
});

describe('with environment variables', () => {
  test.each([
    [
      { MAP_STYLE_URL: 'https://set.example/style.json', MAP_ORIGINS: 'https://fonts.example' },
      { kind: 'style', url: 'https://set.example/style.json', origins: ['https://fonts.example'] },
      ['MAP_STYLE_URL', 'MAP_ORIGINS'],
      ' https://set.example https://fonts.example',
    ],
    [{ MAP_TILES: file }, { kind: 'file', url: null, origins: [] }, ['MAP_TILES'], ''],
  ])('stores the choice, and says what %j decides instead', async (env, inUse, variables, origins) => {
    await put(null);
    const other = await startSecond(service, endings, { env });
    const answer = await put(TILES, other);
    expect(answer.body).toMatchObject({ map: TILES, mapInUse: { ...inUse, from: 'environment', variables } });
    expect((await pageOf(other)).policy).toContain(`connect-src 'self'${origins};`);
    // Of the first instance, which hears of it a moment later.
    await eventually(async () => expect(await stored()).toEqual(TILES));
  });
});

test('leaves the name to settings where somebody creates a store', async () => {
  expect((await service.admin('POST', 'stores', { name: 'settings' })).status).toBe(409);
});
