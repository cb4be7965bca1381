/** Alarms in browsers whose pages are closed: what their push services receive, and what becomes of those that take no more. */
import { createPublicKey, verify } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { startSecond, startTestService, type TestService } from '../support/fixture.js';
import { type PushService, startPushService } from '../support/push-service.js';
import { until } from '../support/until.js';

const PUBLIC_URL = 'https://vigil.example/base';
const endings: (() => unknown)[] = [];
let pushService: PushService;
let service: TestService;

// How often the sender looks for what is due.
Object.assign(LIMITS, { notificationCheckMs: 100 });

beforeAll(async () => {
  pushService = await startPushService();
  service = await startTestService({ env: { WEBHOOK_NETWORKS: '127.0.0.1', PUBLIC_URL } });
});
afterAll(async () => {
  for (const end of endings.reverse()) await end();
  await service?.stop();
  await pushService?.stop();
});

/** What a push service checks of a request. RFC 8292. */
function claimsOf(authorization = ''): { key: string; claims: Record<string, unknown> } {
  const [, head = '', body = '', signature = '', key = ''] =
    /^vapid t=([\w-]+)\.([\w-]+)\.([\w-]+), k=([\w-]+)$/.exec(authorization) ?? [];
  const point = Buffer.from(key, 'base64url');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((one) => one.toString('base64url'));
  const publicKey = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' });
  const signed = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const;
  expect(verify('sha256', Buffer.from(`${head}.${body}`), signed, Buffer.from(signature, 'base64url'))).toBe(true);
  return { key, claims: JSON.parse(Buffer.from(body, 'base64url').toString()) };
}

/** An object with a rule that names the user, whose alarm has been raised. */
async function raise(userId: string, name: string, text: string): Promise<string> {
  const { _id } = entityOf(await service.admin('POST', 'objects', { id: name, name }));
  const then = [{ notify: { users: [userId], text } }];
  const when = { param: 't', op: '>', value: 8 };
  const rule = { name, when, severity: 'critical', select: { objects: [_id] }, then };
  entityOf(await service.admin('POST', 'rules', rule));
  for (let index = 0; index < 3; index++) await service.settled();
  await service.admin('POST', `objects/${name}/packets`, { t: 9 });
  await until(async () => (await alarmsOf(_id)).length === 1, 'the alarm');
  return _id;
}

const alarmsOf = async (objectId: string) => (await service.admin('GET', `alarms?where.object=${objectId}`)).body;

test('sends an alarm to a browser, encrypted for it and signed by the installation', async () => {
  const browser = pushService.subscribe();
  const ada = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
  const channels = [{ push: { ...browser.subscription, name: 'Firefox · Android' } }];
  const { status, body: account } = await ada.call('PATCH', 'account', { channels });
  const { expirationTime: _, ...known } = browser.subscription;
  expect([status, account.channels]).toEqual([
    200,
    [{ push: { ...known, name: 'Firefox · Android' }, confirmed: true }],
  ]);

  const objectId = await raise(ada.id, 'cold-1', 'Ärger im Kühlhaus: {{values.t}}');
  const [{ message, headers } = { message: {}, headers: {} }] = await browser.got(1);
  const [alarm] = await alarmsOf(objectId);
  expect(message).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{32}$/),
    title: expect.stringContaining('cold-1'),
    text: expect.stringContaining('Ärger im Kühlhaus: 9'),
    link: `${PUBLIC_URL}/alarms/${alarm._id}`,
    severity: 'critical',
  });
  expect(headers).toMatchObject({
    'content-encoding': 'aes128gcm',
    ttl: String(LIMITS.pushLifetimeMs / 1_000),
    urgency: 'high',
    topic: message.id,
  });
  const { key, claims } = claimsOf(headers.authorization);
  expect([key, claims.aud, claims.sub]).toEqual([account.pushKey, pushService.url, PUBLIC_URL]);
  await until(async () => (await alarmsOf(objectId))[0].notified?.length === 1, 'the alarm to say whom it was told');
  expect((await alarmsOf(objectId))[0].notified).toMatchObject([{ user: ada.id, channel: 'push', step: 'raised' }]);
});

