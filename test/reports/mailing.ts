/** What tests of reports by mail share: a service with a clock of their own, a mail server, a group with two vans, and its administrator. */
import { afterAll, beforeAll, beforeEach, expect } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Answer, startTestService, type TestService } from '../support/fixture.js';
import { type MailServer, startMailServer } from '../support/mail-server.js';
import { type ReadMail, readMail } from '../support/mail-text.js';
import { eventually, until } from '../support/until.js';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** The Monday after the real one, at five: a clock of tests may not be behind. */
export const MONDAY = Math.ceil((Date.now() - 4 * DAY) / (7 * DAY)) * 7 * DAY + 4 * DAY + 5 * HOUR;

export const WEEKLY = { name: 'Week', report: 'mileage', interval: 'last week', cron: '0 6 * * mon' };

export interface Mailing {
  /** `MONDAY` at the beginning of each test. */
  nowMs: number;
  readonly now: () => number;
  service: TestService;
  mail: MailServer;
  env: Record<string, string>;
  /** Ended after the last test. */
  readonly endings: (() => unknown)[];
  vans: string;
  /** Of the vans, with the address ada@example.com. */
  owner: Person;
  createGroup(name: string): Promise<string>;
  /** An administrator of a group with a mail address that is confirmed. */
  createReader(email: string, fields: object): Promise<Person>;
  /** It drove for so many minutes on the Wednesday before; 0.01° a minute are 1,112 m. */
  createVan(group: string, name: string, minutes: number): Promise<string>;
  /** The answer to a schedule of the week, which goes to its owner. */
  schedule(person: Person, fields?: object): Promise<Answer>;
  /** Its `_id`. It is removed after the test. */
  create(person: Person, fields?: object): Promise<string>;
  get(id: string): Promise<Answer['body']>;
  /** As if an instance had left it like that. */
  store(id: string, fields: object): Promise<void>;
  /** As an instance that died with the lease of schedules: none runs until then, or until it is released. */
  holdLease(untilMs: number): Promise<() => Promise<unknown>>;
  received(wanted: number): Promise<ReadMail[]>;
  /** What became of the run that was due then, when it has an end. */
  ended(id: string, due: number): Promise<Answer['body']>;
}

export function useMailing(): Mailing {
  const created: string[] = [];
  let count = 0;
  const own: Mailing = {
    nowMs: MONDAY,
    now: () => own.nowMs,
    endings: [],
    ...({} as Pick<Mailing, 'service' | 'mail' | 'env' | 'vans' | 'owner'>),
    createGroup: async (name) => entityOf(await own.service.admin('POST', 'groups', { name }))._id as string,
    async createReader(email, fields) {
      const person = await createPerson(own.service, { role: ADMINISTRATOR_ROLE_ID, ...fields });
      const $set = { _channels: [{ email }], _confirmed: [{ email }] };
      await own.service.client
        .db()
        .collection('users')
        .updateOne({ _id: new ObjectId(person.id) }, { $set });
      return person;
    },
    async createVan(group, name, minutes) {
      const van = entityOf(await own.service.admin('POST', 'objects', { id: `van-${count++}`, name, group }));
      const packets = Array.from({ length: minutes + 11 }, (_, minute) => ({
        time: MONDAY - 5 * DAY + minute * MINUTE,
        lat: 1,
        lon: Math.min(minute, minutes) / 100,
      }));
      expect((await own.service.admin('POST', `objects/${van._id}/packets`, packets)).status).toBe(200);
      return van._id as string;
    },
    schedule: (person, fields = {}) =>
      person.call('POST', 'schedules', { ...WEEKLY, to: { users: [person.id] }, ...fields }),
    async create(person, fields) {
      const { _id } = entityOf(await own.schedule(person, fields));
      created.push(_id as string);
      return _id as string;
    },
    get: async (id) => (await own.service.admin('GET', `schedules/${id}`)).body,
    async store(id, fields) {
      const schedules = own.service.client.db().collection('schedules');
      await schedules.updateOne({ _id: new ObjectId(id) }, { $set: fields });
    },
    async holdLease(untilMs) {
      const leases = own.service.client.db().collection<{ _id: string }>('installation');
      const _id = 'lease: schedules';
      const dead = { holder: 'dead', until: new Date(untilMs) };
      await until(async () => {
        const free = { _id, until: { $lt: new Date() } };
        return (await leases.updateOne(free, { $set: dead })).modifiedCount === 1;
      });
      return () => leases.updateOne({ _id, holder: 'dead' }, { $set: { until: new Date(0) } });
    },
    async received(wanted) {
      await until(() => own.mail.mails.length >= wanted, `${wanted} mails`);
      return own.mail.mails.map(readMail);
    },
    async ended(id, due) {
      await eventually(async () => {
        const { lastRun } = await own.get(id);
        expect(lastRun).toMatchObject({ due, status: expect.stringMatching(/^(?:sent|failed)$/) });
      });
      return (await own.get(id)).lastRun;
    },
  };
  Object.assign(LIMITS, { scheduleCheckMs: 50, notificationCheckMs: 50 });
  beforeAll(() => start(own));
  afterAll(async () => {
    for (const end of own.endings.reverse()) await end();
    await own.service?.stop();
    await own.mail?.stop();
  });
  beforeEach(async () => {
    for (const id of created.splice(0)) await own.service.admin('DELETE', `schedules/${id}`);
    own.mail.mails.length = 0;
    own.nowMs = MONDAY;
  });
  return own;
}

async function start(own: Mailing): Promise<void> {
  own.mail = await startMailServer();
  own.env = {
    SMTP_URL: own.mail.url,
    MAIL_FROM: 'Vigil <reports@vigil.example>',
    PUBLIC_URL: 'https://vigil.example/base',
    TOKEN_LIFETIME: '30 d',
  };
  own.service = await startTestService({ env: own.env, now: own.now });
  own.vans = await own.createGroup('Vans');
  own.owner = await own.createReader('ada@example.com', { group: own.vans });
  await own.createVan(own.vans, 'Van 1', 20);
  await own.createVan(own.vans, '=Van 2', 10);
}
