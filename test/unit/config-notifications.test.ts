/** Which settings of notifications the service starts with. */
import { expect, test } from '@jest/globals';
import { parseConfig } from '../../src/config.js';

test('takes mail, Telegram and its own address', () => {
  const { notifications } = parseConfig({
    SMTP_URL: 'smtps://user:password@mail.example:465',
    MAIL_FROM: 'Vigil <alarms@example.com>',
    TELEGRAM_TOKEN: '123456:ABC-def_1',
    PUBLIC_URL: 'https://example.com/vigil/',
  });
  expect(notifications).toEqual({
    mail: { url: 'smtps://user:password@mail.example:465', from: 'Vigil <alarms@example.com>' },
    telegram: { token: '123456:ABC-def_1', url: 'https://api.telegram.org' },
    publicUrl: 'https://example.com/vigil',
  });
  expect(parseConfig({}).notifications).toEqual({ mail: null, telegram: null, publicUrl: null });
});

const REFUSED: [env: Record<string, string>, problem: string][] = [
  [{ SMTP_URL: 'smtp://mail.example' }, 'SMTP_URL, MAIL_FROM: set both or neither'],
  [{ MAIL_FROM: 'a@example.com' }, 'SMTP_URL, MAIL_FROM: set both or neither'],
  [{ SMTP_URL: 'mail.example', MAIL_FROM: 'a@example.com' }, 'SMTP_URL: expected smtp://'],
  [{ SMTP_URL: 'https://mail.example', MAIL_FROM: 'a@example.com' }, 'SMTP_URL: expected smtp://'],
  [{ SMTP_URL: 'smtp://mail.example', MAIL_FROM: 'Vigil' }, 'MAIL_FROM: expected a mail address'],
  [{ SMTP_URL: 'smtp://mail.example', MAIL_FROM: 'a@example.com, b@example.com' }, 'MAIL_FROM'],
  [{ TELEGRAM_TOKEN: '1/../2' }, 'TELEGRAM_TOKEN: expected the token of a bot'],
  [{ TELEGRAM_URL: 'api.telegram.org' }, 'TELEGRAM_URL: expected http:// or https://'],
  [{ PUBLIC_URL: 'vigil.example' }, 'PUBLIC_URL: expected http:// or https://'],
  [{ PUBLIC_URL: 'https://vigil.example/?x=1' }, 'PUBLIC_URL: expected an address without ? and #'],
];

test.each(REFUSED)('does not start with %j', (env, problem) => {
  expect(() => parseConfig(env)).toThrow(problem);
});
