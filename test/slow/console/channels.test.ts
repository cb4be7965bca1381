/** The page of channels: a user adds, confirms, tests and removes them, and says when they are used. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { entityOf } from '../../support/answers.js';
import { findAxe } from '../../support/browser/axe.js';
import { useBrowser } from '../../support/browser/browser.js';
import { untilNotice } from '../../support/browser/notices.js';
import { createPerson, type Person } from '../../support/callers.js';
import { lastCode } from '../../support/channels.js';
import { useService } from '../../support/fixture.js';
import { type MailServer, startMailServer } from '../../support/mail-server.js';
import { useReceiver } from '../../support/receiver.js';
import { eventually, until } from '../../support/until.js';

const PATH = '/account/channels';
const receiver = useReceiver();
const env: Record<string, string> = { WEBHOOK_NETWORKS: '127.0.0.1', MAIL_FROM: 'alarms@vigil.example' };
let mail: MailServer;
beforeAll(async () => {
  mail = await startMailServer();
  env.SMTP_URL = mail.url;
});
const service = useService({ env });
const browser = useBrowser(service);
afterAll(() => mail.stop());

/** Of the root group, nobody is asked for codes. */
async function createMember(): Promise<Person> {
  const { _id: group } = entityOf(await service.admin('POST', 'groups', { name: 'Tenant' }));
  return createPerson(service, { group });
}

const settingsOf = async (person: Person) => {
  const { channels, quiet, minSeverity } = (await person.call('GET', 'account')).body;
  return { channels, quiet, minSeverity };
};
const button = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: typeof name === 'string' });

test('adds a mail address, which its code confirms, tests it and removes it', async () => {
  browser.expectErrors(/400/);
  const ada = await createMember();
  const page = await browser.openAs(PATH, ada);
  await page.getByText('You are not told of alarms').waitFor();
  await page.getByLabel('Over').selectOption('email');
  await page.getByLabel('Mail address').fill('ada@example.com');
  await button(page, 'Add').click();
  await page.getByText('not confirmed').waitFor();
  await until(() => mail.mails.length === 1, 'the mail with the code');
  await page.getByLabel('Code', { exact: true }).fill('ABCDE-FGHJK');
  await button(page, 'Confirm').click();
  await page.getByText('Not the code that was sent. Attempts left: 4.').waitFor();
  await page.getByLabel('Code', { exact: true }).fill(lastCode(mail, 'ada@example.com').toLowerCase());
  await button(page, 'Confirm').click();
  await page.getByText('not confirmed').waitFor({ state: 'detached' });
  expect((await settingsOf(ada)).channels).toEqual([{ email: 'ada@example.com', confirmed: true }]);

  await button(page, /^Test/).click();
  await until(() => mail.mails.length === 2, 'the test');
  expect(mail.mails[1]?.text).toContain('Subject: Test from Vigil');

  await button(page, /^Remove/).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByText('You are not told of alarms').waitFor();
  expect((await settingsOf(ada)).channels).toEqual([]);
});

test('keeps the channels that another page has added, and says what is wrong with an address', async () => {
  browser.expectErrors(/400/);
  const ada = await createMember();
  const page = await browser.openAs(PATH, ada);
  await page.getByText('You are not told of alarms').waitFor();
  const other = { ntfy: `${receiver.url}other` };
  await ada.call('PATCH', 'account', { channels: [other] });
  await page.getByLabel('Over').selectOption('ntfy');
  const address = page.getByLabel('Address of the topic');
  await address.fill(`${receiver.url}own`);
  await button(page, 'Add').click();
  await page.getByText(`${receiver.url}other`).waitFor();
  expect((await settingsOf(ada)).channels).toEqual([
    { ...other, confirmed: true },
    { ntfy: `${receiver.url}own`, confirmed: true },
  ]);
  await address.fill('ntfy.sh/own');
  await button(page, 'Add').click();
  await page.getByText('Expected the address of a topic').waitFor();
  await eventually(async () => expect(await address.getAttribute('aria-invalid')).toBe('true'));
  await button(page, `Test: ${receiver.url}own`).click();
  await until(() => receiver.received.some(({ path }) => path === '/own'), 'the test');
  expect(receiver.received.map(({ path }) => path)).toEqual(['/own']);
});

test('says when the user is told', async () => {
  const ada = await createMember();
  const page = await browser.openAs(PATH, ada);
  await page.getByLabel('From which severity').selectOption('warning');
  await page.getByLabel(/^Quiet hours/).check();
  await page.getByLabel('To', { exact: true }).fill('07:30');
  await page.getByLabel('Time zone').fill('Europe/Berlin');
  await button(page, 'Save').click();
  await untilNotice(page, 'Saved.');
  const quiet = { from: '22:00', to: '07:30', tz: 'Europe/Berlin' };
  expect(await settingsOf(ada)).toEqual({ channels: [], quiet, minSeverity: 'warning' });
  await page.reload();
  await page.getByLabel(/^Quiet hours/).uncheck();
  await button(page, 'Save').click();
  await untilNotice(page, 'Saved.');
  expect(await settingsOf(ada)).toEqual({ channels: [], quiet: null, minSeverity: 'warning' });
});

test.each([
  ['en', 'Send code'],
  ['de', 'Code senden'],
])('can be used by everybody, in %s', async (language, shown) => {
  const ada = await createMember();
  const channels = [{ email: 'a-long-name-of-a-mailbox@mail.of-the-company.example' }, { ntfy: `${receiver.url}own` }];
  await ada.call('PATCH', 'account', { channels, quiet: { from: '22:00', to: '06:00', tz: 'Europe/Berlin' } });
  const page = await browser.openAs(PATH, ada);
  await page.evaluate(`localStorage.setItem('vigil.language', '${language}')`);
  await page.reload();
  await page.getByText(shown).waitFor();
  await page.evaluate(await findAxe());
  for (const viewport of [{ width: 1280, height: 900 }, browser.phone.viewport ?? { width: 390, height: 844 }]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.locator(`html[data-theme=${colorScheme}]`).waitFor();
      // What is still fading in has less contrast for an instant.
      await page.evaluate(
        'Promise.allSettled(document.getAnimations().map(({ finished }) => finished)).then(() => null)',
      );
      const violations = await page.evaluate(
        `axe.run("main").then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))`,
      );
      expect(violations).toEqual([]);
    }
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);
  }
});
