/**
 * Notifications of alarms: who is told, over which channel, when, and what the alarm says of it. Long because each case needs rules, users
 * and channels of its own.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { startTestService, type TestService } from '../support/fixture.js';
import { type MailServer, startMailServer } from '../support/mail-server.js';
import { OK, type Received, useReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

const HOT = { param: 't', op: '>', value: 8 };
const receiver = useReceiver();
let mail: MailServer;
let service: TestService;
let count = 0;

// How often the sender looks for what is due.
Object.assign(LIMITS, { notificationCheckMs: 100 });

beforeAll(async () => {
  mail = await startMailServer();
  const PUBLIC_URL = 'https://vigil.example/base';
  const channels = { SMTP_URL: mail.url, MAIL_FROM: 'alarms@vigil.example', PUBLIC_URL };
  service = await startTestService({ env: { WEBHOOK_NETWORKS: '127.0.0.1', ...channels } });
});
afterAll(async () => {
  await service?.stop();
  await mail?.stop();
});
beforeEach(() => {
  mail.mails.length = 0;
});

async function createObject(fields: object = {}): Promise<string> {
  const id = `notified-${count++}`;
  return entityOf(await service.admin('POST', 'objects', { id, name: `Truck ${count}`, ...fields }))._id;
}

/** A user with a topic of its own, who sees everything. */
async function createListener(fields: object = {}, account: object = {}): Promise<Person & { topic: string }> {
  const person = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, ...fields });
  const topic = `topic-${person.id}`;
  const answer = await person.call('PATCH', 'account', { channels: [{ ntfy: receiver.url + topic }], ...account });
  expect(answer.status).toBe(200);
  return { ...person, topic };
}

/** Creates rules for an object, and waits until they are applied. */
async function createRules(objectId: string, ...rules: object[]): Promise<void> {
  for (const fields of rules) {
    const rule = { name: 'Too warm', when: HOT, select: { objects: [objectId] }, ...fields };
    entityOf(await service.admin('POST', 'rules', rule));
  }
  for (let index = 0; index < 3; index++) await service.settled();
}

const notify = (...persons: { id: string }[]): object[] => [{ notify: { users: persons.map(({ id }) => id) } }];
const send = (objectId: string, packet: object) => service.admin('POST', `objects/${objectId}/packets`, packet);
const to = ({ topic }: { topic: string }): Received[] => receiver.received.filter(({ path }) => path === `/${topic}`);
const titles = (person: { topic: string }): unknown[] => to(person).map(({ headers }) => headers.title);

async function got(person: { topic: string }, wanted: number): Promise<Received[]> {
  await until(() => to(person).length >= wanted, `${wanted} messages`);
  return to(person);
}

async function alarmOf(objectId: string) {
  const { body } = await service.admin('GET', `alarms?where.object=${objectId}`);
  return body[0];
}

/** Resolves when everything that is due has been sent: a later alarm has been told. */
async function settle(): Promise<void> {
  const objectId = await createObject();
  const last = await createListener();
  await createRules(objectId, { then: notify(last) });
  await send(objectId, { t: 9 });
  await got(last, 1);
}

