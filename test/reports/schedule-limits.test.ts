/** Reports by mail: how often a schedule may send, however it is changed, and how many mails a recipient gets of all schedules. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { eventually } from '../support/until.js';
import { HOUR, MINUTE, MONDAY, useMailing } from './mailing.js';

const mailing = useMailing();
const change = (id: string, patch: object) => mailing.owner.call('PATCH', `schedules/${id}`, patch);

describe('a schedule that is changed', () => {
  test('sends once an hour at most, however often its times are changed', async () => {
    const id = await mailing.create(mailing.owner, { cron: '0 6 * * *' });
    mailing.nowMs = MONDAY + HOUR;
    await mailing.ended(id, mailing.nowMs);
    for (let minute = 1; minute <= 5; minute++) {
      const { due } = (await change(id, { cron: `${minute} * * * *` })).body;
      expect(due).toBe(MONDAY + 2 * HOUR + minute * MINUTE);
      mailing.nowMs = MONDAY + HOUR + minute * MINUTE;
    }
    expect((await change(id, { tz: 'Asia/Kathmandu', active: false })).body.due).toBeNull();
    expect((await change(id, { cron: '51 * * * *', active: true })).body.due).toBe(MONDAY + 2 * HOUR + 6 * MINUTE);
    // As if it had been changed while the former run was under way.
    await mailing.store(id, { due: mailing.nowMs });
    await eventually(async () => expect((await mailing.get(id)).due).toBe(MONDAY + 2 * HOUR + 6 * MINUTE));
    expect(mailing.mail.mails).toHaveLength(1);
    mailing.nowMs = MONDAY + 2 * HOUR + 6 * MINUTE;
    await mailing.ended(id, mailing.nowMs);
    expect(mailing.mail.mails).toHaveLength(2);
  });

  test('sends what was asked for, whatever is changed meanwhile', async () => {
    const id = await mailing.create(mailing.owner, { cron: '0 6 * * *' });
    const release = await mailing.holdLease(Date.now() + HOUR);
    const asked = (await mailing.owner.call('POST', `schedules/${id}/run`)).body.due;
    expect((await change(id, { cron: '30 9 * * *' })).body).toMatchObject({ asked, due: MONDAY + 4.5 * HOUR });
    expect((await change(id, { active: false })).body).toMatchObject({ asked, due: null });
    await release();
    expect(await mailing.ended(id, asked)).toMatchObject({ status: 'sent', mails: 1 });
    expect(await mailing.get(id)).toMatchObject({ asked: null, due: null });
    expect(mailing.mail.mails).toHaveLength(1);
  });
});

describe('a recipient', () => {
  test('gets so many mails of all schedules in a day, which the schedules say', async () => {
    const usual = LIMITS.scheduleMailsPerAddress;
    mailing.endings.push(() => Object.assign(LIMITS, { scheduleMailsPerAddress: usual }));
    Object.assign(LIMITS, { scheduleMailsPerAddress: 3 });
    const full = await mailing.createReader('full@example.com', { group: mailing.vans });
    const other = await mailing.createReader('other@example.com', { group: mailing.vans });
    const hourly = { cron: '0 * * * *', to: { users: [full.id] } };
    const ids = await Promise.all([1, 2].map(() => mailing.create(mailing.owner, hourly)));
    const both = await mailing.create(mailing.owner, { cron: '0 9 * * *', to: { users: [full.id, other.id] } });
    const runsAt = async (hours: number, run: readonly string[]) => {
      mailing.nowMs = MONDAY + hours * HOUR;
      return Promise.all(run.map((id) => mailing.ended(id, mailing.nowMs)));
    };
    const refusal = 'at most 3 reports in 24 h to a mail address';
    const failed = { status: 'failed', mails: 0, error: `nobody is mailed: ${refusal}` };
    expect(await runsAt(1, ids)).toMatchObject([{ status: 'sent' }, { status: 'sent' }]);
    expect((await runsAt(2, ids)).map(({ status }) => status).sort()).toEqual(['failed', 'sent']);
    expect(await runsAt(3, ids)).toMatchObject([failed, failed]);
    // Whoever has room for it is mailed.
    expect(await runsAt(4, [...ids, both])).toMatchObject([
      failed,
      failed,
      { status: 'failed', mails: 2, error: `1 of 2 mails: ${refusal}` },
    ]);
    const asked = (await mailing.owner.call('POST', `schedules/${ids[0]}/run`)).body.due;
    expect(await mailing.ended(ids[0] as string, asked)).toMatchObject(failed);
    expect(mailing.mail.mails.flatMap(({ to }) => to).sort()).toEqual([
      'full@example.com',
      'full@example.com',
      'full@example.com',
      'other@example.com',
    ]);
    // What was sent a day ago does not count.
    expect(await runsAt(26, ids)).toMatchObject([{ status: 'sent' }, { status: 'sent' }]);
  });
});
