/** Reports by mail: what is refused, and why. */
import { describe, expect, test } from '@jest/globals';
import { expectRefusal } from '../support/answers.js';
import { startSecond } from '../support/fixture.js';
import { useMailing, WEEKLY } from './mailing.js';

const mailing = useMailing();

describe('what is wrong', () => {
  const REFUSED: [fields: object, mention: string][] = [
    [{ name: undefined }, 'name: required'],
    [{ report: undefined }, 'report: required'],
    [{ report: 'fuel' }, 'report: expected one of mileage, trips'],
    [{ interval: 'last year' }, 'interval: expected one of today, yesterday'],
    [{ interval: undefined }, 'interval: required'],
    [{ cron: undefined }, 'cron: required'],
    [{ cron: '* * * * *' }, 'the minute is one number'],
    [{ cron: '*/5 6 * * *' }, 'the minute is one number'],
    [{ cron: '0,30 6 * * *' }, 'the minute is one number'],
    [{ cron: '60 6 * * *' }, 'the minute is one number'],
    [{ cron: '0 25 * * *' }, 'cron: expected minute, hour'],
    [{ cron: '0 6 * * moon' }, 'cron: expected minute, hour'],
    [{ cron: '0 0 6 * * *' }, 'cron: expected minute, hour'],
    [{ cron: '@daily' }, 'cron: expected minute, hour'],
    [{ cron: '0 0 31 2 *' }, 'cron: there is no such day'],
    [{ cron: 5 }, 'cron: '],
    [{ tz: 'Mars/Base' }, 'tz: expected a time zone'],
    [{ tz: 1 }, 'tz: '],
    [{ language: 'fr' }, 'language: expected one of en, de'],
    [{ active: 'yes' }, 'active: '],
    [{ query: 'group=x' }, 'query: expected an object'],
    [{ query: { from: '2026-01-01' } }, 'query.from: not known; expected group'],
    [{ query: { every: 5 } }, 'query.every: expected a text'],
    [{ query: { every: '1 h' } }, 'query.every: expected days or longer'],
    [{ query: { gap: '3600' } }, 'query.gap: 3600 looks like seconds'],
    [{ query: { group: 'vans' } }, 'query.group: expected the _id of a group'],
    [{ report: 'utilization' }, 'query.param: expected the name of a parameter'],
    [{ report: 'geofences', query: { geofences: 'depot' } }, 'query.geofences: expected the _id'],
    [{ interval: 'last shift' }, 'hours: required for the last shift'],
    [{ interval: 'last shift', hours: { from: '06:00' } }, 'hours.to: required'],
    [{ interval: 'last shift', hours: { from: '06:00', to: '25:00' } }, 'hours.to: expected a time of day'],
    [{ interval: 'last shift', hours: { from: '06:00', to: '14:00', tz: 'UTC' } }, 'hours.tz: not known'],
    [{ hours: { from: '06:00', to: '14:00' } }, 'hours: only with the interval "last shift"'],
    [{ to: undefined }, 'to: required'],
    [{ to: 'ada@example.com' }, 'to: expected an object'],
    [{ to: {} }, 'to: expected users or group'],
    [{ to: { users: ['ada@example.com'] } }, 'to.users[0]: expected the _id of a user'],
    [{ to: { users: [] } }, 'to.users: expected a list of 1 to'],
    [{ to: { email: 'ada@example.com' } }, 'to.email: not known'],
    [{ to: { group: 'vans' } }, 'to.group: expected the _id of a group'],
    [{ to: { users: ['0'.repeat(24)] } }, 'to.users[0]: there is no such entity'],
    [{ to: { group: `${'0'.repeat(23)}1`, text: 'Hello' } }, 'to.text: not known'],
  ];

  test.each(REFUSED)('is told for %j', async (fields, mention) => {
    expectRefusal(await mailing.schedule(mailing.owner, fields), 400, mention);
  });

  test('is told for a change, which leaves everything as it was', async () => {
    const id = await mailing.create(mailing.owner);
    const before = await mailing.get(id);
    expectRefusal(
      await mailing.owner.call('PATCH', `schedules/${id}`, { interval: 'last shift' }),
      400,
      'hours: required',
    );
    expectRefusal(
      await mailing.owner.call('PATCH', `schedules/${id}`, { cron: '* * * * *' }),
      400,
      'the minute is one number',
    );
    await mailing.owner.call('PATCH', `schedules/${id}`, { due: 1, lastRun: { time: 1 }, owner: 'x' });
    const { _at, ...after } = await mailing.get(id);
    expect(after).toEqual(before);
  });

  test('is an installation that sends no mail', async () => {
    const id = await mailing.create(mailing.owner);
    const bare = await startSecond(mailing.service, mailing.endings, { now: mailing.now });
    const refusal = 'this installation sends no mail: its operator has not set SMTP_URL';
    const call = bare.as(mailing.owner.token);
    expectRefusal(await call('POST', 'schedules', { ...WEEKLY, to: { users: [mailing.owner.id] } }), 400, refusal);
    expectRefusal(await call('POST', `schedules/${id}/run`), 400, refusal);
  });
});