describe('an alarm', () => {
  test('is told over every channel of the users and of the group, once, and its end too', async () => {
    const objectId = await createObject();
    const group = entityOf(await service.admin('POST', 'groups', { name: 'Night shift' }))._id;
    const ada = await createListener();
    const bob = await createListener();
    const guard = await createListener({ group });
    await service.admin('POST', `objects/${objectId}/access`, { user: guard.id });
    await bob.call('PATCH', 'account', {
      channels: [{ email: 'bob@example.com' }, { ntfy: receiver.url + bob.topic }],
    });
    await createRules(objectId, {
      severity: 'critical',
      then: [{ notify: { users: [ada.id, bob.id], group } }, { notify: { users: [ada.id] } }],
    });
    await send(objectId, { t: 9, lat: 50, lon: 10 });
    const [first] = await got(ada, 1);
    await got(bob, 1);
    await got(guard, 1);
    const alarm = await alarmOf(objectId);
    expect(first).toMatchObject({
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      headers: {
        priority: '5',
        click: `https://vigil.example/base/alarms/${alarm._id}`,
        title: expect.stringContaining('=?UTF-8?B?'),
      },
      body: expect.stringContaining('t > 8: 9\nSince 20'),
    });
    await until(() => mail.mails.length === 1, 'a mail');
    expect(mail.mails[0]?.to).toEqual(['bob@example.com']);
    expect(mail.mails[0]?.text).toContain(`https://vigil.example/base/alarms/${alarm._id}`);
    expect(mail.mails[0]?.text).toMatch(/Message-ID: <[0-9a-f]{32}@vigil.example>/);

    await send(objectId, { t: 5 });
    const [, second] = await got(ada, 2);
    await got(bob, 2);
    await got(guard, 2);
    await until(() => mail.mails.length === 2, 'another mail');
    expect(second?.id).not.toBe(first?.id);
    expect(second?.body).toMatch(/Cleared .* UTC: condition$/);
    await settle();
    expect([to(ada).length, to(bob).length, to(guard).length, mail.mails.length]).toEqual([2, 2, 2, 2]);
    await until(async () => (await alarmOf(objectId)).notified?.length === 8, 'the alarm to say whom it was told');
    expect((await alarmOf(objectId)).notified).toContainEqual({
      user: bob.id,
      channel: 'email',
      step: 'cleared',
      time: expect.any(Number),
    });
  });

  test('is told with the text of the rule', async () => {
    const objectId = await createObject({ name: '<b>Truck</b>' });
    const ada = await createListener();
    const text = '{{object.name}} is at {{values.t}}, {{ values.other.x }} {{alarm.severity}}';
    await createRules(objectId, { then: [{ notify: { users: [ada.id], text } }] });
    await send(objectId, { t: 9.5 });
    const [message] = await got(ada, 1);
    expect(message?.body).toMatch(/^<b>Truck<\/b> is at 9.5, – warning\nSince /);
  });

  test('is told with the name of its geofence, also a new one', async () => {
    const geometry = { type: 'Point', coordinates: [10, 50] };
    const fence = entityOf(await service.admin('POST', 'geofences', { name: 'Yard', geometry, radius: 100 }))._id;
    const ada = await createListener();
    const objects = [await createObject(), await createObject()] as const;
    const [first] = objects;
    await createRules(first, { when: { geofence: fence, on: 'enter' }, select: { objects }, then: notify(ada) });
    for (const objectId of objects) {
      const name = objectId === first ? 'Yard' : 'Old yard';
      if (objectId !== first) await service.admin('PATCH', `geofences/${fence}`, { name });
      // A rule that runs already has the new name when the change was read.
      await service.settled();
      await send(objectId, { lat: 50.01, lon: 10 });
      await send(objectId, { lat: 50, lon: 10 });
      await until(() => to(ada).some(({ body }) => body.startsWith(`entered "${name}"\n`)), `a message of ${name}`);
      expect(await alarmOf(objectId)).toMatchObject({ why: [{ condition: `entered "${name}"` }] });
    }
  });

  test('is told nobody who does not see its object, may not read alarms, or has become inactive', async () => {
    const objectId = await createObject();
    const other = entityOf(await service.admin('POST', 'groups', { name: 'Other' }))._id;
    const role = entityOf(
      await service.admin('POST', 'roles', { name: 'r', credentials: ['GET /objects', 'PATCH /account'] }),
    )._id;
    const stranger = await createListener({ group: other });
    const blind = await createListener({ role });
    const gone = await createListener();
    const ada = await createListener();
    await createRules(objectId, { then: notify(stranger, blind, gone, ada) });
    await service.admin('PATCH', `users/${gone.id}`, { active: false });
    await send(objectId, { t: 9 });
    await got(ada, 1);
    await settle();
    expect([to(stranger), to(blind), to(gone)]).toEqual([[], [], []]);
    await until(async () => (await alarmOf(objectId)).notified?.length === 1, 'the alarm to say whom it was told');
  });

  test('is not told of late packets, and one that is below the least severity is not either', async () => {
    const objectId = await createObject();
    const ada = await createListener();
    const calm = await createListener({}, { minSeverity: 'critical' });
    await createRules(objectId, { then: notify(ada, calm) });
    await send(objectId, { t: 9, time: Date.now() - 2 * 3_600_000 });
    await send(objectId, { t: 5, time: Date.now() - 3_600_000 });
    await settle();
    expect(to(ada)).toEqual([]);
    await send(objectId, { t: 9 });
    await got(ada, 1);
    await settle();
    expect(to(calm)).toEqual([]);
  });

  test('is told as cleared where somebody has cleared it', async () => {
    const objectId = await createObject();
    const ada = await createListener();
    await createRules(objectId, { then: notify(ada) });
    await send(objectId, { t: 9 });
    await got(ada, 1);
    const { _id } = await alarmOf(objectId);
    expect((await service.admin('POST', `alarms/${_id}/clear`, {})).status).toBe(200);
    const [, second] = await got(ada, 2);
    expect(second?.body).toMatch(/Cleared .*: user$/);
  });
});

