/** The channels of a user: what is accepted, who reads it, and what their test sends and says. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { startTestService, type TestService } from '../support/fixture.js';
import { type MailServer, startMailServer } from '../support/mail-server.js';
import { useReceiver } from '../support/receiver.js';

const TOKEN = '123:secret-of-the-bot';
const TOPIC = 'topic-that-nobody-guesses';
const receiver = useReceiver();
let mail: MailServer;
let service: TestService;
/** Without mail and Telegram. */
let bare: TestService;

beforeAll(async () => {
  mail = await startMailServer();
  service = await startTestService({
    env: {
      WEBHOOK_NETWORKS: '127.0.0.1',
      SMTP_URL: mail.url,
      MAIL_FROM: 'Vigil <alarms@vigil.example>',
      TELEGRAM_TOKEN: TOKEN,
      TELEGRAM_URL: receiver.url,
      PUBLIC_URL: 'https://vigil.example/',
    },
  });
  bare = await startTestService({ env: { WEBHOOK_NETWORKS: '127.0.0.1' } });
});
afterAll(async () => {
  await service?.stop();
  await bare?.stop();
  await mail?.stop();
});

const topic = (): string => `${receiver.url}${TOPIC}`;

describe('channels', () => {
  test('are kept for their user alone', async () => {
    const ada = await createPerson(service);
    const channels = [{ email: 'ada@example.com' }, { ntfy: topic() }, { telegram: '-100123' }];
    const quiet = { from: '22:00', to: '06:00', tz: 'Europe/Berlin' };
    const set = await ada.call('PATCH', 'account', { channels, quiet, minSeverity: 'warning' });
    const shown = channels.map((one) => ({ ...one, confirmed: true }));
    const expected = {
      channels: shown,
      quiet,
      minSeverity: 'warning',
      channelKinds: ['email', 'ntfy', 'telegram', 'push'],
    };
    expect([set.status, set.body]).toMatchObject([200, expected]);
    expect((await ada.call('GET', 'account')).body).toMatchObject(expected);

    const seen = await service.admin('GET', `users/${ada.id}`);
    expect(seen.text).not.toContain(TOPIC);
    expect(Object.keys(seen.body)).not.toContain('channels');
    await service.settled();
    expect(service.logLines.join('')).not.toContain(TOPIC);
    const { body: audit } = await service.admin('GET', `audit?where.user=${ada.id}`);
    expect(JSON.stringify(audit)).not.toContain(TOPIC);
  });

  test('are replaced as a whole, and return to the defaults with null', async () => {
    const ada = await createPerson(service);
    const first = {
      channels: [{ email: 'a@example.com' }],
      quiet: { from: '22:00', to: '06:00' },
      minSeverity: 'critical',
    };
    await ada.call('PATCH', 'account', first);
    const other = await ada.call('PATCH', 'account', {
      channels: [{ telegram: 5 }, { telegram: '5' }],
      quiet: { from: '20:00', to: '21:00', tz: 'UTC' },
    });
    expect(other.body).toMatchObject({ channels: [{ telegram: '5' }], minSeverity: 'critical' });
    expect(other.body.quiet).toEqual({ from: '20:00', to: '21:00', tz: 'UTC' });
    const none = await ada.call('PATCH', 'account', { channels: null, quiet: null, minSeverity: null });
    expect(none.body).toMatchObject({ channels: [], quiet: null, minSeverity: 'info' });
  });

  test('say what the operator has set up', async () => {
    expect((await bare.admin('GET', 'account')).body.channelKinds).toEqual(['ntfy', 'push']);
  });

  test('are none of a device', async () => {
    const { _id: object } = entityOf(await service.admin('POST', 'objects', { id: 'with-a-login', name: 'x' }));
    const device = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, object });
    const channel = { ntfy: topic() };
    const body = { name: 'changed', channels: [channel] };
    expectRefusal(await device.call('PATCH', 'account', body), 403, 'the login of a device has no channels');
    expect((await device.call('GET', 'account')).body.name).not.toBe('changed');
    for (const [route, given] of [
      ['test', { channel }],
      ['test', {}],
      ['confirm', { channel, code: 'ABCDE-FGHJK' }],
    ] as const) {
      const answer = await device.call('POST', `account/channels/${route}`, given);
      expectRefusal(answer, 403, 'the login of a device has no channels');
    }
    expect(receiver.received).toEqual([]);
    // What it had before can be removed, for example.
    expect((await device.call('PATCH', 'account', { channels: null, minSeverity: 'warning' })).status).toBe(200);
  });

  const many = Array.from({ length: LIMITS.channelsPerUser + 1 }, (_, index) => ({ email: `a${index}@example.com` }));
  const REFUSED: [body: object, mention: string][] = [
    [{ channels: 'ada@example.com' }, 'channels: expected a list'],
    [{ channels: {} }, 'channels: expected a list'],
    [{ channels: many }, `channels: expected a list of at most ${LIMITS.channelsPerUser}`],
    [{ channels: ['ada@example.com'] }, 'channels[0]: expected'],
    [{ channels: [{}] }, 'channels[0]: expected'],
    [{ channels: [{ email: 'a@example.com', ntfy: 'https://ntfy.sh/x' }] }, 'channels[0]: expected'],
    [{ channels: [{ email: 'a@example.com' }, { sms: '1' }] }, 'channels[1].sms: not known'],
    [{ channels: [{ email: 'nobody' }] }, 'channels[0].email: expected an email address'],
    [{ channels: [{ email: 'a@example.com\r\nBcc: b@example.com' }] }, 'channels[0].email'],
    [{ channels: [{ email: null }] }, 'channels[0].email'],
    [{ channels: [{ confirmed: true }] }, 'channels[0]: expected'],
    [{ channels: [{ email: 'a@example.com', confirmed: 1 }] }, 'channels[0].confirmed: expected true or false'],
    [{ channels: [{ ntfy: 'ntfy.sh/topic' }] }, 'channels[0].ntfy'],
    [{ channels: [{ ntfy: 'ftp://ntfy.sh/topic' }] }, 'channels[0].ntfy'],
    [{ channels: [{ ntfy: 'https://ntfy.sh/' }] }, 'channels[0].ntfy: expected the address of a topic'],
    [{ channels: [{ ntfy: 'https://ada:secret@ntfy.sh/topic' }] }, 'channels[0].ntfy: may not contain'],
    [
      { channels: [{ ntfy: `https://ntfy.sh/${'x'.repeat(LIMITS.channelUrlCharacters)}` }] },
      'channels[0].ntfy: at most',
    ],
    [{ channels: [{ ntfy: 'http://10.0.0.1/topic' }] }, 'channels[0].ntfy: the address is not public'],
    [{ channels: [{ ntfy: 'http://169.254.169.254/latest' }] }, 'channels[0].ntfy: the address is not public'],
    [{ channels: [{ telegram: 'https://t.me/ada' }] }, 'channels[0].telegram'],
    [{ channels: [{ telegram: '../getUpdates' }] }, 'channels[0].telegram'],
    [{ channels: [{ telegram: 1.5 }] }, 'channels[0].telegram'],
    [{ quiet: '22:00' }, 'quiet: expected an object'],
    [{ quiet: { from: '22:00' } }, 'quiet.to: required'],
    [{ quiet: { to: '22:00' } }, 'quiet.from: required'],
    [{ quiet: { from: '25:00', to: '06:00' } }, 'quiet.from: expected a time of day'],
    [{ quiet: { from: '22:00', to: '22:00' } }, 'quiet.to'],
    [{ quiet: { from: '22:00', to: '06:00', tz: 'Mars/Base' } }, 'quiet.tz: expected a time zone'],
    [{ quiet: { from: '22:00', to: '06:00', days: ['mon'] } }, 'quiet.days: not known'],
    [{ minSeverity: 'fatal' }, 'minSeverity: expected info, warning, critical'],
    [{ minSeverity: 2 }, 'minSeverity: expected'],
  ];

  test.each(REFUSED)('are refused as %j', async (body, mention) => {
    const { status, body: answer } = await service.admin('PATCH', 'account', { name: 'changed', ...body });
    expect([status, answer.helper?.message]).toEqual([400, expect.stringContaining(mention)]);
    expect((await service.admin('GET', 'account')).body.name).not.toBe('changed');
  });
});

