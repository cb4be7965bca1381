/** The requests of docs/how-to/scheduled-reports.md, as the page has them: a mail comes. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { entityOf } from '../support/answers.js';
import { MONDAY, useMailing } from './mailing.js';

const PAGE = readFileSync('docs/how-to/scheduled-reports.md', 'utf8');
const mailing = useMailing();

test('sends the mileage of the week as the page has it', async () => {
  const { owner } = mailing;
  const bodies = [...PAGE.matchAll(/-d '([^']+)'/g)].map(([, body]) => String(body).replace('<_id>', owner.id));
  const [channels, schedule] = bodies.map((body) => JSON.parse(body));
  expect((await owner.call('PATCH', 'account', channels)).status).toBe(200);
  const { _id, due } = entityOf(await owner.call('POST', 'schedules', schedule));
  expect(new Date(Number(due)).toLocaleString('en-GB', { timeZone: schedule.tz })).toMatch(/, 06:00:00$/);
  await owner.call('POST', `schedules/${_id}/run`);
  const [one] = await mailing.received(1);
  expect(one?.subject).toContain('Mileage of the week: Mileage, ');
  expect(one?.file?.name).toMatch(/^mileage-.+\.csv$/);
  expect(await mailing.ended(_id, MONDAY)).toMatchObject({ status: 'sent', mails: 1 });
});

test.each(['"interval": "last month"', '"report": "shift"'])('accepts the variant with %s', async (beginning) => {
  const from = PAGE.indexOf(beginning);
  const fields = JSON.parse(`{${PAGE.slice(from, PAGE.indexOf('`', from))}}`);
  expect((await mailing.schedule(mailing.owner, fields)).status).toBe(200);
});
