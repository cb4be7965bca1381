/** Reports by mail: what is sent, when, and how often, with one instance and with two. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { startSecond } from '../support/fixture.js';
import { readMail } from '../support/mail-text.js';
import { eventually } from '../support/until.js';
import { DAY, HOUR, MINUTE, MONDAY, useMailing } from './mailing.js';

const mailing = useMailing();

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

describe('a schedule', () => {
  test('sends the report of the week before, once, and says when the next one is', async () => {
    const created = entityOf(await mailing.schedule(mailing.owner, { query: { group: mailing.vans } }));
    const due = MONDAY + HOUR;
    expect(created).toMatchObject({
      due,
      lastRun: null,
      active: true,
      tz: 'UTC',
      language: 'en',
      owner: mailing.owner.id,
    });
    expect(Object.keys(created)).not.toContain('_scopes');
    mailing.nowMs = due + MINUTE;
    const [one] = await mailing.received(1);
    const days = [dayOf(MONDAY - 7 * DAY), dayOf(MONDAY - DAY)];
    expect(one?.subject).toMatch(/^Week: Mileage, \w+ \d+/);
    expect(one?.messageId).toMatch(/^<[0-9a-f]{32}@vigil.example>$/);
    expect(one?.text).toContain('Objects: 2\nRows: 2\nDistance: 33.4 km\nTrips: 2\nMoving: 30 min');
    expect(one?.text).toMatch(/Van 1 +22.2 km +1 +20 min/);
    expect(one?.text).toContain(`${mailing.owner.login} has scheduled this report, “Week”, for you.`);
    expect(one?.text).not.toContain('late');
    expect(one?.text.endsWith(`/base/reports?kind=mileage&group=${mailing.vans}&from=${days[0]}&to=${days[1]}`)).toBe(
      true,
    );
    expect(one?.file?.name).toBe(`mileage-${days.join('-')}.csv`);
    expect(one?.file?.text).toMatch(/^\ufeffobject,id,name,from,to,distance_m/);
    expect(one?.file?.text).toContain(",'=Van 2,");
    expect(await mailing.ended(created._id, due)).toEqual({
      time: mailing.nowMs,
      due,
      late: false,
      status: 'sent',
      mails: 1,
      error: null,
    });
    expect((await mailing.get(created._id)).due).toBe(due + 7 * DAY);
    expect(await mailing.service.client.db().collection('reportMails').countDocuments()).toBe(0);
    expect(mailing.service.logLines.join('')).not.toContain('ada@example.com');
    expect(mailing.mail.mails).toHaveLength(1);
  });

  test('sends one mail for a time that comes twice to an instance, or to two of them', async () => {
    await startSecond(mailing.service, mailing.endings, mailing);
    const id = await mailing.create(mailing.owner);
    mailing.nowMs = MONDAY + HOUR;
    await mailing.received(1);
    await mailing.ended(id, mailing.nowMs);
    // As if an instance had ended before it could store that it was done.
    await mailing.store(id, { due: mailing.nowMs, lastDue: null, lastRun: null });
    await eventually(async () => expect((await mailing.get(id)).lastRun).not.toBeNull());
    const other = await mailing.create(mailing.owner, { cron: '0 7 * * *', interval: 'yesterday' });
    mailing.nowMs += HOUR;
    await mailing.ended(other, mailing.nowMs);
    expect(mailing.mail.mails.map(readMail).map(({ subject }) => subject.split(',')[0])).toEqual([
      'Week: Mileage',
      'Week: Mileage',
    ]);
    expect(new Set(mailing.mail.mails.map(readMail).map(({ messageId }) => messageId)).size).toBe(2);
  });

  test('waits for the lease of an instance that has died, and then sends once', async () => {
    await mailing.holdLease(Date.now() + 2_000);
    const id = await mailing.create(mailing.owner);
    mailing.nowMs = MONDAY + HOUR;
    await mailing.ended(id, mailing.nowMs);
    expect(mailing.mail.mails).toHaveLength(1);
  });

  test('is sent once after an outage of days, for the last time that was missed, and says that it is late', async () => {
    const id = await mailing.create(mailing.owner, { cron: '0 6 * * *', interval: 'yesterday' });
    mailing.nowMs = MONDAY + 3 * DAY + 4 * HOUR;
    const [one] = await mailing.received(1);
    const due = MONDAY + 3 * DAY + HOUR;
    expect(await mailing.ended(id, due)).toMatchObject({ time: mailing.nowMs, late: true, status: 'sent' });
    expect(one?.text).toContain('This report is late: it was due on');
    expect(one?.file?.name).toBe(`mileage-${dayOf(due - DAY)}.csv`);
    expect((await mailing.get(id)).due).toBe(due + DAY);
    expect(mailing.mail.mails).toHaveLength(1);
  });

  test('is paused, changed and sent on request', async () => {
    const id = await mailing.create(mailing.owner, { active: false, language: 'de', query: { every: '1 day' } });
    expect((await mailing.get(id)).due).toBeNull();
    mailing.nowMs = MONDAY + 2 * HOUR;
    expect((await mailing.owner.call('POST', `schedules/${id}/run`)).body).toEqual({
      success: true,
      due: mailing.nowMs,
    });
    const [one] = await mailing.received(1);
    expect(one?.subject).toContain('Week: Kilometer, ');
    expect(one?.text).toContain('Strecke: 33,4 km');
    expect(one?.file?.text).toMatch(/^\ufeffobject;id;name;/);
    expect(await mailing.ended(id, mailing.nowMs)).toMatchObject({ status: 'sent', late: false });
    expect((await mailing.get(id)).due).toBeNull();
    const changed = await mailing.owner.call('PATCH', `schedules/${id}`, { active: true, cron: '30 9 * * *' });
    expect(changed.body.due).toBe(MONDAY + 4.5 * HOUR);
    expect((await mailing.owner.call('PATCH', `schedules/${id}`, { name: 'Other' })).body.due).toBe(
      MONDAY + 4.5 * HOUR,
    );
    expect((await mailing.owner.call('PATCH', `schedules/${id}`, { active: false })).body.due).toBeNull();
    await eventually(async () => {
      const { body } = await mailing.service.admin('GET', `audit?where.entity=${id}`);
      expect(JSON.stringify(body)).toContain('report asked for');
    });
  });

  test('sends every kind of report, also where nothing happened', async () => {
    const kinds = ['mileage', 'trips', 'stops', 'geofences', 'utilization', 'shift'];
    await Promise.all(
      kinds.map((report) => mailing.create(mailing.owner, { name: report, report, query: { param: 'mode' } })),
    );
    mailing.nowMs = MONDAY + HOUR;
    const mails = await mailing.received(kinds.length);
    expect(mails.map(({ subject }) => subject.split(':')[0]).sort()).toEqual([...kinds].sort());
    expect(mails.find(({ subject }) => subject.startsWith('shift'))?.text).toContain(
      'There is nothing in this interval.',
    );
    expect(mails.find(({ subject }) => subject.startsWith('trips'))?.text).toMatch(
      /Van 1 +\w+ \d+, \d{4}, .* 20 min +22.2 km/,
    );
  });

  test('names the hours of a shift, in the time zone of the schedule, also in its link', async () => {
    const shift = { interval: 'last shift', hours: { from: '20:00', to: '04:30' }, tz: 'Asia/Kathmandu' };
    await mailing.create(mailing.owner, { ...shift, report: 'shift', cron: '0 12 * * *' });
    mailing.nowMs = MONDAY + 1.25 * HOUR;
    const [one] = await mailing.received(1);
    const day = dayOf(MONDAY - DAY);
    expect(one?.text).toContain('8:00');
    expect(one?.text.endsWith(`/reports?kind=shift&from=${day}&to=${day}&hours=20%3A00-04%3A30`)).toBe(true);
  });

  test('attaches no file that is too large for a mail', async () => {
    const usual = LIMITS.scheduleFileBytes;
    Object.assign(LIMITS, { scheduleFileBytes: 100 });
    await mailing.create(mailing.owner);
    mailing.nowMs = MONDAY + HOUR;
    const [one] = await mailing.received(1);
    Object.assign(LIMITS, { scheduleFileBytes: usual });
    expect(one?.file).toBeNull();
    expect(one?.text).toContain('too much for a mail: open the report in Vigil.');
    expect(one?.text).toContain('Distance: 33.4 km');
  });
});

describe('tenants', () => {
  test('take turns', async () => {
    const group = await mailing.createGroup('Small');
    const small = await mailing.createReader('small@example.com', { group });
    await mailing.createVan(group, 'Small', 5);
    const ids = [];
    for (let index = 0; index < 8; index++) ids.push(await mailing.create(mailing.owner, { name: `Many ${index}` }));
    const own = await mailing.create(small, { name: 'Small' });
    const from = mailing.service.changes.length;
    mailing.nowMs = MONDAY + HOUR;
    await Promise.all([...ids, own].map((id) => mailing.ended(id, mailing.nowMs)));
    await mailing.service.settled();
    const runs = mailing.service.changes
      .slice(from)
      .filter(({ store, changed }) => store === 'schedules' && changed?.includes('due'));
    // It is the last one that was stored, and does not wait for those of the other tenant.
    expect(runs.map(({ id }) => id)).toHaveLength(9);
    expect(runs.findIndex(({ id }) => id === own)).toBe(1);
  });

  test('have no more schedules than the limit, and send no more on request', async () => {
    const group = await mailing.createGroup('Full');
    const full = await mailing.createReader('full@example.com', { group });
    const usual = { ...LIMITS };
    Object.assign(LIMITS, { schedulesPerTenant: 2 });
    const [first] = await Promise.all([
      mailing.create(full, { active: false }),
      mailing.create(full, { active: false }),
    ]);
    expectRefusal(await mailing.schedule(full), 400, 'there are 2 schedules of your organisation already');
    Object.assign(LIMITS, { schedulesPerTenant: usual.schedulesPerTenant });
    const answers = [];
    for (let asked = 0; asked <= LIMITS.scheduleRunsAsked; asked++) {
      answers.push((await full.call('POST', `schedules/${first}/run`)).status);
    }
    expect(answers).toEqual([...Array.from({ length: LIMITS.scheduleRunsAsked }, () => 200), 429]);
  });
});
