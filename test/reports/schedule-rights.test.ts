/** Reports by mail: to whom they go, and with whose rights. */
import { describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID, ROOT_GROUP_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { DAY, HOUR, MONDAY, useMailing, WEEKLY } from './mailing.js';

const mailing = useMailing();

describe('the recipients', () => {
  test('are those whom the owner sees, with a confirmed mail address, and nobody else', async () => {
    const others = await mailing.createGroup('Others');
    const stranger = await mailing.createReader('stranger@example.com', { group: others });
    const colleague = await mailing.createReader('bob@example.com', { group: mailing.vans, role: VIEWER_ROLE_ID });
    const unconfirmed = await mailing.createReader('carl@example.com', { group: mailing.vans });
    const users = mailing.service.client.db().collection('users');
    await users.updateOne({ _id: new ObjectId(unconfirmed.id) }, { $unset: { _confirmed: 1 } });
    const disabled = await mailing.createReader('dora@example.com', { group: mailing.vans });
    await mailing.service.admin('PATCH', `users/${disabled.id}`, { active: false });
    expectRefusal(
      await mailing.schedule(mailing.owner, { to: { users: [mailing.owner.id, stranger.id] } }),
      400,
      'to.users[1]: there is no such entity in users',
    );
    expectRefusal(
      await mailing.schedule(mailing.owner, { to: { group: others } }),
      400,
      'to.group: there is no such entity in groups',
    );
    const query = { group: others };
    expectRefusal(
      await mailing.schedule(mailing.owner, { query }),
      400,
      'query.group: there is no such entity in groups',
    );
    const id = await mailing.create(mailing.owner, { to: { group: mailing.vans } });
    // Whoever leaves the group is out of sight.
    const moved = await mailing.createReader('eve@example.com', { group: mailing.vans });
    expect((await mailing.service.admin('POST', `users/${moved.id}/move`, { group: others })).status).toBe(200);
    mailing.nowMs = MONDAY + HOUR;
    expect(await mailing.ended(id, mailing.nowMs)).toMatchObject({ status: 'sent', mails: 2 });
    expect(mailing.mail.mails.flatMap(({ to }) => to).sort()).toEqual(['ada@example.com', 'bob@example.com']);
    await mailing.service.admin('DELETE', `users/${colleague.id}`);
  });

  test('keep nobody else waiting when their server refuses the mail, which the schedule shows', async () => {
    const refused = await mailing.createReader('refused-550@example.com', { group: mailing.vans });
    const id = await mailing.create(mailing.owner, { to: { users: [mailing.owner.id, refused.id] } });
    mailing.nowMs = MONDAY + HOUR;
    expect(await mailing.ended(id, mailing.nowMs)).toMatchObject({
      mails: 2,
      error: '1 of 2 mails: the mail server answered 550',
    });
    expect(mailing.mail.mails).toHaveLength(1);
  });
});

describe('the rights', () => {
  const failure = async (id: string) => (await mailing.ended(id, mailing.nowMs)).error;

  test('are those of the owner at that moment', async () => {
    const reader = await mailing.createReader('reader@example.com', { group: mailing.vans });
    const own = { role: ADMINISTRATOR_ROLE_ID, group: mailing.vans };
    const [gone, viewer, elsewhere] = await Promise.all([
      createPerson(mailing.service, own),
      createPerson(mailing.service, own),
      createPerson(mailing.service, own),
    ]);
    const to = { users: [reader.id] };
    const ids = await Promise.all([gone, viewer, elsewhere].map((one) => mailing.create(one as Person, { to })));
    await mailing.service.admin('PATCH', `users/${gone.id}`, { active: false });
    await mailing.service.admin('PATCH', `users/${viewer.id}`, { role: VIEWER_ROLE_ID });
    const empty = entityOf(await mailing.service.admin('POST', 'groups', { name: 'Empty', parent: mailing.vans }))._id;
    await mailing.service.admin('POST', `users/${elsewhere.id}/move`, { group: empty });
    mailing.nowMs = MONDAY + HOUR;
    expect(await Promise.all(ids.map(failure))).toEqual([
      'its owner is no active user',
      'its owner may not schedule reports',
      'nobody to whom it goes has a confirmed mail address',
    ]);
    expect(mailing.mail.mails).toEqual([]);
    expect((await mailing.get(ids[0] as string)).due).toBe(mailing.nowMs + 7 * DAY);
  });

  test('are those of a token with scopes, where it was set up with one', async () => {
    const scopes = ['POST /schedules', 'GET /objects/*/packets'];
    const { token } = entityOf(await mailing.owner.call('POST', 'tokens', { name: 'narrow', scopes }));
    const limited = await mailing.service.as(token)('POST', 'schedules', {
      ...WEEKLY,
      to: { users: [mailing.owner.id] },
    });
    const id = entityOf(limited)._id as string;
    mailing.nowMs = MONDAY + HOUR;
    expect(await failure(id)).toBe('its owner sees none of the objects that it covers');
    expect(mailing.mail.mails).toEqual([]);
  });

  test('are lent to nobody else: others pause, rename and remove it', async () => {
    const other = await mailing.createReader('mallory@example.com', { group: mailing.vans });
    const id = await mailing.create(mailing.owner);
    for (const fields of [{ to: { users: [other.id] } }, { query: {}, report: 'trips' }, { interval: 'today' }]) {
      expectRefusal(await other.call('PATCH', `schedules/${id}`, fields), 403, 'only its owner changes');
    }
    const { body } = await other.call('GET', `schedules/${id}`);
    const same = await other.call('PATCH', `schedules/${id}`, { ...body, active: false, name: 'Paused' });
    expect(same).toMatchObject({ status: 200, body: { owner: mailing.owner.id, active: false, due: null } });
    expect((await other.call('DELETE', `schedules/${id}`)).status).toBe(200);
  });

  test('end with the move of the owner to the root group, whose objects the recipients must not see', async () => {
    const reader = await mailing.createReader('stays@example.com', { group: mailing.vans });
    const owner = await createPerson(mailing.service, { role: ADMINISTRATOR_ROLE_ID, group: mailing.vans });
    const id = await mailing.create(owner, { to: { users: [reader.id] } });
    const other = await mailing.createGroup('Another tenant');
    await mailing.createVan(other, 'Secret', 5);
    expect((await mailing.service.admin('POST', `users/${owner.id}/move`, { group: ROOT_GROUP_ID })).status).toBe(200);
    mailing.nowMs = MONDAY + HOUR;
    expect(await failure(id)).toBe('its owner has moved to another organization');
    expect(mailing.mail.mails).toEqual([]);
  });

  test('let no other tenant see, send or change it', async () => {
    const neighbour = await mailing.createReader('neighbour@example.com', {
      group: await mailing.createGroup('Neighbours'),
    });
    const id = await mailing.create(mailing.owner);
    for (const [method, path] of [
      ['GET', id],
      ['PATCH', id],
      ['DELETE', id],
      ['POST', `${id}/run`],
    ] as const) {
      expect((await neighbour.call(method, `schedules/${path}`, method === 'GET' ? undefined : {})).status).toBe(404);
    }
  });
});