describe('an attempt', () => {
  test('is repeated with the same id where it fails', async () => {
    const objectId = await createObject();
    const ada = await createListener();
    receiver.answer = (_received, res) => void res.writeHead(to(ada).length === 1 ? 503 : 200).end();
    await createRules(objectId, { then: notify(ada) });
    await send(objectId, { t: 9 });
    const [first, second] = await got(ada, 2);
    expect(second?.id).toBe(first?.id);
    await settle();
    expect(to(ada)).toHaveLength(2);
  });

  test('is given up where it is refused, which the alarm and the audit say', async () => {
    const objectId = await createObject();
    const ada = await createListener();
    receiver.answer = ({ path }, res) => void res.writeHead(path === `/${ada.topic}` ? 403 : 200).end();
    await createRules(objectId, { then: notify(ada) });
    await send(objectId, { t: 9 });
    await until(async () => (await alarmOf(objectId))?.notified?.length === 1, 'the alarm to say it');
    const { _id, notified } = await alarmOf(objectId);
    expect(notified).toMatchObject([{ user: ada.id, channel: 'ntfy', step: 'raised', error: 'answered 403' }]);
    const audit = async () => (await service.admin('GET', `audit?where.action=notification failed`)).body;
    await until(async () => (await audit()).length > 0, 'a security event');
    expect(await audit()).toMatchObject([
      { entity: _id, user: ada.id, fields: ['channel=ntfy', 'step=raised', 'error=answered 403'] },
    ]);
    expect(to(ada)).toHaveLength(1);
  });
});

describe('a receiver that is dead', () => {
  const { notificationRetryMs, notificationProbeMs } = LIMITS;
  beforeAll(() => void Object.assign(LIMITS, { notificationRetryMs: 600_000, notificationProbeMs: 600_000 }));
  afterAll(() => void Object.assign(LIMITS, { notificationRetryMs, notificationProbeMs }));

  test('gets no attempt for each new message, and all of them once it is back', async () => {
    const objectId = await createObject();
    const ada = await createListener();
    receiver.answer = ({ path }, res) => void res.writeHead(path === `/${ada.topic}` ? 503 : 200).end();
    await createRules(objectId, { then: notify(ada) });
    await send(objectId, { t: 9 });
    await got(ada, 1);
    const rows = service.client.db().collection('notifications');
    const waiting = { user: new ObjectId(ada.id), state: 'pending', next: { $gt: Date.now() + 60_000 } };
    for (let index = 0; index < 5; index++) {
      const other = await createObject();
      await createRules(other, { severity: 'critical', then: notify(ada) });
      await send(other, { t: 9 });
      await until(async () => (await rows.countDocuments(waiting)) === index + 2, 'the message to wait');
    }
    expect(to(ada)).toHaveLength(1);

    receiver.answer = OK;
    const [first] = await rows.find(waiting).sort({ time: 1 }).toArray();
    await rows.updateMany(waiting, { $set: { rests: 0 } });
    await rows.updateOne({ _id: first?._id }, { $set: { next: 0 } });
    expect(new Set((await got(ada, 7)).map(({ id }) => id)).size).toBe(6);
  });
});

describe('an alarm that nobody acknowledges', () => {
  test('reminds those who were told, and tells others', async () => {
    const objectId = await createObject();
    const ada = await createListener();
    const boss = await createListener();
    await createRules(objectId, {
      then: notify(ada),
      remind: '1 s',
      escalate: [{ after: '1 s', then: notify(boss) }],
    });
    await send(objectId, { t: 9 });
    await got(ada, 3);
    await got(boss, 2);
    const { _id } = await alarmOf(objectId);
    const answer = await service.admin('POST', `alarms/${_id}/acknowledge`, {});
    expect(answer.body.reminders).toBeGreaterThan(1);
    await settle();
    const before = [to(ada).length, to(boss).length];
    await settle();
    await settle();
    expect([to(ada).length, to(boss).length]).toEqual(before);
    expect(new Set(to(ada).map(({ id }) => id)).size).toBe(before[0]);
    expect(String(titles(ada)[1])).toContain('UTF-8');
    await send(objectId, { t: 5 });
    await got(boss, (before[1] ?? 0) + 1);
  });

  test('tells nobody of steps whose time has not come', async () => {
    const objectId = await createObject();
    const ada = await createListener();
    const boss = await createListener();
    await createRules(objectId, { then: notify(ada), escalate: [{ after: '1 h', then: notify(boss) }] });
    await send(objectId, { t: 9 });
    await got(ada, 1);
    await send(objectId, { t: 5 });
    await got(ada, 2);
    await settle();
    expect(to(boss)).toEqual([]);
  });
});

