/** Reports by mail on their page: a schedule of what is shown, sent now, paused and removed; and the hours of a shift in the address. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { VIEWER_ROLE_ID } from '../../../src/core/builtin.js';
import { animationsEnd, findAxe } from '../../support/browser/axe.js';
import { useBrowser } from '../../support/browser/browser.js';
import { untilNotice } from '../../support/browser/notices.js';
import { createPerson } from '../../support/callers.js';
import { useService } from '../../support/fixture.js';
import { type MailServer, startMailServer } from '../../support/mail-server.js';
import { readMail } from '../../support/mail-text.js';
import { eventually, until } from '../../support/until.js';

const env: Record<string, string> = { MAIL_FROM: 'reports@vigil.example' };
let mail: MailServer;
beforeAll(async () => {
  mail = await startMailServer();
  env.SMTP_URL = mail.url;
});
const service = useService({ env });
const browser = useBrowser(service);
afterAll(() => mail.stop());
let vans: string;

beforeAll(async () => {
  vans = (await service.admin('POST', 'groups', { name: 'Vans' })).body._id;
  await service.admin('POST', 'objects', { id: 'van-1', name: 'Van 1', group: vans });
});

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const openDialog = async (page: Page): Promise<void> => {
  await page.getByRole('button', { name: 'Send by mail …' }).click();
  await page.getByRole('dialog', { name: 'Send by mail' }).waitFor();
};
const schedules = async () => (await service.admin('GET', 'schedules')).body;

test('schedules the report that is shown, sends it now, pauses and removes it', async () => {
  const page = await browser.openAs(`/reports?range=lastMonth&group=${vans}&every=1+day`);
  await openDialog(page);
  // Nobody is mailed who has no address.
  await page.getByText('You have no confirmed mail address yet').waitFor();
  await service.admin('PATCH', 'account', { channels: [{ email: 'admin@example.com' }] });
  await page.getByLabel('Name', { exact: true }).fill('Vans of the month');
  await page.getByLabel('At', { exact: true }).fill('07:30');
  await button(page, 'Schedule').click();
  await untilNotice(page, 'Vans of the month is scheduled');
  const [schedule] = await schedules();
  expect(schedule).toMatchObject({
    name: 'Vans of the month',
    report: 'mileage',
    query: { group: vans, every: '1 day' },
    interval: 'last month',
    cron: '30 7 1 * *',
    language: 'en',
  });
  await button(page, 'Send now: Vans of the month').click();
  await until(() => mail.mails.length === 1, 'the mail');
  expect(readMail(mail.mails[0] as never).subject).toContain('Vans of the month: Mileage, ');
  await page.getByText(/Sent .+: 1 mail\./).waitFor();

  await button(page, 'Pause: Vans of the month').click();
  await page.getByText('Paused').waitFor();
  expect((await schedules())[0]).toMatchObject({ active: false, due: null });
  await button(page, 'Resume: Vans of the month').click();
  await page.getByText('Paused').waitFor({ state: 'detached' });
  await button(page, 'Remove: Vans of the month').click();
  await button(page, 'Remove').click();
  await page.getByText('No report is sent by mail yet.').waitFor();
  expect(await schedules()).toEqual([]);
});

test('keeps the hours of a shift in the address, and sends the last shift by mail to a group', async () => {
  const page = await browser.openAs(`/reports?kind=shift&group=${vans}`);
  await button(page, 'Last shift').click();
  await page.getByLabel('To time').fill('14:30');
  await page.getByLabel('To time').press('Enter');
  const asked = page.waitForRequest((request) => {
    const { pathname, searchParams } = new URL(request.url());
    const isOf = (name: string, time: string): boolean => searchParams.get(name)?.endsWith(`T${time}`) === true;
    return pathname.endsWith('/reports/shift') && isOf('from', '05:30') && isOf('to', '14:30');
  });
  await page.getByLabel('From time').fill('05:30');
  await page.getByLabel('From time').press('Enter');
  await asked;
  await eventually(async () => {
    const { searchParams } = new URL(page.url());
    expect([searchParams.get('range'), searchParams.get('hours')]).toEqual(['lastShift', '05:30-14:30']);
  });
  await page.getByText('05:30 – 14:30').waitFor();
  await openDialog(page);
  await page.getByRole('dialog').getByLabel('To', { exact: true }).selectOption({ label: 'All of Vans' });
  await button(page, 'Schedule').click();
  await untilNotice(page, 'Shift, Vans is scheduled');
  const [schedule] = await schedules();
  expect(schedule).toMatchObject({
    interval: 'last shift',
    hours: { from: '05:30', to: '14:30' },
    cron: '30 14 * * *',
    to: { group: vans },
  });
  // Nobody of the group has an address, which the list says.
  await button(page, 'Send now: Shift, Vans').click();
  await page.getByText(/Not sent .+: nobody to whom it goes has a confirmed mail address/).waitFor();
  await service.admin('DELETE', `schedules/${schedule._id}`);
});

test('shows schedules to those who may only read, without what they may not do', async () => {
  const body = {
    name: 'Theirs',
    report: 'trips',
    interval: 'yesterday',
    cron: '0 6 * * *',
    group: vans,
    to: { group: vans },
  };
  const { _id } = (await service.admin('POST', 'schedules', body)).body;
  const viewer = await createPerson(service, { role: VIEWER_ROLE_ID, group: vans });
  const page = await browser.openAs('/reports', viewer);
  await openDialog(page);
  await page.getByText('Theirs').waitFor();
  await eventually(async () => expect(await button(page, 'Schedule').count()).toBe(0));
  await eventually(async () => expect(await button(page, 'Pause: Theirs').count()).toBe(0));
  await service.admin('DELETE', `schedules/${_id}`);
});

test('has no fault of accessibility in either theme, on a phone and in German', async () => {
  const body = {
    name: 'Kilometer der Woche',
    report: 'mileage',
    interval: 'last week',
    cron: '0 6 * * mon',
    to: { group: vans },
  };
  const { _id } = (await service.admin('POST', 'schedules', body)).body;
  const axe = await findAxe();
  for (const [theme, options, title] of [
    ['light', {}, 'Send by mail …'],
    ['dark', browser.phone, 'Send by mail …'],
    ['light', { ...browser.phone, locale: 'de-DE' }, 'Per Mail senden …'],
  ] as const) {
    const page = await browser.openAs(`/reports?kind=shift&range=lastShift&group=${vans}`, undefined, options);
    await page.emulateMedia({ colorScheme: theme });
    await page.locator(`html[data-theme=${theme}]`).waitFor();
    await page.getByRole('button', { name: title }).waitFor();
    if (process.env.PICTURES)
      await page.screenshot({ path: `${process.env.PICTURES}/shift-${theme}-${title.length}.png` });
    await page.getByRole('button', { name: title }).click();
    await page.getByText('Kilometer der Woche').waitFor();
    await animationsEnd(page);
    await page.evaluate(axe);
    const found = await page.evaluate('axe.run().then(({ violations }) => violations.map(({ id }) => id))');
    expect([theme, title, found]).toEqual([theme, title, []]);
    const scrolls = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
    expect([theme, title, scrolls]).toEqual([theme, title, false]);
    if (process.env.PICTURES)
      await page.screenshot({ path: `${process.env.PICTURES}/mail-${theme}-${title.length}.png`, fullPage: true });
  }
  await service.admin('DELETE', `schedules/${_id}`);
});