test('takes a browser that accepts no more messages from its user, and keeps the others', async () => {
  const gone = pushService.subscribe();
  const other = pushService.subscribe();
  gone.status = 410;
  const ada = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
  const channels = [{ push: gone.subscription }, { push: other.subscription }];
  await ada.call('PATCH', 'account', { channels });
  const objectId = await raise(ada.id, 'cold-2', 'x');
  await other.got(1);
  const own = async () => (await ada.call('GET', 'account')).body.channels;
  await until(async () => (await own()).length === 1, 'the channel to be removed');
  expect(await own()).toMatchObject([{ push: { endpoint: other.subscription.endpoint } }]);
  await until(async () => (await alarmsOf(objectId))[0].notified?.length === 2, 'the alarm to say whom it was told');
  expect((await alarmsOf(objectId))[0].notified).toContainEqual(
    expect.objectContaining({ channel: 'push', error: 'the browser takes no more messages' }),
  );
});

test('sends a test that says what became of it, without what the receiver answered', async () => {
  const browser = pushService.subscribe();
  const ada = await createPerson(service);
  const test = async () => {
    const channel = { push: browser.subscription };
    return (await ada.call('POST', 'account/channels/test', { channel })).body.channels[0];
  };
  expect(await test()).toMatchObject({ sent: true, error: null, confirmed: true });
  expect((await browser.got(1))[0]?.message).toMatchObject({ title: 'Test from Vigil', link: PUBLIC_URL });
  browser.status = 403;
  expect(await test()).toMatchObject({ sent: false, error: 'answered 403' });
  expect(service.logLines.join('')).not.toContain(browser.subscription.endpoint);
});

test('shortens what is too long for browsers', async () => {
  const { pushBytes } = LIMITS;
  endings.push(() => Object.assign(LIMITS, { pushBytes }));
  Object.assign(LIMITS, { pushBytes: 1_000 });
  const browser = pushService.subscribe();
  const ada = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
  await ada.call('PATCH', 'account', { channels: [{ push: browser.subscription }] });
  await raise(ada.id, 'cold-3', '漢'.repeat(1_000));
  const [pushed] = await browser.got(1);
  expect(pushed?.message.text).toMatch(/^漢{100,}…$/);
});

test('has the same key on every instance', async () => {
  const second = await startSecond(service, endings);
  const keys = await Promise.all([service.admin('GET', 'account'), second.admin('GET', 'account')]);
  expect(keys[1].body.pushKey).toBe(keys[0].body.pushKey);
  expect(Buffer.from(keys[0].body.pushKey, 'base64url')).toHaveLength(65);
});

const { endpoint, keys } = { endpoint: 'https://push.example/a', keys: { p256dh: 'x', auth: 'x' } };
const POINT = Buffer.alloc(65, 4).toString('base64url');
const SECRET = Buffer.alloc(16).toString('base64url');

test.each<[unknown, string]>([
  ['https://push.example/a', "push: expected the JSON of a browser's PushSubscription"],
  [{ keys }, 'push.endpoint: expected an address'],
  [{ endpoint: 'ftp://push.example/a', keys }, 'push.endpoint: expected an address'],
  [{ endpoint: 'https://ada:secret@push.example/a', keys }, 'push.endpoint: expected an address'],
  [{ endpoint: `https://push.example/${'a'.repeat(LIMITS.pushEndpointCharacters)}`, keys }, 'push.endpoint: at most'],
  [{ endpoint }, 'push.keys: expected an object with p256dh and auth'],
  [{ endpoint, keys }, 'push.keys.p256dh: expected 65 bytes in base64url'],
  [{ endpoint, keys: { p256dh: POINT, auth: 'x' } }, 'push.keys.auth: expected 16 bytes in base64url'],
  [{ endpoint, keys: { p256dh: POINT, auth: SECRET } }, 'push.keys.p256dh: expected a point of the curve P-256'],
  [{ endpoint, keys, option: 1 }, 'push.option: not known'],
])('refuses %j', async (push, mention) => {
  const channels = [{ push }];
  expectRefusal(await service.admin('PATCH', 'account', { channels }), 400, `channels[0].${mention}`);
});

test('refuses a push service inside the own network', async () => {
  const { subscription } = pushService.subscribe();
  const channels = [{ push: { ...subscription, endpoint: 'http://10.0.0.1/push' } }];
  const answer = await service.admin('PATCH', 'account', { channels });
  expectRefusal(answer, 400, 'channels[0].push.endpoint: the address is not public');
});