describe('quiet hours', () => {
  const hours = (fromMs: number, toMs: number) => {
    const toClock = (ms: number): string => new Date(Date.now() + ms).toISOString().slice(11, 16);
    return { from: toClock(fromMs), to: toClock(toMs), tz: 'UTC' };
  };

  test('hold back what is not critical', async () => {
    const objectId = await createObject();
    const quiet = hours(-3_600_000, 3_600_000);
    const ada = await createListener({}, { quiet });
    const bob = await createListener({}, { quiet: hours(3_600_000, 7_200_000) });
    await createRules(objectId, { then: notify(ada, bob) });
    await createRules(objectId, { name: 'Critical', severity: 'critical', then: notify(ada) });
    await send(objectId, { t: 9 });
    await got(ada, 1);
    await got(bob, 1);
    await settle();
    expect(to(ada)).toHaveLength(1);
    expect(to(ada)[0]?.headers.priority).toBe('5');
    const waiting = await service.client
      .db()
      .collection('notifications')
      .find({ user: new ObjectId(ada.id), state: 'pending' })
      .toArray();
    expect(waiting).toHaveLength(1);
    expect(new Date(waiting[0]?.next).toISOString().slice(11, 16)).toBe(quiet.to);
  });

  test('end with the last one of the reminders that waited', async () => {
    const objectId = await createObject();
    const ada = await createListener({}, { quiet: hours(-3_600_000, 3_600_000) });
    await createRules(objectId, { then: notify(ada), remind: '1 s' });
    await send(objectId, { t: 9 });
    const rows = service.client.db().collection('notifications');
    const waiting = { user: new ObjectId(ada.id), step: /^reminder-/, state: 'pending' };
    await until(async () => (await rows.countDocuments(waiting)) > 2, 'reminders that wait');
    const [first] = await rows.find(waiting).sort({ time: 1 }).toArray();
    expect((await ada.call('PATCH', 'account', { quiet: null })).status).toBe(200);
    // All at once, as at the end of quiet hours: between two of them, the sender would not see the last one.
    await service.client.withSession((session) =>
      session.withTransaction(() =>
        rows.updateMany({ ...waiting, step: /^r/ }, { $set: { next: Date.now() } }, { session }),
      ),
    );
    await got(ada, 2);
    await until(async () => (await rows.findOne({ _id: first?._id }))?.state !== 'pending', 'the first reminder ends');
    const ended = await rows.findOne({ _id: first?._id });
    expect(ended).toMatchObject({ state: 'dropped', error: 'a later reminder follows' });
  });
});

describe('a gateway', () => {
  test('lets nobody be told of the silence of its objects while it is offline', async () => {
    const gateway = await createObject();
    const other = await createObject();
    const ada = await createListener();
    const rule = { when: { online: false }, then: notify(ada) };
    const child = await createObject({ config: { parent: gateway } });
    const orphan = await createObject({ config: { parent: other } });
    for (const objectId of [child, orphan]) await createRules(objectId, rule);
    await createRules(child, { when: HOT, then: notify(ada) });
    await send(other, { t: 1 });
    // The gateway is the last one that is known to be offline, however long that takes.
    const { gatewayWaitMs } = LIMITS;
    Object.assign(LIMITS, { gatewayWaitMs: 3_600_000 });
    const notices = service.client.db().collection('alarmNotices');
    const waiting = { gateway: { $in: [gateway, other] } };
    try {
      for (const objectId of [child, orphan, gateway]) await send(objectId, { online: false });
      await until(async () => (await notices.countDocuments(waiting)) === 2, 'two alarms that wait for a gateway');
    } finally {
      Object.assign(LIMITS, { gatewayWaitMs });
    }
    await notices.updateMany(waiting, { $set: { due: Date.now() } });
    await until(async () => (await alarmOf(child))?.suppressedBy === gateway, 'the alarm to say why nobody is told');
    await got(ada, 1);
    expect((await alarmOf(orphan)).suppressedBy).toBeUndefined();
    await send(child, { t: 9, online: true });
    await got(ada, 2);
    await settle();
    expect(to(ada)).toHaveLength(2);
    expect(to(ada)[1]?.body).toMatch(/^t > 8: 9/);
  });
});