describe('the test of channels', () => {
  test('sends a message over each, and says what became of it', async () => {
    const ada = await createPerson(service);
    const channels = [
      { email: 'ada@example.com' },
      { email: 'refused-550@example.com' },
      { ntfy: topic() },
      { telegram: '42' },
    ];
    await ada.call('PATCH', 'account', { channels });
    const { status, body } = await ada.call('POST', 'account/channels/test', {});
    expect(status).toBe(200);
    expect(body).toEqual({
      channels: [
        { channel: channels[0], sent: true, error: null, confirmed: true },
        { channel: channels[1], sent: false, error: expect.stringContaining('550 no such user'), confirmed: true },
        { channel: channels[2], sent: true, error: null, confirmed: true },
        { channel: channels[3], sent: true, error: null, confirmed: true },
      ],
      success: true,
    });
    expect(mail.mails).toHaveLength(1);
    expect(mail.mails[0]?.to).toEqual(['ada@example.com']);
    expect(mail.mails[0]?.text).toMatch(/^From: Vigil <alarms@vigil.example>\r\nTo: ada@example.com\r\nSubject: Test/m);
    expect(mail.mails[0]?.text).toContain('https://vigil.example');
    const [pushed] = receiver.received.filter(({ path }) => path === `/${TOPIC}`);
    expect(pushed).toMatchObject({
      headers: { title: 'Test from Vigil', priority: '3', click: 'https://vigil.example' },
      body: 'You receive notifications of alarms here.',
    });
    const [chatted] = receiver.received.filter(({ path }) => path === `/bot${TOKEN}/sendMessage`);
    expect(chatted?.body).toMatchObject({ chat_id: '42', text: expect.stringContaining('https://vigil.example') });
    expect(service.logLines.join('')).not.toMatch(new RegExp(`${TOPIC}|${TOKEN}`));
  });

  test('sends over one channel that is not stored', async () => {
    const ada = await createPerson(service);
    const { body } = await ada.call('POST', 'account/channels/test', { channel: { ntfy: topic() } });
    expect(body.channels).toEqual([{ channel: { ntfy: topic() }, sent: true, error: null, confirmed: true }]);
    expect((await ada.call('GET', 'account')).body.channels).toEqual([]);
    const refused = await ada.call('POST', 'account/channels/test', { channel: { ntfy: 'x' } });
    expectRefusal(refused, 400, 'channel.ntfy: expected the address of a topic');
  });

  test('does not follow redirects, and connects to no private address', async () => {
    receiver.answer = (_received, res) => res.writeHead(307, { location: `${receiver.url}elsewhere` }).end();
    const redirected = await service.admin('POST', 'account/channels/test', { channel: { ntfy: topic() } });
    expect(redirected.body.channels).toMatchObject([
      { sent: false, error: 'answered 307, and redirects are not followed' },
    ]);
    expect(receiver.received.map(({ path }) => path)).toEqual([`/${TOPIC}`]);
    const inside = await service.admin('POST', 'account/channels/test', { channel: { ntfy: 'http://127.0.0.2:1/x' } });
    expect(inside.body.channels).toMatchObject([{ sent: false, error: expect.stringContaining('not public') }]);
  });

  test('says what the receiver answered', async () => {
    receiver.answer = (_received, res) => res.writeHead(400).end('{"ok":false,"description":"chat not found"}');
    const { body } = await service.admin('POST', 'account/channels/test', { channel: { telegram: '7' } });
    expect(body.channels).toMatchObject([{ sent: false, error: expect.stringContaining('chat not found') }]);
  });

  test('does not show what a receiver of the own choice answered', async () => {
    receiver.answer = (_received, res) => res.writeHead(403).end('what only the server reaches');
    const { body } = await service.admin('POST', 'account/channels/test', { channel: { ntfy: topic() } });
    expect(body.channels).toMatchObject([{ sent: false, error: 'answered 403' }]);
  });

  test('says what the operator has not set up', async () => {
    for (const [channel, variable] of [
      [{ email: 'ada@example.com' }, 'SMTP_URL'],
      [{ telegram: '1' }, 'TELEGRAM_TOKEN'],
    ] as const) {
      const { body } = await bare.admin('POST', 'account/channels/test', { channel });
      expect(body.channels).toMatchObject([{ channel, sent: false, error: expect.stringContaining(variable) }]);
    }
  });

  test('is refused without channels, and too often', async () => {
    const ada = await createPerson(service);
    expectRefusal(await ada.call('POST', 'account/channels/test', {}), 409, 'you have no channels');
    const channel = { ntfy: topic() };
    for (let count = 0; count < LIMITS.channelTests; count++) {
      expect((await ada.call('POST', 'account/channels/test', { channel })).status).toBe(200);
    }
    const refused = await ada.call('POST', 'account/channels/test', { channel });
    expectRefusal(refused, 429, 'tests of channels');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(receiver.received).toHaveLength(LIMITS.channelTests);
  });
});