describe('gateways that name each other', () => {
  test('silence nobody', async () => {
    const ada = await createListener();
    const first = await createObject();
    const second = await createObject({ config: { parent: first } });
    const third = await createObject({ config: { parent: second } });
    expect((await service.admin('PATCH', `objects/${first}`, { config: { parent: third } })).status).toBe(200);
    const circle = [first, second, third];
    for (const objectId of circle) await createRules(objectId, { when: { online: false }, then: notify(ada) });
    for (const objectId of circle) await send(objectId, { online: false });
    await got(ada, 3);
    for (const objectId of circle) expect((await alarmOf(objectId)).suppressedBy).toBeUndefined();
  });
});

describe('a storm', () => {
  const { stormGatherMs } = LIMITS;
  beforeAll(() => void Object.assign(LIMITS, { stormGatherMs: 3_000 }));
  afterAll(() => void Object.assign(LIMITS, { stormGatherMs }));

  test('becomes one message that counts what it holds back', async () => {
    const ada = await createListener();
    const objectId = await createObject();
    await createRules(objectId, ...Array.from({ length: 25 }, (_, nth) => ({ name: `r${nth}`, then: notify(ada) })));
    await send(objectId, { t: 9 });
    await got(ada, 21);
    await settle();
    expect(to(ada)).toHaveLength(21);
    expect(titles(ada)[20]).toBe('5 more messages about alarms');
    expect(to(ada)[20]?.body).toBe('Too many at once: 5 messages were held back.\nAlarms: 5 × warning');
    expect(to(ada)[20]?.headers.click).toBe('https://vigil.example/base/alarms');
  });

  test('is counted over all channels of a person', async () => {
    const ada = await createListener();
    const other = { topic: `${ada.topic}-phone` };
    const channels = [ada, other].map(({ topic }) => ({ ntfy: receiver.url + topic }));
    expect((await ada.call('PATCH', 'account', { channels })).status).toBe(200);
    await raise(ada, 'warning', 15);
    const isDigest = ({ body }: Received): boolean => body.startsWith('Too many at once');
    const told = (): Received[] => [...to(ada), ...to(other)];
    const heldBack = (): number =>
      told()
        .filter(isDigest)
        .reduce((sum, { body }) => sum + Number(/: (\d+) message/.exec(body)?.[1]), 0);
    await until(() => heldBack() === 10, '10 messages that are held back');
    expect(told().filter((one) => !isDigest(one))).toHaveLength(LIMITS.stormMessages);
  });

  /** Raises as many alarms of the severity at once. */
  async function raise(ada: Person, severity: string, alarms: number): Promise<string> {
    const objectId = await createObject();
    const rules = Array.from({ length: alarms }, (_, nth) => ({
      name: `${severity} ${nth}`,
      severity,
      then: notify(ada),
    }));
    await createRules(objectId, ...rules);
    await send(objectId, { t: 9 });
    return objectId;
  }

  test.each([
    ['info', 'warning', 20],
    ['info', 'critical', 20],
    ['warning', 'critical', 20],
    ['critical', 'warning', 0],
    ['critical', 'critical', 0],
  ])('leaves, of severity %s, to %s messages their own %i', async (first, second, more) => {
    const ada = await createListener();
    await raise(ada, first, LIMITS.stormMessages);
    await got(ada, LIMITS.stormMessages);
    await raise(ada, second, LIMITS.stormMessages + 1);
    await got(ada, LIMITS.stormMessages + more + 1);
    const held = LIMITS.stormMessages + 1 - more;
    expect(to(ada).at(-1)?.body).toBe(
      `Too many at once: ${held} ${held === 1 ? 'message was' : 'messages were'} held back.\nAlarms: ${held} × ${second}`,
    );
    expect(to(ada)).toHaveLength(LIMITS.stormMessages + more + 1);
  });

  test('does not hold back critical messages where it is of ends', async () => {
    const ada = await createListener();
    const half = LIMITS.stormMessages / 2;
    const objectId = await raise(ada, 'critical', half);
    await got(ada, half);
    await send(objectId, { t: 5 });
    await got(ada, LIMITS.stormMessages);
    await raise(ada, 'critical', half);
    const told = await got(ada, LIMITS.stormMessages + half);
    expect(told.slice(-half).map(({ headers }) => headers.priority)).toEqual(Array(half).fill('5'));
  });
});

describe('a rule', () => {
  const id = '0123456789abcdef01234567';
  const REFUSED: [fields: object, mention: string][] = [
    [{ then: [{ notify: {} }] }, 'then[0].notify: expected users or group'],
    [{ then: [{ notify: 'ada' }] }, 'then[0].notify: expected an object'],
    [{ then: [{ notify: { users: [] } }] }, 'then[0].notify.users: expected a list'],
    [{ then: [{ notify: { users: ['ada'] } }] }, 'then[0].notify.users[0]: expected the _id of a user'],
    [{ then: [{ notify: { users: [id] } }] }, 'then[0].notify.users[0]: there is no such entity in users'],
    [{ then: [{ notify: { group: id } }] }, 'then[0].notify.group: there is no such entity in groups'],
    [{ then: [{ notify: { group: 'night' } }] }, 'then[0].notify.group: expected the _id'],
    [{ then: [{ notify: { users: [':self'], sms: true } }] }, 'then[0].notify.sms: not known'],
    [
      { then: [{ notify: { users: [':self'], text: '{{object.config.pin}}' } }] },
      'then[0].notify.text: {{object.config.pin}} is not known',
    ],
    [{ then: [{ notify: { users: [':self'], text: '{{values.t' } }] }, 'then[0].notify.text: {{ and }} do not match'],
    [{ then: [{ notify: { users: [':self'], text: 'x'.repeat(1_001) } }] }, 'then[0].notify.text: expected text'],
    [{ then: [{ notify: { users: [':self'] }, webhook: id }] }, 'then[0]: expected'],
    [{ remind: '10 min' }, 'remind: the rule notifies nobody'],
    [{ remind: 'often', then: [{ notify: { users: [':self'] } }] }, 'remind: expected a duration'],
    [{ remind: 10, then: [{ notify: { users: [':self'] } }] }, 'remind: expected at least 1 s'],
    [{ escalate: {} }, 'escalate'],
    [{ escalate: [{ then: [{ notify: { users: [':self'] } }] }] }, 'escalate[0].after: required'],
    [{ escalate: [{ after: '1 min', then: [] }] }, 'escalate[0].then: expected a list'],
    [
      { escalate: [{ after: '1 min', then: [{ notify: { users: [id] } }] }] },
      'escalate[0].then[0].notify.users[0]: there is no',
    ],
    [
      { remind: '1 min', escalate: [{ after: '1 min', then: [{ command: 'stop' }] }] },
      'remind: the rule notifies nobody',
    ],
    [{ escalate: [{ after: '1 min', then: [{ command: '../x' }] }] }, 'escalate[0].then[0].command: expected the name'],
    [{ escalate: [{ after: '1 min', then: [{ command: 'a', params: 1 }] }] }, 'escalate[0].then[0].params: expected'],
    [{ escalate: [{ after: '1 min', then: [{ webhook: 'x' }] }] }, 'escalate[0].then[0].webhook: expected an _id'],
    [{ escalate: [{ after: '1 min', then: [{ webhook: id }] }] }, 'escalate[0].then[0].webhook: there is no such'],
    [{ escalate: [{ after: '1 min', then: [{ call: 1 }] }] }, 'escalate[0].then[0].call: not known'],
  ];

  test.each(REFUSED)('is refused with %j', async (fields, mention) => {
    const self = (await service.admin('GET', 'account')).body._id;
    const body = JSON.parse(JSON.stringify({ name: 'rule', when: HOT, ...fields }).replaceAll(':self', self));
    const answer = await service.admin('POST', 'rules', body);
    expect([answer.status, answer.body.helper?.message]).toEqual([400, expect.stringContaining(mention)]);
  });

  test('names only users that whoever sets it sees', async () => {
    const tenant = entityOf(await service.admin('POST', 'groups', { name: 'Tenant' }))._id;
    const owner = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: tenant });
    const self = (await service.admin('GET', 'account')).body._id;
    const then = [{ notify: { users: [self] } }];
    const answer = await owner.call('POST', 'rules', { name: 'rule', when: HOT, then });
    expect([answer.status, answer.body.helper?.message]).toEqual([
      400,
      expect.stringContaining('then[0].notify.users[0]'),
    ]);
  });
});
